package validation

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// pods checks what a strategy adds to the pods of its versions.
func (c *collector) pods(spec v1alpha1.RolloutSpec) {
	if s := spec.Strategy.Canary; s != nil {
		c.roleMetadata(canaryField+".canaryMetadata", spec.Selector, s.CanaryMetadata)
		c.roleMetadata(canaryField+".stableMetadata", spec.Selector, s.StableMetadata)
		c.antiAffinity(canaryField+".antiAffinity", s.AntiAffinity)
	}
	if s := spec.Strategy.BlueGreen; s != nil {
		c.roleMetadata(blueGreenField+".previewMetadata", spec.Selector, s.PreviewMetadata)
		c.roleMetadata(blueGreenField+".activeMetadata", spec.Selector, s.ActiveMetadata)
		c.antiAffinity(blueGreenField+".antiAffinity", s.AntiAffinity)
	}
}

// roleMetadata must not touch what tells whose a pod is: the selector and what
// Pushback itself writes.
func (c *collector) roleMetadata(field string, selector *metav1.LabelSelector, m *v1alpha1.PodTemplateMetadata) {
	if m == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		at := field + ".labels[" + key + "]"
		if selects(selector, key) {
			c.add(at, "spec.selector selects by this label, so that its pods would be nobody's: take another key")
		}
		c.roleKey(at, key)
		if wrong := names.IsValidLabelValue(m.Labels[key]); len(wrong) > 0 {
			c.add(at, "%q is no value of a label: %s", m.Labels[key], wrong[0])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		c.roleKey(field+".annotations["+key+"]", strings.ToLower(key)) // as the API server reads them
	}
}

func (c *collector) roleKey(at, key string) {
	prefix, _, _ := strings.Cut(key, "/")
	if prefix == v1alpha1.GroupVersion.Group && strings.Contains(key, "/") || key == v1alpha1.ArgoTemplateHashLabel {
		c.add(at, "Pushback itself writes keys like this one: take another")
		return
	}
	if wrong := names.IsQualifiedName(key); len(wrong) > 0 {
		c.add(at, "it is no key: %s", wrong[0])
	}
}

func selects(selector *metav1.LabelSelector, key string) bool {
	if selector == nil {
		return false
	}
	if _, ok := selector.MatchLabels[key]; ok {
		return true
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key })
}

// Weights of a preferred rule, as a pod's affinity has them.
const minAffinityWeight, maxAffinityWeight = 1, 100

// antiAffinity: one of the two rules (Argo's validation).
func (c *collector) antiAffinity(field string, a *v1alpha1.AntiAffinity) {
	if a == nil {
		return
	}
	preferred := a.PreferredDuringSchedulingIgnoredDuringExecution
	if (preferred == nil) == (a.RequiredDuringSchedulingIgnoredDuringExecution == nil) {
		c.add(field, "set exactly one of preferredDuringSchedulingIgnoredDuringExecution and requiredDuringSchedulingIgnoredDuringExecution")
	}
	if preferred != nil && (preferred.Weight < minAffinityWeight || preferred.Weight > maxAffinityWeight) {
		c.add(field+".preferredDuringSchedulingIgnoredDuringExecution.weight", "it is %d and must be %d to %d",
			preferred.Weight, minAffinityWeight, maxAffinityWeight)
	}
}
