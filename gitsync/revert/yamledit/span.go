package yamledit

import (
	"sort"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// span is where a node is in the bytes of its file.
type span struct {
	// start is the first byte, of its anchor or tag if it has one; end is behind its last byte.
	start, end int
	// column of start, from 1, in characters.
	column int
	parent *yaml.Node
	// key of a value in a mapping.
	key *yaml.Node
	// slot is behind the colon of a value in a mapping; -1 elsewhere.
	slot int
	// flow says that an ancestor is written in brackets.
	flow bool
	// block says that the node is a mapping or sequence written by indentation.
	block bool
	// implicit says that nothing is written: a null by absence.
	implicit bool
}

// locate finds the spans of a document's nodes.
func (f *File) locate(root *yaml.Node) error {
	// The null of an empty document has no place that could be relied on.
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.ShortTag() == "!!null" {
		f.spans[root] = span{slot: -1, implicit: true}
		return nil
	}
	_, err := f.place(root, span{slot: -1}, -1)
	return err
}

// place finds the span of a node whose surroundings are in s. indent is the
// column, from 0, of the block that it is in.
func (f *File) place(n *yaml.Node, s span, indent int) (span, error) {
	s.start, s.column = f.offset(n.Line, n.Column), n.Column
	if s.start < 0 {
		return s, lost(n)
	}
	content := s.start
	if n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		content = f.skipProperties(s.start)
	}
	var err error
	switch n.Kind {
	case yaml.AliasNode:
		s.end = s.start + 1 + len(n.Value)
	case yaml.ScalarNode:
		s.end, s.implicit = f.scalarEnd(n, content, indent)
	case yaml.MappingNode, yaml.SequenceNode:
		s, err = f.placeCollection(n, s, content, indent)
	default:
		return s, lost(n)
	}
	if err == nil && (s.end < s.start || s.end > len(f.data)) {
		err = lost(n)
	}
	f.spans[n] = s
	return s, err
}

func lost(n *yaml.Node) error {
	return &Error{Line: n.Line, Reason: "the end of this value can't be found: write it in a simpler way"}
}

// scalarEnd tells by its first byte how a scalar is written.
func (f *File) scalarEnd(n *yaml.Node, at, indent int) (end int, implicit bool) {
	if n.Value == "" && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		return f.offset(n.Line, n.Column), true
	}
	if at >= len(f.data) {
		return -1, false
	}
	switch f.data[at] {
	case '"':
		return f.doubleQuoted(at), false
	case '\'':
		return f.singleQuoted(at), false
	case '|', '>':
		return f.blockScalar(at, indent), false
	}
	return f.plain(at, n.Value), false
}

func (f *File) placeCollection(n *yaml.Node, s span, content, indent int) (span, error) {
	flow := n.Style&yaml.FlowStyle != 0
	s.block = !flow
	inside := indent
	if s.block && !s.flow {
		inside = f.blockColumn(content)
	}
	end := content
	for i, child := range n.Content {
		surroundings := span{parent: n, slot: -1, flow: s.flow || flow}
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			surroundings.key = n.Content[i-1]
			if surroundings.slot = f.colon(end); surroundings.slot < 0 {
				return s, lost(child)
			}
			end = surroundings.slot
		}
		placed, err := f.place(child, surroundings, inside)
		if err != nil {
			return s, err
		}
		end = max(end, placed.end)
	}
	s.end = end
	if flow && content < len(f.data) && (f.data[content] == '{' || f.data[content] == '[') {
		if len(n.Content) == 0 {
			end = content + 1
		}
		s.end = f.skipGap(end, ",:?") + 1
		if s.end > len(f.data) || (f.data[s.end-1] != '}' && f.data[s.end-1] != ']') {
			return s, lost(n)
		}
	}
	return s, nil
}

// blockColumn is the column, from 0, at which a block's entries start.
func (f *File) blockColumn(content int) int {
	line := sort.Search(len(f.lines), func(i int) bool { return f.lines[i] > content }) - 1
	return utf8.RuneCount(f.data[f.lines[line]:content])
}

// colon is behind the : that follows a key which ends at at.
func (f *File) colon(at int) int {
	at = f.skipGap(at, "")
	if at >= len(f.data) || f.data[at] != ':' {
		return -1
	}
	return at + 1
}
