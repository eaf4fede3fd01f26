package yamledit

import "go.yaml.in/yaml/v3"

// maxDepth bounds the comparison of values that aliases make deep.
const maxDepth = 200

// equal compares what two nodes mean: tags and values, in any order of keys,
// with aliases resolved and whatever the spelling.
func equal(a, b *yaml.Node, depth int) bool {
	if depth > maxDepth {
		return false
	}
	if a.Kind == yaml.AliasNode {
		a = a.Alias
	}
	if b.Kind == yaml.AliasNode {
		b = b.Alias
	}
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.ScalarNode:
		return sameScalar(a, b)
	case yaml.SequenceNode:
		for i := range a.Content {
			if !equal(a.Content[i], b.Content[i], depth+1) {
				return false
			}
		}
		return true
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		_, other := child(b, a.Content[i].Value)
		if other == nil || !equal(a.Content[i+1], other, depth+1) {
			return false
		}
	}
	return true
}

func sameScalar(a, b *yaml.Node) bool {
	if a.ShortTag() != b.ShortTag() {
		return false
	}
	return a.Value == b.Value || a.ShortTag() == "!!null"
}

// sameKeys compares the keys of two mappings.
func sameKeys(a, b *yaml.Node) bool {
	if len(a.Content) != len(b.Content) {
		return false
	}
	for i := 0; i < len(a.Content); i += 2 {
		if _, other := child(b, a.Content[i].Value); other == nil {
			return false
		}
	}
	return true
}
