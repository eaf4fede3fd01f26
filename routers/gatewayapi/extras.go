package gatewayapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/routers"
)

// ExtrasAnnotation of an HTTPRoute holds the extra Services that are in it, as a JSON
// object from the name of a Rollout to its []routers.Extra. It goes with the last of
// them, and tells which backends of a rule are the router's to take out.
//
// Everything else is done on the route without them, with their weights given back to
// stable: what it is with them is computed from that and from the annotation, so that
// an edit of either is seen.
const ExtrasAnnotation = "pushback.dev/experiment-weights"

// notedExtras reads the extra Services of all Rollouts from the annotation; an error
// means that somebody has written something else into it.
func notedExtras(route map[string]any) (map[string][]routers.Extra, error) {
	metadata, _ := route["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, there := annotations[ExtrasAnnotation].(string)
	if !there {
		return nil, nil
	}
	var all map[string][]routers.Extra
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", ExtrasAnnotation, err)
	}
	return all, nil
}

// namesOf are the Services that are this Rollout's extra ones.
func namesOf(route map[string]any, sel Selection) []string {
	all, err := notedExtras(route)
	if err != nil {
		return nil // Read says that it differs, and the next write puts it right
	}
	var names []string
	for _, e := range all[sel.Rollout] {
		names = append(names, e.Service)
	}
	return names
}

// noteExtras writes this Rollout's extra Services into the annotation of route, and
// takes out what can't be read.
func noteExtras(route map[string]any, sel Selection, wanted []routers.Extra) {
	all, err := notedExtras(route)
	before, there := all[sel.Rollout]
	if err == nil && (there || len(wanted) == 0) && routers.SameExtras(before, wanted) && (len(wanted) > 0) == there {
		return
	}
	next := map[string][]routers.Extra{}
	for rollout, extras := range all {
		next[rollout] = extras
	}
	delete(next, sel.Rollout)
	if len(wanted) > 0 {
		next[sel.Rollout] = wanted
	}
	if len(next) > 0 {
		text, _ := json.Marshal(next) // these types always marshal
		annotationsOf(route)[ExtrasAnnotation] = string(text)
		return
	}
	metadata, _ := route["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, ExtrasAnnotation)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// withoutExtras is a copy of route without these Services in the rules of both sides,
// and with their weights given back to stable.
func withoutExtras(route map[string]any, sel Selection, names []string) map[string]any {
	out := runtime.DeepCopyJSON(route)
	if len(names) == 0 {
		return out
	}
	for i, rule := range rulesOf(out) {
		p := pairOf(i, rule, sel)
		if len(p.stable) == 0 || len(p.canary) == 0 {
			continue
		}
		freed := int64(0)
		refs, _ := rule["backendRefs"].([]any)
		rule["backendRefs"] = slices.DeleteFunc(refs, func(item any) bool {
			ref, _ := item.(map[string]any)
			name, _ := ref["name"].(string)
			extra := slices.Contains(names, name) && namesService(ref, sel.Namespace, name)
			if extra {
				freed += weightOf(ref)
			}
			return extra
		})
		if freed > 0 {
			p.stable[0]["weight"] = weightOf(p.stable[0]) + freed
		}
	}
	return out
}

// addExtras puts extra Services into the rules of a route that has none of this
// Rollout's, in place: each as a copy of stable's backend, with a part of its weight.
func addExtras(route map[string]any, sel Selection, wanted []routers.Extra) []error {
	if len(wanted) == 0 {
		return nil
	}
	var problems []error
	pairs, _ := pairsIn(route, sel) // their problems are told with the weights
	for _, p := range pairs {
		if problem := p.addExtras(wanted); problem != "" {
			problems = append(problems, invalid(route, sel, p.path+".backendRefs", problem))
		}
	}
	return problems
}

func (p pair) addExtras(wanted []routers.Extra) (problem string) {
	if p.ambiguous() {
		return "it names one of the two Services more than once, so no part of stable's weight can be given to another: keep one backendRef for each"
	}
	stable, canary := p.weights()
	joint, left := stable+canary, stable
	refs, _ := p.rule["backendRefs"].([]any)
	for _, e := range wanted {
		part := roundedShare(joint, int64(e.Weight), p.whole)
		if joint == 0 || roundedShare(p.whole, part, joint) != int64(e.Weight) || part > left {
			return fmt.Sprintf("stable and canary share %d of the rule's weights, too few to give %d/%d to Service %s: multiply every weight of the rule by %d",
				joint, e.Weight, p.whole, e.Service, p.whole)
		}
		left -= part
		ref := runtime.DeepCopyJSON(p.stable[0])
		ref["name"], ref["weight"] = e.Service, part
		if port, there := ref["port"]; there {
			ref["port"] = e.Port(integer(port))
		}
		refs = append(refs, ref)
	}
	p.stable[0]["weight"] = left
	p.rule["backendRefs"] = refs
	return ""
}

// readExtras reads the extra Services of a route into out, and returns the route
// without them.
func readExtras(out *routers.Observed, route map[string]any, sel Selection) map[string]any {
	all, err := notedExtras(route)
	out.Extras = all[sel.Rollout]
	if err == nil && len(out.Extras) == 0 {
		return route
	}
	base := withoutExtras(route, sel, namesOf(route, sel))
	whole := runtime.DeepCopyJSON(base)
	problems := addExtras(whole, sel, out.Extras)
	out.RoutesDiffer = err != nil || len(problems) > 0 || !reflect.DeepEqual(rulesOf(whole), rulesOf(route))
	return base
}
