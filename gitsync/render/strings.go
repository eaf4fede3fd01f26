package render

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checkStrings finds unquoted text that YAML 1.1 reads as a boolean or a number
// in places where Kubernetes wants a string: an annotation that says on, an
// environment variable that says 1e3. value is the node as it was decoded.
//
// Places are known by name only, because the schema of a custom kind isn't: the
// API server refuses the rest.
func checkStrings(node *yaml.Node, value any, base int) []fault {
	w := stringWalk{base: base}
	w.visit(resolveAlias(node), value, nil)
	return w.faults
}

type stringWalk struct {
	base   int
	faults []fault
}

func (w *stringWalk) visit(node *yaml.Node, value any, at []string) {
	switch typed := value.(type) {
	case map[string]any:
		if node.Kind != yaml.MappingNode {
			return
		}
		for n := 0; n+1 < len(node.Content); n += 2 {
			key := node.Content[n]
			child, ok := typed[key.Value]
			if !ok {
				continue // a merge key, or a key that isn't text
			}
			w.visit(resolveAlias(node.Content[n+1]), child, append(at[:len(at):len(at)], key.Value))
		}
	case []any:
		if node.Kind != yaml.SequenceNode {
			return
		}
		for n := range min(len(typed), len(node.Content)) {
			w.visit(resolveAlias(node.Content[n]), typed[n], append(at[:len(at):len(at)], strconv.Itoa(n)))
		}
	case bool, int64, float64:
		if wantsString(at) {
			w.faults = append(w.faults, fault{
				line: w.base + node.Line, field: strings.Join(at, "."),
				problem: fmt.Sprintf("must be text, but YAML reads %s as %s: put it in quotes", node.Value, typeName(typed)),
			})
		}
	}
}

func typeName(value any) string {
	if b, ok := value.(bool); ok {
		return fmt.Sprintf("the boolean %t", b)
	}
	return "a number"
}

func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// wantsString is true for the path of a value that must be text.
func wantsString(at []string) bool {
	back := func(n int) string {
		if len(at) < n {
			return ""
		}
		return at[len(at)-n]
	}
	switch back(2) {
	case "labels", "annotations":
		return back(3) == "metadata" || strings.HasSuffix(back(3), "Metadata")
	case "matchLabels", "nodeSelector":
		return true
	case "data", "stringData", "binaryData":
		return len(at) == 2
	case "args", "command":
		return isContainers(back(4))
	}
	// …containers.<n>.env.<m>.value
	return back(1) == "value" && back(3) == "env" && isContainers(back(5))
}

func isContainers(name string) bool {
	return name == "containers" || name == "initContainers" || name == "ephemeralContainers"
}
