package revert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
)

// proof renders with edits and compares with what the head renders to.
type proof struct {
	in  In
	own rendered
	// others are as the head renders them, in the order of In.Others.
	others []rendered
	// renders counts them, for the bound of the search.
	renders int
}

// rendered is one render: its objects or its error.
type rendered struct {
	objects map[Identity]Object
	err     error
}

func render(r Render, edits map[string][]byte) rendered {
	objects, err := r.Objects(edits)
	if err != nil {
		return rendered{err: err}
	}
	out := rendered{objects: make(map[Identity]Object, len(objects))}
	for _, o := range objects {
		if _, twice := out.objects[o.Identity]; twice {
			return rendered{err: fmt.Errorf("%s is declared twice in %s: remove one of them", o.Identity, r.Name)}
		}
		out.objects[o.Identity] = o
	}
	return out
}

func newProof(in In) (*proof, error) {
	p := &proof{in: in, own: render(in.Own, nil)}
	if p.own.err != nil {
		return nil, fmt.Errorf("the head can't be rendered: %w", p.own.err)
	}
	return p, nil
}

// hash of the Rollout's template in a render.
func (p *proof) hash(r rendered) (hash string, found bool) {
	o, found := r.objects[p.in.Rollout]
	return o.TemplateHash, found
}

// brings says whether a set of changes renders to the stable template.
func (p *proof) brings(s set) (bool, error) {
	edits, err := s.edits()
	if err != nil {
		return false, err
	}
	p.renders++
	after := render(p.in.Own, edits)
	if after.err != nil {
		return false, nil
	}
	hash, _ := p.hash(after)
	return hash == p.in.Stable, nil
}

// maxRenders bounds the search for the smallest set.
const maxRenders = 200

// minimise looks for a smaller set that still renders to the stable template:
// a single change first, then without half, a quarter, … one.
func (p *proof) minimise(s set) set {
	if len(s) == 1 {
		return s
	}
	end := p.renders + maxRenders
	for i := range s {
		if p.renders >= end {
			break
		}
		if works, err := p.brings(s[i : i+1]); err == nil && works {
			return s[i : i+1]
		}
	}
	for step := len(s) / 2; step >= 1; step /= 2 {
		for i := len(s) - step; i >= 0 && p.renders < end; i -= step {
			smaller := s.without(i, i+step)
			if works, err := p.brings(smaller); len(smaller) > 0 && err == nil && works {
				s = smaller
				i = min(i, len(s))
			}
		}
	}
	return s
}

// prove compares everything that is rendered before and after the edits. Its
// errors say which object would change where.
func (p *proof) prove(edits map[string][]byte) error {
	after := render(p.in.Own, edits)
	if after.err != nil {
		return fmt.Errorf("%s can't be rendered with the edit: %w", p.in.Own.Name, after.err)
	}
	if hash, _ := p.hash(after); hash != p.in.Stable {
		return fmt.Errorf("with the edit %s renders to template %s instead of %s", p.in.Rollout, hash, p.in.Stable)
	}
	if err := p.unchanged(p.in.Own.Name, p.own, after); err != nil {
		return err
	}
	if p.others == nil {
		for _, other := range p.in.Others {
			p.others = append(p.others, render(other, nil))
		}
	}
	for i, other := range p.in.Others {
		if err := p.proveOther(other, p.others[i], edits); err != nil {
			return err
		}
	}
	return nil
}

func (p *proof) proveOther(r Render, before rendered, edits map[string][]byte) error {
	after := render(r, edits)
	switch {
	case before.err != nil && after.err != nil && before.err.Error() == after.err.Error():
		return nil
	case before.err != nil:
		return fmt.Errorf("%s can't be rendered at the head, and would be with the edit: nothing can be compared (%w)", r.Name, before.err)
	case after.err != nil:
		return fmt.Errorf("%s can't be rendered with the edit: %w", r.Name, after.err)
	}
	return p.unchanged(r.Name, before, after)
}

// unchanged compares two renders object by object. The Rollout may go from the
// rejected to the stable template, and objects that are generated for it may
// take the place of others.
func (p *proof) unchanged(where string, before, after rendered) error {
	for _, id := range identities(before, after) {
		was, had := before.objects[id]
		is, has := after.objects[id]
		switch {
		case p.isRollout(id) && had && has:
			if err := p.sameButTemplate(where, was, is); err != nil {
				return err
			}
		case had && has:
			same, err := sameJSON(was.JSON, is.JSON)
			if err != nil || !same {
				return fmt.Errorf("the edit would also change %s in %s: %s", id, where, adviceShared)
			}
		case had && p.generatedFor(before, id), has && p.generatedFor(after, id):
		case had:
			return fmt.Errorf("the edit would remove %s from %s: %s", id, where, adviceShared)
		default:
			return fmt.Errorf("the edit would add %s to %s: %s", id, where, adviceShared)
		}
	}
	return nil
}

const adviceShared = "a file is shared, so revert by hand"

// isRollout also knows the Rollout where no namespace was set yet.
func (p *proof) isRollout(id Identity) bool {
	r := p.in.Rollout
	return id == r || id.Namespace == "" && id.Kind == r.Kind && id.Name == r.Name && id.APIVersion == r.APIVersion
}

func (p *proof) sameButTemplate(where string, was, is Object) error {
	same, err := sameJSON(was.JSON, is.JSON)
	if err == nil && same {
		return nil
	}
	if is.TemplateHash != p.in.Stable {
		return fmt.Errorf("with the edit %s in %s would have template %s, which is neither what it was nor the stable one: %s",
			is.Identity, where, is.TemplateHash, adviceShared)
	}
	a, err := withoutTemplate(was.JSON, p.in.path())
	if err != nil {
		return err
	}
	b, err := withoutTemplate(is.JSON, p.in.path())
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("the edit would change %s in %s beside its template: revert by hand", is.Identity, where)
	}
	return nil
}

func identities(a, b rendered) []Identity {
	var all []Identity
	for id := range a.objects {
		all = append(all, id)
	}
	for id := range b.objects {
		if _, both := a.objects[id]; !both {
			all = append(all, id)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].String()+all[i].APIVersion < all[j].String()+all[j].APIVersion
	})
	return all
}

// generatedFor says that an object is configuration which the Rollout's template
// names, as generators of kustomize make it: with a name that changes with its content.
func (p *proof) generatedFor(r rendered, id Identity) bool {
	if id.APIVersion != "v1" || (id.Kind != "ConfigMap" && id.Kind != "Secret") {
		return false
	}
	for owner, o := range r.objects {
		if p.isRollout(owner) && owner.Namespace == id.Namespace && names(o.JSON, p.in.path(), id.Kind)[id.Name] {
			return true
		}
	}
	return false
}

func sameJSON(a, b []byte) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	left, err := canonical(a, nil)
	if err != nil {
		return false, err
	}
	right, err := canonical(b, nil)
	return bytes.Equal(left, right), err
}

func withoutTemplate(raw []byte, path []string) ([]byte, error) {
	return canonical(raw, func(object map[string]any) {
		holder, last := container(object, path)
		delete(holder, last)
	})
}

// canonical JSON has sorted keys and the numbers as they were written.
func canonical(raw []byte, change func(map[string]any)) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("a rendered object is not JSON: %w", err)
	}
	if change != nil {
		change(object)
	}
	return json.Marshal(object)
}
