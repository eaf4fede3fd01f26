package revert

import (
	"fmt"
)

// compose decides what the head is, and searches for an edit if it is the
// rejected template.
func compose(in In) Outcome {
	p, err := newProof(in)
	if err != nil {
		return &Refused{Reason: err.Error()}
	}
	hash, found := p.hash(p.own)
	switch {
	case !found:
		return &Superseded{}
	case hash == in.Stable && in.Stable != "":
		return &AlreadyReverted{}
	case hash != in.Rejected:
		return &Superseded{Hash: hash}
	case in.Stable == "":
		return &NoTarget{}
	}
	return search(in, p)
}

// search tries the sets of changes from the narrowest to the widest, and
// returns the first that is proved, without what it can do without.
func search(in In, p *proof) Outcome {
	found := candidates(in)
	first := found.refusedTemplate
	note := func(r *Refused) {
		if first == nil {
			first = r
		}
	}
	tried := map[string]bool{}
	for _, set := range found.out.attempts() {
		if len(set) == 0 || tried[set.key()] {
			continue
		}
		tried[set.key()] = true
		works, err := p.brings(set)
		if err != nil {
			note(refusal(err, set))
			continue
		}
		if !works {
			continue
		}
		smallest := p.minimise(set)
		edits, err := smallest.edits()
		if err == nil {
			err = p.prove(edits)
		}
		if err != nil {
			note(refusal(err, smallest))
			continue
		}
		return &Edited{Edits: edits, Files: sortedKeys(edits)}
	}
	if first == nil {
		first = found.refused
	}
	if first == nil {
		first = &Refused{Reason: "the files that the stable template was rendered from differ from the head's in nothing that brings it back: " +
			"revert the change by hand"}
	}
	return first
}

// refusal says what is wrong with a set, and where its first change is.
func refusal(err error, set set) *Refused {
	if r := (*Refused)(nil); asRefused(err, &r) {
		return r
	}
	r := &Refused{Reason: err.Error()}
	if len(set) > 0 {
		r.File, r.Line = set[0].file, set[0].line()
	}
	return r
}

func (r *Refused) where() string {
	switch {
	case r.File == "":
		return ""
	case r.Line == 0:
		return r.File + ": "
	}
	return fmt.Sprintf("%s:%d: ", r.File, r.Line)
}
