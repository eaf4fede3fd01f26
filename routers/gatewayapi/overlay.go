package gatewayapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Overlay returns the declared route with the live weights in the rules that are
// the router's; everything else is as declared. Neither argument is changed.
//
// Rules are matched by name, or else by their matches and backends, with the
// server's defaults. A rule that is new gets the largest canary share of the
// live route; without a live route the canary gets 0 whatever Git says, because
// it has no pods yet. Where Git changed what stable and canary have together
// beside other backends, the share is kept and not the weights.
//
// The managed routes of the live route are made anew from the declared rules, so
// that they follow an edit of the rule that they copy. Managed rules that Git
// declares (a route that was exported from a cluster) are dropped.
func Overlay(declared, live map[string]any, sel Selection) (map[string]any, error) {
	names := namesOf(live, sel)
	out := withoutExtras(declared, sel, names)
	extras, _ := notedExtras(live)
	live = withoutExtras(live, sel, names)
	takeOut(out, sel)
	note(out, sel, nil)
	pairs, _ := pairsIn(out, sel) // what can't be used is the router's to report
	livePairs, _ := pairsIn(live, sel)
	byKey := map[string]pair{}
	common := share{stable: sel.whole()}
	for _, p := range slices.Backward(livePairs) {
		if p.ambiguous() {
			continue
		}
		byKey[ruleKey(p.rule)] = p
		if share := p.share(); share.canary > common.canary {
			common = share
		}
	}
	var problems []error
	for _, p := range pairs {
		if p.ambiguous() {
			problems = append(problems, invalid(declared, sel, p.path+".backendRefs",
				"it names one of the two Services more than once: keep one backendRef for each, or split the rule"))
			continue
		}
		if before, ok := byKey[ruleKey(p.rule)]; ok {
			p.inherit(before)
		} else {
			p.inheritShare(common)
		}
	}
	// The annotation stays the router's alone: it isn't declared, so it isn't touched.
	if all, err := noted(live); err == nil {
		problems = append(problems, addRoutes(out, sel, all[sel.Rollout])...)
	}
	problems = append(problems, addExtras(out, sel, extras[sel.Rollout])...)
	return out, errors.Join(problems...)
}

// inherit takes the weights of the live rule over, or its share where they
// would change the part of other backends.
func (p pair) inherit(live pair) {
	stable, canary := p.weights()
	liveStable, liveCanary := live.weights()
	sameBudget := p.foreign && live.foreign && stable+canary == liveStable+liveCanary
	if sameBudget || !p.foreign && !live.foreign {
		p.set(liveStable, liveCanary)
		return
	}
	p.inheritShare(live.share())
}

// inheritShare gives the declared rule a share, to the nearest weight: a sync
// must not fail on a budget that is too small to split, the router says so.
func (p pair) inheritShare(s share) {
	if p.place(s, false) == "" {
		return
	}
	p.set(divide(sum(p.stable)+sum(p.canary), s))
}

// ruleKey identifies a rule from one version of its route to the next.
func ruleKey(rule map[string]any) string {
	if name := textOr(rule, "name", ""); name != "" {
		return "name " + name
	}
	var backends []string
	for _, ref := range mapsIn(rule["backendRefs"]) {
		backends = append(backends, fmt.Sprintf("%s/%s/%s/%s:%v", textOr(ref, "group", ""), textOr(ref, "kind", "Service"),
			textOr(ref, "namespace", ""), textOr(ref, "name", ""), ref["port"]))
	}
	slices.Sort(backends)
	key, _ := json.Marshal([]any{matchesOf(rule), backends}) // JSON values always marshal
	return "content " + string(key)
}

// matchesOf are the rule's matches with the defaults that the API server sets.
func matchesOf(rule map[string]any) []any {
	matches, _ := rule["matches"].([]any)
	if len(matches) == 0 {
		matches = []any{map[string]any{}}
	}
	out := runtime.DeepCopyJSONValue(matches).([]any)
	for _, match := range mapsIn(out) {
		if match == nil {
			continue
		}
		path, _ := match["path"].(map[string]any)
		match["path"] = map[string]any{"type": textOr(path, "type", "PathPrefix"), "value": textOr(path, "value", "/")}
		for _, list := range []string{"headers", "queryParams"} {
			for _, item := range mapsIn(match[list]) {
				if item != nil {
					item["type"] = textOr(item, "type", "Exact")
				}
			}
		}
	}
	return out
}
