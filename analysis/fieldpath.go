package analysis

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// fieldValue follows a path into decoded JSON: names separated by dots, [0] for an
// item of a list, and ['a.b/c'] for a key that holds dots, as in
// metadata.labels['app.kubernetes.io/name']. The value must be a primitive.
func fieldValue(object map[string]any, path string) (string, error) {
	keys, err := splitPath(path)
	if err != nil {
		return "", fmt.Errorf("fieldPath %q: %w", path, err)
	}
	var at any = object
	for _, key := range keys {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return "", fmt.Errorf("fieldPath %q: there is no %q in the object", path, key)
			}
			at = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return "", fmt.Errorf("fieldPath %q: %q is no index of a list of %d", path, key, len(v))
			}
			at = v[i]
		default:
			return "", fmt.Errorf("fieldPath %q: nothing is below %q", path, key)
		}
	}
	return primitive(at, path)
}

func primitive(v any, path string) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool, int, int32, int64, float64, json.Number:
		return Text(v), nil
	}
	return "", fmt.Errorf("fieldPath %q: the value is a %s, not a string, number or bool", path, kindOf(v))
}

func splitPath(path string) ([]string, error) {
	rest := strings.TrimPrefix(path, ".")
	if rest == "" {
		return nil, fmt.Errorf("it is empty")
	}
	var keys []string
	for rest != "" {
		if rest[0] == '[' {
			key, after, err := bracket(rest)
			if err != nil {
				return nil, err
			}
			keys, rest = append(keys, key), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			return append(keys, rest), nil
		}
		keys = append(keys, rest[:end])
		if rest = rest[end:]; rest[0] == '.' {
			rest = rest[1:]
		}
	}
	return keys, nil
}

// bracket cuts a leading [key] or ['key'] off.
func bracket(s string) (key, rest string, err error) {
	if len(s) > 1 && (s[1] == '\'' || s[1] == '"') {
		closing := string(s[1]) + "]"
		end := strings.Index(s[2:], closing)
		if end < 0 {
			return "", "", fmt.Errorf("%q has no closing %s", s, closing)
		}
		return s[2 : 2+end], s[2+end+2:], nil
	}
	end := strings.IndexByte(s, ']')
	if end < 0 {
		return "", "", fmt.Errorf("%q has no closing ]", s)
	}
	return s[1:end], s[end+1:], nil
}
