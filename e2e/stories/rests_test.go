package stories

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/e2e/cluster"
)

// unbound lists the writes of the controller that don't carry what was read (law 17).
//
//	create                         the name is free, or it is refused
//	update, merge patch            resourceVersion: no two objects of a name ever share one
//	apply                          uid too, for with the resourceVersion alone a deleted object is made again;
//	                               one that makes the object (201) had nothing to read
//	delete                         uid and resourceVersion as preconditions
//	AnalysisRun, spec.terminate    uid: it only ever becomes true, whatever else has changed
func unbound(writes []cluster.Write) []string {
	var out []string
	for _, w := range writes {
		ours := strings.HasPrefix(w.User, "system:serviceaccount:pushback-system:")
		if !ours || w.DryRun() || w.Code > 201 || len(w.Body) == 0 {
			continue
		}
		if why := restsOnNothing(w); why != "" {
			out = append(out, fmt.Sprintf("%s %s: %s: %s", w.Verb, w.URI, why, w.Body))
		}
	}
	return out
}

func restsOnNothing(w cluster.Write) string {
	var body struct {
		APIVersion, Kind        string
		Metadata, Preconditions struct{ UID, ResourceVersion string }
		Spec                    map[string]any
	}
	if err := json.Unmarshal(w.Body, &body); err != nil {
		return "no JSON object: " + err.Error()
	}
	switch {
	case w.Verb == "delete":
		if body.Preconditions.UID == "" || body.Preconditions.ResourceVersion == "" {
			return "no preconditions"
		}
	case w.Verb == "patch" && body.Kind != "" && w.Code == 201:
	case w.Verb == "patch" && body.Kind != "":
		if body.Metadata.UID == "" || body.Metadata.ResourceVersion == "" {
			return "an apply without uid and resourceVersion"
		}
	case w.Resource == "analysisruns" && len(body.Spec) == 1 && body.Spec["terminate"] == true:
		if body.Metadata.UID == "" {
			return "no uid"
		}
	case body.Metadata.ResourceVersion == "":
		return "no resourceVersion"
	}
	return ""
}

// TestUnboundWritesAreFound: the check that is made of all writes of all stories
// can tell.
func TestUnboundWritesAreFound(t *testing.T) {
	const bound = `{"uid":"u","resourceVersion":"7"}`
	cases := map[string]struct {
		verb, resource, body string
		code                 int
		found                bool
	}{
		"patch":            {"patch", "replicasets", `{"metadata":{"resourceVersion":"7"}}`, 200, false},
		"bare patch":       {"patch", "replicasets", `{"spec":{"replicas":1}}`, 200, true},
		"refused":          {"patch", "replicasets", `{"spec":{"replicas":1}}`, 409, false},
		"update":           {"update", "services", `{"apiVersion":"v1","kind":"Service","metadata":` + bound + `}`, 200, false},
		"bare update":      {"update", "services", `{"apiVersion":"v1","kind":"Service","metadata":{}}`, 200, true},
		"apply":            {"patch", "services", `{"apiVersion":"v1","kind":"Service","metadata":` + bound + `}`, 200, false},
		"apply, made":      {"patch", "services", `{"apiVersion":"v1","kind":"Service","metadata":{}}`, 201, false},
		"apply, no uid":    {"patch", "services", `{"apiVersion":"v1","kind":"Service","metadata":{"resourceVersion":"7"}}`, 200, true},
		"delete":           {"delete", "services", `{"preconditions":` + bound + `}`, 200, false},
		"bare delete":      {"delete", "services", `{"propagationPolicy":"Background"}`, 200, true},
		"terminate":        {"patch", "analysisruns", `{"metadata":{"uid":"u"},"spec":{"terminate":true}}`, 200, false},
		"bare terminate":   {"patch", "analysisruns", `{"spec":{"terminate":true}}`, 200, true},
		"more than an end": {"patch", "analysisruns", `{"metadata":{"uid":"u"},"spec":{"terminate":true,"args":[]}}`, 200, true},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			found := unbound([]cluster.Write{{User: "system:serviceaccount:pushback-system:pushback-controller", Verb: tc.verb,
				Resource: tc.resource, Body: json.RawMessage(tc.body), Code: tc.code}})
			if len(found) > 0 != tc.found {
				t.Errorf("found %v, want %v", found, tc.found)
			}
		})
	}
}
