package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonDocuments decodes a JSON file of one or several values, and notes keys
// that are there twice.
func jsonDocuments(file []byte) ([]document, []fault) {
	file = bytes.TrimPrefix(file, bom)
	dec := json.NewDecoder(bytes.NewReader(file))
	var out []document
	for {
		from := int(dec.InputOffset())
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, []fault{jsonFault(file, from, err)}
		}
		begin := int(dec.InputOffset()) - len(raw)
		doc := document{text: raw, line: lineAt(file, begin)}
		if faults := inspectJSON(doc); len(faults) > 0 {
			return nil, faults
		}
		out = append(out, doc)
	}
}

func jsonFault(file []byte, from int, err error) fault {
	line := lineAt(file, from)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = lineAt(file, int(syntax.Offset))
	}
	return fault{line: line, problem: err.Error()}
}

// lineAt is the line, from 1, of an offset.
func lineAt(file []byte, offset int) int {
	return 1 + bytes.Count(file[:min(max(offset, 0), len(file))], []byte("\n"))
}

// inspectJSON finds keys that are there twice, and values that nest too deep.
func inspectJSON(doc document) []fault {
	dec := json.NewDecoder(bytes.NewReader(doc.text))
	dec.UseNumber()
	type level struct {
		keys  map[string]int // nil for a list
		isKey bool
	}
	var stack []level
	var faults []fault
	for {
		token, err := dec.Token()
		if err != nil {
			return faults // the end: the document was decoded before
		}
		line := doc.line + lineAt(doc.text, int(dec.InputOffset())) - 1
		top := len(stack) - 1
		if key, ok := token.(string); ok && top >= 0 && stack[top].isKey {
			if first, twice := stack[top].keys[key]; twice {
				faults = append(faults, fault{line: line, field: key, problem: fmt.Sprintf("the key %q is there twice, in lines %d and %d: keep one of them", key, first, line)})
			}
			stack[top].keys[key] = line
			stack[top].isKey = false
			continue
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]int{}, isKey: true})
			if len(stack) > maxDepth {
				return append(faults, fault{line: line, problem: fmt.Sprintf("values nest deeper than %d", maxDepth)})
			}
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			if len(stack) > maxDepth {
				return append(faults, fault{line: line, problem: fmt.Sprintf("values nest deeper than %d", maxDepth)})
			}
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
			top--
		}
		if top >= 0 && stack[top].keys != nil {
			stack[top].isKey = true
		}
	}
}
