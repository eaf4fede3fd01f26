package gatewayapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pushback-dev/pushback/routers"
)

// RoutesAnnotation of an HTTPRoute holds the managed routes that are in it, as a
// JSON object from the name of a Rollout to its []routers.ManagedRoute. It goes
// with the last of them.
//
// A managed rule is found by its name, which begins with "pushback.<rollout>.":
// the name moves with the rule, whoever re-orders the list. What the rule is to be
// is computed from the annotation and from the base rules, so that an edit of
// either is seen. Both are in one write.
const RoutesAnnotation = "pushback.dev/managed-routes"

// mark begins the names of all managed rules of a Rollout, and of no others.
func mark(rollout string) string { return "pushback." + label(rollout) + "." }

// ruleName names the n-th rule of a managed route.
func ruleName(rollout, route string, n int) string {
	return fmt.Sprintf("%s%s.%d", mark(rollout), label(route), n)
}

// keptName names the n-th rule that keeps requests with a rule of somebody else.
func keptName(rollout string, n int) string { return fmt.Sprintf("%skept-%d", mark(rollout), n) }

var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

// label makes a DNS label of a name, the same for the same name; what is changed
// or cut gets a hash, so that two names don't become one.
func label(name string) string {
	out := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if out == name && len(out) <= 63 {
		return out
	}
	sum := sha256.Sum256([]byte(name))
	return strings.Trim(out[:min(len(out), 54)], "-") + "x" + hex.EncodeToString(sum[:4])
}

// marked says that a rule is a managed one of this Rollout.
func marked(rule map[string]any, sel Selection) bool {
	return strings.HasPrefix(textOr(rule, "name", ""), mark(sel.Rollout))
}

// noted reads the managed routes of all Rollouts from the annotation; an error
// means that somebody has written something else into it.
func noted(route map[string]any) (map[string][]routers.ManagedRoute, error) {
	metadata, _ := route["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, there := annotations[RoutesAnnotation].(string)
	if !there {
		return nil, nil
	}
	var all map[string][]routers.ManagedRoute
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", RoutesAnnotation, err)
	}
	return all, nil
}

// note writes this Rollout's managed routes into the annotation of route, and
// takes out what can't be read.
func note(route map[string]any, sel Selection, wanted []routers.ManagedRoute) {
	all, err := noted(route)
	before, there := all[sel.Rollout]
	if err == nil && !there && len(wanted) == 0 || there && routers.SameRoutes(before, wanted) && len(wanted) > 0 {
		return
	}
	next := map[string][]routers.ManagedRoute{}
	for rollout, routes := range all {
		next[rollout] = routes
	}
	delete(next, sel.Rollout)
	if len(wanted) > 0 {
		next[sel.Rollout] = wanted
	}
	if len(next) == 0 {
		metadata, _ := route["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, RoutesAnnotation)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		return
	}
	text, _ := json.Marshal(next) // these types always marshal
	annotationsOf(route)[RoutesAnnotation] = string(text)
}

// annotationsOf returns the annotations to write to, made if there are none.
func annotationsOf(route map[string]any) map[string]any {
	metadata, ok := route["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		route["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	return annotations
}

// takeOut removes the managed rules of this Rollout from route, in place.
func takeOut(route map[string]any, sel Selection) {
	spec, _ := route["spec"].(map[string]any)
	rules, _ := spec["rules"].([]any)
	if !slices.ContainsFunc(mapsIn(rules), func(rule map[string]any) bool { return marked(rule, sel) }) {
		return
	}
	spec["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
		object, _ := rule.(map[string]any)
		return marked(object, sel)
	})
}
