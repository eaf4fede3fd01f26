// Package web asks any URL and takes a value out of its answer.
//
// The value is what jsonPath finds, with its JSON type: a number is a float64, a list a
// []any, an object a map[string]any. null is no data (nil), and so is what [*] of an empty
// list and a filter that nothing satisfies give; a name or an index that isn't there is an
// error. Of several values that it finds the first is taken,
// as in Argo, and the measurement's metadata says so. An answer that is no JSON is the
// text itself, or an error when the metric has a jsonPath. Any status but 2xx is an error.
//
// Credentials are the metric's own: headers, a user with password, or OAuth2.
//
// It imports no Kubernetes client but its JSONPath, and no controller.
package web
