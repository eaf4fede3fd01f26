package render

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fault is a problem at a line of a file.
type fault struct {
	line    int
	field   string
	problem string
}

var atLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): `)

// parseNode parses one document, for its lines; base is the line before it. It
// returns nil for an empty document.
func parseNode(text []byte, base int) (*yaml.Node, *fault) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, yamlFault(err, base)
	}
	if root.Kind == 0 || len(root.Content) == 0 {
		return nil, nil
	}
	return root.Content[0], nil
}

// yamlFault takes the line out of a parser's message and counts it from the
// start of the file.
func yamlFault(err error, base int) *fault {
	text := err.Error()
	if match := atLine.FindStringSubmatch(text); match != nil {
		n, _ := strconv.Atoi(match[1])
		return &fault{line: base + n, problem: text[len(match[0]):]}
	}
	return &fault{line: base + 1, problem: strings.TrimPrefix(text, "yaml: ")}
}

// inspector walks a document once for what a decoder would let pass or choke on:
// keys that are there twice, and values that explode or nest without bound.
type inspector struct {
	base   int
	sizes  map[*yaml.Node]int
	inside map[*yaml.Node]bool
	faults []fault
}

// inspect returns what is wrong with a parsed document; base is the line before it.
func inspect(node *yaml.Node, base int) []fault {
	i := &inspector{base: base, sizes: map[*yaml.Node]int{}, inside: map[*yaml.Node]bool{}}
	if _, err := i.size(node, 0); err != nil {
		return []fault{{line: base + node.Line, problem: err.Error()}}
	}
	return i.faults
}

var errAliasLoop = errors.New("an anchor contains an alias to itself")

// size counts the values under a node with its aliases expanded, each node once.
func (i *inspector) size(node *yaml.Node, depth int) (int, error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("values nest deeper than %d", maxDepth)
	}
	if size, known := i.sizes[node]; known {
		return size, nil
	}
	if i.inside[node] {
		return 0, errAliasLoop
	}
	i.inside[node] = true
	defer delete(i.inside, node)
	total := 1
	if node.Kind == yaml.MappingNode {
		i.duplicates(node)
	}
	children := node.Content
	if node.Kind == yaml.AliasNode {
		children = []*yaml.Node{node.Alias}
	}
	for _, child := range children {
		size, err := i.size(child, depth+1)
		if err != nil {
			return 0, err
		}
		if total += size; total > maxNodes {
			return 0, fmt.Errorf("aliases expand to more than %d values", maxNodes)
		}
	}
	i.sizes[node] = total
	return total, nil
}

// duplicates notes keys that a mapping has twice, with both lines: which of them
// counts is left to chance by the tools that let it pass.
func (i *inspector) duplicates(mapping *yaml.Node) {
	first := map[string]int{}
	for n := 0; n+1 < len(mapping.Content); n += 2 {
		key := mapping.Content[n]
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if line, twice := first[key.Value]; twice {
			i.faults = append(i.faults, fault{
				line: i.base + key.Line, field: key.Value,
				problem: fmt.Sprintf("the key %q is there twice, in lines %d and %d: keep one of them", key.Value, i.base+line, i.base+key.Line),
			})
			continue
		}
		first[key.Value] = key.Line
	}
}
