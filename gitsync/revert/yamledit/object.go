package yamledit

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is a Kubernetes object in a file: a document, or an item of a List.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	// Line from 1.
	Line int
	root *yaml.Node
}

// Objects finds all of them, in the order of the file. Documents that are empty
// or no objects are passed over.
func (f *File) Objects() []Object {
	var found []Object
	for _, root := range f.docs {
		found = appendObjects(found, root)
	}
	return found
}

func appendObjects(found []Object, n *yaml.Node) []Object {
	kind := text(n, "kind")
	if n.Kind != yaml.MappingNode || kind == "" {
		return found
	}
	if _, items := Lookup(n, "items"); strings.HasSuffix(kind, "List") && items != nil {
		if items.Kind == yaml.SequenceNode {
			for _, item := range items.Content {
				found = appendObjects(found, item)
			}
		}
		return found
	}
	return append(found, Object{
		APIVersion: text(n, "apiVersion"), Kind: kind,
		Namespace: text(n, "metadata", "namespace"), Name: text(n, "metadata", "name"),
		Line: n.Line, root: n,
	})
}

// text is the value of a scalar at a path, or nothing.
func text(n *yaml.Node, path ...string) string {
	_, value := Lookup(n, path...)
	if value != nil && value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value == nil || value.Kind != yaml.ScalarNode {
		return ""
	}
	return value.Value
}

// Has says whether an object has a value at a path.
func (o Object) Has(path ...string) bool {
	_, value := Lookup(o.root, path...)
	return value != nil
}
