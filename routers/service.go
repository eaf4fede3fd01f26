package routers

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ServiceClaims claims the template hash in the selectors of the Target's Services.
func ServiceClaims(t Target) []Claim {
	var claims []Claim
	for _, name := range []string{t.StableService, t.CanaryService} {
		if name != "" {
			claims = append(claims, ServiceClaim(t.Rollout.Namespace, name))
		}
	}
	return claims
}

// ServiceClaim claims the template hash in one Service's selector. The rest of
// the selector is Git's; but because the whole selector is atomic under
// server-side apply, Git's half can only be applied together with ours.
func ServiceClaim(namespace, name string) Claim {
	return Claim{
		Kind:      "Service",
		Namespace: namespace,
		Name:      name,
		Fields:    []string{"spec.selector[" + v1alpha1.TemplateHashLabel + "]"},
		Overlay:   overlaySelector,
	}
}

// overlaySelector carries the live hash over. A hash that Git declares (a
// Service that was exported from a cluster) is dropped: it would select the pods
// of a version that is gone. A Service that Git declares without a selector
// isn't given one.
func overlaySelector(declared, live map[string]any) (map[string]any, error) {
	out := runtime.DeepCopyJSON(declared)
	spec, _ := out["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	if len(selector) == 0 {
		return out, nil
	}
	delete(selector, v1alpha1.TemplateHashLabel)
	liveSpec, _ := live["spec"].(map[string]any)
	liveSelector, _ := liveSpec["selector"].(map[string]any)
	if hash, ok := liveSelector[v1alpha1.TemplateHashLabel].(string); ok && hash != "" {
		selector[v1alpha1.TemplateHashLabel] = hash
	}
	return out, nil
}
