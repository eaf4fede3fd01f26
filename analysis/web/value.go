package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// MatchesMetadata is the key under which is kept how many values a jsonPath found, if
// more than one.
const MatchesMetadata = "matches"

// Errors of answers and of paths.
var (
	ErrNoJSON   = errors.New("the answer is no JSON, and the metric has a jsonPath")
	ErrJSONPath = errors.New("the jsonPath can't be used: it is one path in braces, such as {$.data.ok}")
)

// valueOf is the value in an answer, and how many there are.
func valueOf(body []byte, path string) (any, int, error) {
	var data any
	err := json.Unmarshal(body, &data)
	switch {
	case err != nil && json.Valid(body):
		return nil, 0, fmt.Errorf("the answer has a number that is too large: %w", err)
	case err != nil && path != "":
		return nil, 0, fmt.Errorf("%w: %q", ErrNoJSON, body)
	case err != nil:
		return strings.ToValidUTF8(string(body), "\uFFFD"), 1, nil
	case path == "":
		return data, 1, nil
	}
	j, err := parse(path)
	if err != nil {
		return nil, 0, err
	}
	if data == nil {
		return nil, 1, nil // everything in null is null
	}
	found, err := j.FindResults(data)
	if err != nil {
		return nil, 0, fmt.Errorf("jsonPath %s: %w", path, err)
	}
	return first(found)
}

// parse refuses text around the path: as in a template for people, it would be the
// result.
func parse(path string) (*jsonpath.JSONPath, error) {
	path = strings.TrimSpace(path)
	tree, err := jsonpath.Parse("jsonPath", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJSONPath, err)
	}
	for _, node := range tree.Root.Nodes {
		if node.Type() == jsonpath.NodeText {
			return nil, ErrJSONPath
		}
	}
	j := jsonpath.New("jsonPath")
	if err := j.Parse(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJSONPath, err)
	}
	return j, nil
}

// first is the first of the values, nil when there is none.
func first(found [][]reflect.Value) (any, int, error) {
	var value any
	n := 0
	for _, results := range found {
		for _, r := range results {
			if n++; n > 1 {
				continue
			}
			var err error
			if value, err = plain(r); err != nil {
				return nil, 0, err
			}
		}
	}
	return value, n, nil
}

// plain has numbers that stand in the path itself as float64, like all others.
func plain(r reflect.Value) (any, error) {
	if !r.IsValid() {
		return nil, nil
	}
	switch v := r.Interface().(type) {
	case nil, bool, float64, string, []any, map[string]any:
		return v, nil
	case int:
		return float64(v), nil
	default:
		return nil, fmt.Errorf("the jsonPath finds a %T", v)
	}
}

func metadata(matches int) map[string]string {
	if matches < 2 {
		return nil
	}
	return map[string]string{MatchesMetadata: strconv.Itoa(matches) + " values, of which the first is the result"}
}
