package gatewayapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/routers"
)

// addRoutes puts the rules of managed routes into a route that has none of this
// Rollout's, in place. It adds, before each rule that names both Services, a copy
// of it for each managed route. A request goes to
//
//   - a copy of the rule that it met before, if that names both Services and a
//     managed route matches the request; with several, for the first of them;
//   - and else to the rule that it met before, or, where a copy of another rule
//     would outrank it, to a copy of it with nothing changed but the matches.
//
// Nothing of the rules that were there is changed. The problems say why a managed
// route can't be carried out; the result is of no use then.
func addRoutes(route map[string]any, sel Selection, wanted []routers.ManagedRoute) []error {
	if len(wanted) == 0 {
		return nil
	}
	pairs, _ := pairsIn(route, sel) // their problems are told with the weights
	m := managed{route: route, sel: sel, wanted: wanted, pairs: map[int]pair{}, copies: map[place][]any{}}
	for _, p := range pairs {
		m.pairs[p.index] = p
	}
	for i, rule := range rulesOf(route) {
		for _, match := range mapsIn(matchesOf(rule)) {
			m.table = append(m.table, entry{rule: i, match: match})
		}
	}
	for _, r := range wanted {
		matches, problem := conditions(r)
		if problem != "" {
			m.refuse("spec.rules", r, problem)
		}
		m.matches = append(m.matches, matches)
	}
	if len(m.problems) > 0 {
		return m.problems
	}
	m.claimRequests()
	m.insert()
	m.checkLimits()
	return m.problems
}

// managed is the work on one route.
type managed struct {
	route    map[string]any
	sel      Selection
	wanted   []routers.ManagedRoute
	matches  [][]map[string]any // of each wanted route
	pairs    map[int]pair       // by the index of their rule
	table    []entry
	copies   map[place][]any // the matches of each copy
	claims   int             // matches in copies
	problems []error
}

// place is what a copy is of and for: the index of a rule, and that of a managed
// route, or asItWas.
type place struct{ rule, wanted int }

// asItWas marks a copy that keeps requests with a rule of somebody else.
const asItWas = -1

func (m *managed) refuse(field string, r routers.ManagedRoute, problem string) {
	m.problems = append(m.problems, invalid(m.route, m.sel, field, fmt.Sprintf("managed route %q: %s", r.Name, problem)))
}

// insert puts the copies into the list: each before its rule, in the order of the
// managed routes, and before all of them those that keep requests where they were.
func (m *managed) insert() {
	rules := rulesOf(m.route)
	counts := map[int]int{}
	copyOf := func(at place, name func(n int) string) (out []any) {
		for _, part := range m.parts(at) {
			counts[at.wanted]++
			copied := runtime.DeepCopyJSON(rules[at.rule])
			copied["name"], copied["matches"] = name(counts[at.wanted]), part
			if at.wanted != asItWas {
				m.direct(copied, m.pairs[at.rule], m.wanted[at.wanted])
			}
			out = append(out, copied)
		}
		return out
	}
	var kept, out []any
	for i := range rules {
		kept = append(kept, copyOf(place{i, asItWas}, func(n int) string { return keptName(m.sel.Rollout, n) })...)
	}
	for i, rule := range rules {
		for r, wanted := range m.wanted {
			copies := copyOf(place{i, r}, func(n int) string { return ruleName(m.sel.Rollout, wanted.Name, n) })
			if len(copies) > 0 {
				out, kept = append(out, kept...), nil
			}
			out = append(out, copies...)
		}
		out = append(out, rule)
	}
	if spec, ok := m.route["spec"].(map[string]any); ok {
		spec["rules"] = out
	}
}

// direct makes a copy of a pair send its requests where the managed route says.
// No weight in the copy depends on the split: a header route has the canary
// alone, and what stable and canary have together beside other backends stays.
func (m *managed) direct(copied map[string]any, p pair, wanted routers.ManagedRoute) {
	canary := runtime.DeepCopyJSON(p.canary[0])
	canary["weight"] = int64(1)
	if wanted.Header != nil {
		copied["backendRefs"] = []any{canary}
		return
	}
	var refs []any
	for _, ref := range mapsIn(copied["backendRefs"]) {
		switch {
		case namesService(ref, m.sel.Namespace, m.sel.Canary):
			continue
		case namesService(ref, m.sel.Namespace, m.sel.Stable) && p.foreign:
			ref["weight"] = sum(p.stable) + sum(p.canary)
		case namesService(ref, m.sel.Namespace, m.sel.Stable):
			ref["weight"] = int64(1)
		}
		refs = append(refs, ref)
	}
	copied["backendRefs"] = refs
	target := map[string]any{"group": "", "kind": "Service", "name": canary["name"]}
	for _, key := range []string{"namespace", "port"} {
		if value, there := canary[key]; there {
			target[key] = value
		}
	}
	filters, _ := copied["filters"].([]any)
	copied["filters"] = append(filters, map[string]any{
		"type":          "RequestMirror",
		"requestMirror": map[string]any{"backendRef": target, "percent": int64(wanted.Mirror.Percentage)},
	})
}
