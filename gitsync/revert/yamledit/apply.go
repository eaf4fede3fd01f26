package yamledit

import (
	"bytes"
	"fmt"
	"sort"

	"go.yaml.in/yaml/v3"
)

// Apply makes the changes, which must not overlap, and proves the result: it
// parses; it has the same documents; what was changed means what it was to mean;
// all other values are as they were. Bytes outside the changes are the file's own.
func (f *File) Apply(changes []Change) ([]byte, error) {
	sorted := append([]Change(nil), changes...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].start < sorted[j].start })
	var out bytes.Buffer
	at := 0
	wanted := map[*yaml.Node]*yaml.Node{}
	for _, change := range sorted {
		if change.start < at {
			return nil, &Error{Line: change.Line, Reason: "two changes overlap at " + change.Path}
		}
		out.Write(f.data[at:change.start])
		out.Write(change.text)
		at = change.end
		wanted[change.node] = change.want
	}
	out.Write(f.data[at:])
	return out.Bytes(), f.prove(out.Bytes(), wanted)
}

// prove compares the edited bytes with what they are to mean.
func (f *File) prove(edited []byte, wanted map[*yaml.Node]*yaml.Node) error {
	after, err := Parse(edited)
	if err != nil {
		return fmt.Errorf("the edited file would not be readable: %w", err)
	}
	if len(after.docs) != len(f.docs) {
		return &Error{Reason: fmt.Sprintf("the edited file would have %d documents instead of %d", len(after.docs), len(f.docs))}
	}
	for i := range f.docs {
		if bad := differs(f.docs[i], after.docs[i], wanted, 0); bad != nil {
			return &Error{Line: bad.Line, Reason: "the edit would change more than it should here"}
		}
	}
	return nil
}

// differs finds the first node that is not as it should be after an edit.
func differs(before, after *yaml.Node, wanted map[*yaml.Node]*yaml.Node, depth int) *yaml.Node {
	if want, changed := wanted[before]; changed {
		if equal(after, want, 0) {
			return nil
		}
		return before
	}
	if before.Kind != after.Kind || len(before.Content) != len(after.Content) || before.Anchor != after.Anchor || depth > maxDepth*50 {
		return before
	}
	if before.Kind == yaml.AliasNode && before.Value != after.Value {
		return before
	}
	if before.Kind == yaml.ScalarNode && !sameScalar(before, after) {
		return before
	}
	for i := range before.Content {
		if bad := differs(before.Content[i], after.Content[i], wanted, depth+1); bad != nil {
			return bad
		}
	}
	return nil
}
