package revert

import "encoding/json"

// references are the fields of a pod template that name a ConfigMap or Secret.
var references = map[string]map[string]string{
	"ConfigMap": {"configMap": "name", "configMapRef": "name", "configMapKeyRef": "name"},
	"Secret":    {"secret": "secretName", "secretRef": "name", "secretKeyRef": "name", "imagePullSecrets": "name"},
}

// names are the objects of a kind that an object's pod template names.
func names(raw []byte, kind string) map[string]bool {
	var object struct {
		Spec struct {
			Template any `json:"template"`
		} `json:"spec"`
	}
	found := map[string]bool{}
	if json.Unmarshal(raw, &object) == nil {
		collectNames(object.Spec.Template, references[kind], found)
	}
	return found
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
