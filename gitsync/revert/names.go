package revert

import "encoding/json"

// references are the fields of a pod template that name a ConfigMap or Secret.
var references = map[string]map[string]string{
	"ConfigMap": {"configMap": "name", "configMapRef": "name", "configMapKeyRef": "name"},
	"Secret":    {"secret": "secretName", "secretRef": "name", "secretKeyRef": "name", "imagePullSecrets": "name"},
}

// names are the objects of a kind that an object's pod template, at path, names.
func names(raw []byte, path []string, kind string) map[string]bool {
	var object map[string]any
	found := map[string]bool{}
	if json.Unmarshal(raw, &object) == nil {
		holder, last := container(object, path)
		collectNames(holder[last], references[kind], found)
	}
	return found
}

// container is the mapping that holds what is at a path, and its key; nil when
// there is none.
func container(object map[string]any, path []string) (map[string]any, string) {
	last := len(path) - 1
	for _, key := range path[:last] {
		object, _ = object[key].(map[string]any)
	}
	return object, path[last]
}

func collectNames(value any, fields map[string]string, found map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			collectNames(item, fields, found)
		}
	case map[string]any:
		for key, inner := range v {
			if field, ok := fields[key]; ok {
				addName(inner, field, found)
			}
			collectNames(inner, fields, found)
		}
	}
}

// addName also takes the field "name", which a projected secret uses.
func addName(value any, field string, found map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			addName(item, field, found)
		}
	case map[string]any:
		for _, key := range []string{field, "name"} {
			if name, ok := v[key].(string); ok {
				found[name] = true
			}
		}
	}
}
