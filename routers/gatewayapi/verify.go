package gatewayapi

import (
	"fmt"
	"strings"

	"github.com/pushback-dev/pushback/routers"
)

// verification says whether every gateway of the route has taken up its current
// generation with all backends resolved. That is the most that the Gateway API
// tells: it has no word for "the proxies have it".
//
// Pending: a condition speaks of an older generation, or Accepted or ResolvedRefs
// is not True. Unknown: a gateway reports nothing, or no generation.
func verification(route map[string]any) (routers.Verification, string) {
	metadata, _ := route["metadata"].(map[string]any)
	generation := integer(metadata["generation"])
	status, _ := route["status"].(map[string]any)
	reported := map[string]map[string]any{}
	for _, parent := range mapsIn(status["parents"]) {
		ref, _ := parent["parentRef"].(map[string]any)
		reported[parentName(ref)] = parent
	}
	spec, _ := route["spec"].(map[string]any)
	overall, message := routers.Verified, ""
	parents := mapsIn(spec["parentRefs"])
	if len(parents) == 0 {
		return routers.VerificationUnknown, "the route has no parentRefs: no gateway serves it"
	}
	for _, ref := range parents {
		name := parentName(ref)
		state, why := parentState(reported[name], generation)
		if worse(state, overall) {
			overall, message = state, fmt.Sprintf("%s: %s", name, why)
		}
	}
	return overall, message
}

// worse orders Verified before Unknown before Pending.
func worse(a, b routers.Verification) bool {
	rank := map[routers.Verification]int{routers.Verified: 0, routers.VerificationUnknown: 1, routers.VerificationPending: 2}
	return rank[a] > rank[b]
}

// parentState judges what one gateway reports.
func parentState(parent map[string]any, generation int64) (routers.Verification, string) {
	conditions := map[string]map[string]any{}
	for _, condition := range mapsIn(parent["conditions"]) {
		conditions[textOr(condition, "type", "")] = condition
	}
	unknown := ""
	for _, kind := range []string{"Accepted", "ResolvedRefs"} {
		condition := conditions[kind]
		observed := integer(condition["observedGeneration"])
		switch {
		case condition == nil:
			unknown = fmt.Sprintf("does not report %s", kind)
		case observed > 0 && observed < generation:
			return routers.VerificationPending, fmt.Sprintf("%s is reported for generation %d, the route is at %d", kind, observed, generation)
		case condition["status"] != "True":
			return routers.VerificationPending, fmt.Sprintf("%s is %s: %s", kind, textOr(condition, "status", "Unknown"), reasonOf(condition))
		case observed == 0:
			unknown = fmt.Sprintf("does not say of which generation %s speaks", kind)
		}
	}
	if unknown != "" {
		return routers.VerificationUnknown, unknown
	}
	return routers.Verified, ""
}

func reasonOf(condition map[string]any) string {
	parts := []string{textOr(condition, "reason", "no reason given")}
	if message := textOr(condition, "message", ""); message != "" {
		parts = append(parts, message)
	}
	return strings.Join(parts, ", ")
}

// parentName names a parentRef for people and tells it from its siblings.
func parentName(ref map[string]any) string {
	name := textOr(ref, "kind", "Gateway") + " " + textOr(ref, "name", "")
	if namespace := textOr(ref, "namespace", ""); namespace != "" {
		name = textOr(ref, "kind", "Gateway") + " " + namespace + "/" + textOr(ref, "name", "")
	}
	if section := textOr(ref, "sectionName", ""); section != "" {
		name += ", listener " + section
	}
	if port := integer(ref["port"]); port != 0 {
		name += fmt.Sprintf(", port %d", port)
	}
	return name
}
