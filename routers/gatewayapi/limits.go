package gatewayapi

import (
	"fmt"
	"slices"
)

// The most that an HTTPRoute holds.
const (
	mostRules   = 16
	mostMatches = 64  // of a rule
	mostInAll   = 128 // matches of all rules
	mostHeaders = 16  // of a match
	mostFilters = 16  // of a rule
)

// parts divides the matches of a copy into rules: one rule, or one a match where
// the rule rewrites the prefix that it matches, for then it may have one only.
func (m *managed) parts(at place) [][]any {
	matches := m.copies[at]
	if len(matches) == 0 {
		return nil
	}
	original := rulesOf(m.route)[at.rule]
	if !rewritesPrefix(original) {
		return [][]any{matches}
	}
	own := pathOf(mapsIn(matchesOf(original))[0])
	var out [][]any
	for _, match := range mapsIn(matches) {
		if pathOf(match) != own {
			m.problems = append(m.problems, invalid(m.route, m.sel, fmt.Sprintf("spec.rules[%d].filters", at.rule), fmt.Sprintf(
				"a managed route needs a copy of this rule for the path %s, and the rule replaces the prefix %s that it matches, so that the copy would rewrite otherwise: leave the path out of the managed route",
				pathOf(match).value, own.value)))
		}
		out = append(out, []any{match})
	}
	return out
}

// rewritesPrefix says that a filter of a rule or of one of its backends replaces
// the prefix that was matched.
func rewritesPrefix(rule map[string]any) bool {
	filters := mapsIn(rule["filters"])
	for _, ref := range mapsIn(rule["backendRefs"]) {
		filters = append(filters, mapsIn(ref["filters"])...)
	}
	return slices.ContainsFunc(filters, func(filter map[string]any) bool {
		for _, kind := range []string{"urlRewrite", "requestRedirect"} {
			change, _ := filter[kind].(map[string]any)
			path, _ := change["path"].(map[string]any)
			if path["type"] == "ReplacePrefixMatch" {
				return true
			}
		}
		return false
	})
}

// checkLimits says what the API server would refuse.
func (m *managed) checkLimits() {
	rules := rulesOf(m.route)
	all := 0
	exceed := func(field string, n int, what string, most int) {
		if n > most {
			m.problems = append(m.problems, invalid(m.route, m.sel, field, fmt.Sprintf(
				"with the rules of the managed routes there are %d %s, and an HTTPRoute holds %d: take rules or matches out, or use fewer managed routes", n, what, most)))
		}
	}
	for i, rule := range rules {
		matches := mapsIn(rule["matches"])
		all += max(1, len(matches))
		if !marked(rule, m.sel) {
			continue
		}
		at := fmt.Sprintf("spec.rules[%d]", i)
		exceed(at+".matches", len(matches), "matches in a rule", mostMatches)
		exceed(at+".filters", len(mapsIn(rule["filters"])), "filters in a rule", mostFilters)
		for _, match := range matches {
			exceed(at+".matches.headers", len(mapsIn(match["headers"])), "headers in a match", mostHeaders)
		}
	}
	exceed("spec.rules", len(rules), "rules", mostRules)
	exceed("spec.rules", all, "matches in all rules", mostInAll)
}
