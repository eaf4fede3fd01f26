package yamledit

import (
	"errors"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change brings one node of a file back to what another version has for it.
type Change struct {
	// Path of the node, such as spec.template.spec.containers[0].image.
	Path string
	// Line in the file that is changed, from 1.
	Line int
	// start and end of the bytes that go, and text that comes.
	start, end int
	text       []byte
	// node that is changed, and the one that it is to mean the same as.
	node, want *yaml.Node
}

// Overlaps says whether two changes of one file touch the same bytes.
func (c Change) Overlaps(other Change) bool {
	return c.start < other.end && other.start < c.end || c.start == other.start
}

// Diff is what differs between a part of a file and the same part of another version.
type Diff struct {
	// Scalars are single values that differ, in the order of the file.
	Scalars []Change
	// Nodes are the smallest mappings and lists whose shape differs, each as a
	// whole. They overlap with the Scalars inside them, never with each other.
	Nodes []Change
}

// Empty says that nothing differs.
func (d Diff) Empty() bool { return len(d.Scalars) == 0 && len(d.Nodes) == 0 }

// Outer are the Nodes, and the Scalars that none of them holds: together they
// bring back everything.
func (d Diff) Outer() []Change {
	all := append([]Change(nil), d.Nodes...)
	for _, scalar := range d.Scalars {
		covered := false
		for _, node := range d.Nodes {
			covered = covered || scalar.Overlaps(node)
		}
		if !covered {
			all = append(all, scalar)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].start < all[j].start })
	return all
}

// differ compares parts of head with parts of stored.
type differ struct {
	head, stored *File
	// headRoot and storedRoot are the parts that are compared.
	headRoot, storedRoot *yaml.Node
	out                  Diff
}

// DiffObjects compares the values at a path of two objects; an empty path
// compares the objects. It returns an *AnchorError where a difference reaches
// through an anchor. With an *Error, where head can't be given all that stored
// has, comes the part that it can.
func DiffObjects(head *File, h Object, stored *File, s Object, path ...string) (Diff, error) {
	return diffAt(head, h.root, stored, s.root, path)
}

// DiffDocuments compares two files document by document: objects by their
// names, other documents by their place. What only one file has is left out.
// Errors are those of DiffObjects, joined.
func DiffDocuments(head, stored *File, path ...string) (Diff, error) {
	var (
		all    Diff
		failed error
	)
	olds := stored.Objects()
	matched := 0
	for _, h := range head.Objects() {
		for _, s := range olds {
			if h.APIVersion != s.APIVersion || h.Kind != s.Kind || h.Namespace != s.Namespace || h.Name != s.Name {
				continue
			}
			matched++
			failed = errors.Join(failed, all.add(diffAt(head, h.root, stored, s.root, path)))
			break
		}
	}
	if matched > 0 || len(head.docs) != len(stored.docs) {
		return all, failed
	}
	for i := range head.docs {
		failed = errors.Join(failed, all.add(diffAt(head, head.docs[i], stored, stored.docs[i], path)))
	}
	return all, failed
}

// add takes in what another comparison found, and hands on its error.
func (d *Diff) add(other Diff, err error) error {
	d.Scalars, d.Nodes = append(d.Scalars, other.Scalars...), append(d.Nodes, other.Nodes...)
	return err
}

func diffAt(head *File, h *yaml.Node, stored *File, s *yaml.Node, path []string) (Diff, error) {
	_, hv := Lookup(h, path...)
	_, sv := Lookup(s, path...)
	if hv == nil || sv == nil {
		return Diff{}, nil
	}
	d := &differ{head: head, stored: stored, headRoot: hv, storedRoot: sv}
	name := strings.Join(path, ".")
	// The value may be found through an alias: then it has no place of its own here.
	if err := d.through(h, path); err != nil && !equal(hv, sv, 0) {
		return Diff{}, err
	}
	replace, err := d.compare(hv, sv, name)
	if err != nil {
		return Diff{}, err
	}
	if replace {
		return d.out, &Error{Line: hv.Line, Reason: name + " is written in another style than before, and can't be given its old text in place"}
	}
	return d.out, nil
}

// through returns an error if the path leads through an alias.
func (d *differ) through(n *yaml.Node, path []string) error {
	for i := range path {
		_, n = child(n, path[i])
		if n.Kind == yaml.AliasNode && i < len(path)-1 {
			return &AnchorError{Anchor: n.Value, Line: n.Line}
		}
	}
	return nil
}

// Whole replaces the value at a path by the bytes that stored has for it.
func Whole(head *File, h Object, stored *File, s Object, path ...string) (Change, error) {
	_, hv := Lookup(h.root, path...)
	_, sv := Lookup(s.root, path...)
	name := strings.Join(path, ".")
	if hv == nil || sv == nil {
		return Change{}, &Error{Line: h.Line, Reason: name + " is missing"}
	}
	d := &differ{head: head, stored: stored, headRoot: hv, storedRoot: sv}
	change, possible, err := d.replace(hv, sv, name)
	if err == nil && !possible {
		err = &Error{Line: hv.Line, Reason: name + " is written in another style than before, and can't be given its old text in place"}
	}
	return change, err
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

// compare collects what differs. It returns escalate when the node can't be
// changed alone and what holds it must be changed as a whole.
func (d *differ) compare(h, s *yaml.Node, path string) (escalate bool, err error) {
	if equal(h, s, 0) {
		return false, nil
	}
	switch {
	case h.Kind == yaml.AliasNode || s.Kind == yaml.AliasNode:
		return false, d.alias(h, s)
	case h.Kind == yaml.ScalarNode && s.Kind == yaml.ScalarNode:
		return d.scalar(h, s, path)
	case h.Kind == yaml.MappingNode && s.Kind == yaml.MappingNode:
		return d.mapping(h, s, path)
	case h.Kind == yaml.SequenceNode && s.Kind == yaml.SequenceNode:
		return d.sequence(h, s, path)
	}
	return d.node(h, s, path)
}

// alias refuses a difference behind an alias, unless both anchors lie in the
// part that is compared: there the difference is found by itself.
func (d *differ) alias(h, s *yaml.Node) error {
	name := h.Value
	if h.Kind == yaml.AliasNode && s.Kind == yaml.AliasNode && h.Value == s.Value &&
		d.head.within(h.Alias, d.headRoot) && d.stored.within(s.Alias, d.storedRoot) {
		return nil
	}
	if h.Kind != yaml.AliasNode {
		name = s.Value
	}
	return &AnchorError{Anchor: name, Line: h.Line}
}

func (d *differ) mapping(h, s *yaml.Node, path string) (bool, error) {
	same := sameKeys(h, s)
	mark := len(d.out.Nodes)
	whole := !same
	for i := 0; i < len(h.Content); i += 2 {
		key := h.Content[i].Value
		_, other := child(s, key)
		if other == nil {
			continue
		}
		escalate, err := d.compare(h.Content[i+1], other, join(path, key))
		if err != nil {
			return false, err
		}
		whole = whole || escalate
	}
	if !whole {
		return false, nil
	}
	d.out.Nodes = d.out.Nodes[:mark] // those inside; this one holds them
	return d.node(h, s, path)
}

func (d *differ) sequence(h, s *yaml.Node, path string) (bool, error) {
	names, named := byName(s)
	mark := len(d.out.Nodes)
	whole := len(h.Content) != len(s.Content)
	for i, item := range h.Content {
		var other *yaml.Node
		if named {
			other = names[text(item, "name")]
			whole = whole || other == nil
		} else if len(h.Content) == len(s.Content) {
			other = s.Content[i]
		}
		if other == nil {
			continue
		}
		escalate, err := d.compare(item, other, path+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return false, err
		}
		whole = whole || escalate
	}
	whole = whole || named && !sameOrder(h, s)
	if !whole {
		return false, nil
	}
	d.out.Nodes = d.out.Nodes[:mark]
	return d.node(h, s, path)
}

// byName indexes a list whose items all have names of their own.
func byName(n *yaml.Node) (map[string]*yaml.Node, bool) {
	names := map[string]*yaml.Node{}
	for _, item := range n.Content {
		name := text(item, "name")
		if name == "" || names[name] != nil {
			return nil, false
		}
		names[name] = item
	}
	return names, len(names) > 0
}

func sameOrder(a, b *yaml.Node) bool {
	for i := range a.Content {
		if i < len(b.Content) && text(a.Content[i], "name") != text(b.Content[i], "name") {
			return false
		}
	}
	return true
}

// node replaces a node as a whole, if the place allows it.
func (d *differ) node(h, s *yaml.Node, path string) (escalate bool, err error) {
	change, possible, err := d.replace(h, s, path)
	if err != nil || !possible {
		return !possible, err
	}
	d.out.Nodes = append(d.out.Nodes, change)
	return false, nil
}
