package yamledit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is a parsed file in which every node's bytes are known. It is never changed.
type File struct {
	data  []byte
	lines []int
	docs  []*yaml.Node
	spans map[*yaml.Node]span
	// anchors of the file, by the node that has them.
	anchors map[*yaml.Node]string
}

// Error says why a file can't be edited safely.
type Error struct {
	// Line from 1; 0 when unknown.
	Line int
	// Reason for people: what is in the way and what to do.
	Reason string
}

// Error is the reason with its line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// DuplicateKeyError says that a mapping has a key twice, so that readers
// disagree on its value.
type DuplicateKeyError struct {
	Key           string
	First, Second int // lines, from 1
}

// Error names the key and both lines.
func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("the key %q is on line %d and again on line %d: remove one of them", e.Key, e.First, e.Second)
}

// AnchorError says that an edit would reach beyond its place through an anchor.
type AnchorError struct {
	// Anchor without its & or *.
	Anchor string
	Line   int
}

// Error names the anchor.
func (e *AnchorError) Error() string {
	return fmt.Sprintf("the anchor %q is shared with another part of the file: write its text out where it is used", e.Anchor)
}

var bom = []byte("\xef\xbb\xbf")

// Parse reads all documents of a file and locates every node.
//
// Errors: *Error for what is no YAML, holds template markers or an encryption of
// SOPS, or where a node's end can't be found; *DuplicateKeyError.
func Parse(data []byte) (*File, error) {
	if bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.HasPrefix(data, []byte("\xff\xfe")) {
		return nil, &Error{Reason: "the file is in UTF-16: save it in UTF-8"}
	}
	f := &File{data: data, spans: map[*yaml.Node]span{}, anchors: map[*yaml.Node]string{}}
	skip := 0
	if bytes.HasPrefix(data, bom) {
		skip = len(bom)
	}
	f.lines = lineStarts(data, skip)
	decoder := yaml.NewDecoder(bytes.NewReader(data[skip:]))
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, syntaxError(data, err)
		}
		root := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		if len(document.Content) > 0 {
			root = document.Content[0]
		}
		f.docs = append(f.docs, root)
		if err := f.check(root); err != nil {
			return nil, err
		}
		if err := f.locate(root); err != nil {
			return nil, err
		}
	}
}

// syntaxError finds the line in the parser's words, and says so when it looks
// like a template that was never meant to be YAML.
func syntaxError(data []byte, err error) error {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if n, _ := fmt.Sscanf(reason, "line %d:", &line); n == 1 {
		_, reason, _ = strings.Cut(reason, ": ")
	}
	if at := bytes.Index(data, []byte("{{")); at >= 0 {
		return templateError(1 + bytes.Count(data[:at], []byte("\n")))
	}
	return &Error{Line: line, Reason: "the file is not YAML: " + reason}
}

func templateError(line int) error {
	return &Error{Line: line, Reason: "the file has template markers {{ }}: it is rendered by a tool that Pushback does not run"}
}

// check refuses what a renderer would read in another way than an editor.
func (f *File) check(root *yaml.Node) error {
	if root.Kind == yaml.MappingNode {
		if _, sops := Lookup(root, "sops"); sops != nil && sops.Kind == yaml.MappingNode {
			return &Error{Line: sops.Line, Reason: "the file is encrypted by SOPS, which signs all of it: it can't be edited without the key"}
		}
	}
	return f.checkNode(root)
}

func (f *File) checkNode(n *yaml.Node) error {
	if n.Anchor != "" {
		f.anchors[n] = n.Anchor
	}
	if n.Kind == yaml.AliasNode {
		return nil
	}
	if n.Kind == yaml.MappingNode {
		if err := checkKeys(n); err != nil {
			return err
		}
	}
	for _, child := range n.Content {
		if err := f.checkNode(child); err != nil {
			return err
		}
	}
	return nil
}

func checkKeys(n *yaml.Node) error {
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.MappingNode && key.Style&yaml.FlowStyle != 0 {
			return templateError(key.Line) // {{ .x }} is a mapping as the key of a mapping
		}
		if key.Kind != yaml.ScalarNode {
			return &Error{Line: key.Line, Reason: "a key that is no scalar can't be edited around"}
		}
		if first, twice := seen[key.Value]; twice && key.Value != "<<" {
			return &DuplicateKeyError{Key: key.Value, First: first, Second: key.Line}
		}
		seen[key.Value] = key.Line
	}
	return nil
}

// Lookup walks mappings by keys. The key node is nil for an empty path, and
// both are nil when there is no such path.
func Lookup(n *yaml.Node, path ...string) (key, value *yaml.Node) {
	value = n
	for _, part := range path {
		key, value = child(value, part)
		if value == nil {
			return nil, nil
		}
	}
	return key, value
}

func child(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
