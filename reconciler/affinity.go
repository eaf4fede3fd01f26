package reconciler

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// antiAffinityOf is what the strategy declares; nil for none.
func antiAffinityOf(s v1alpha1.RolloutStrategy) *v1alpha1.AntiAffinity {
	switch {
	case s.Canary != nil:
		return s.Canary.AntiAffinity
	case s.BlueGreen != nil:
		return s.BlueGreen.AntiAffinity
	}
	return nil
}

// avoidTerm matches the pods of one version on the same host.
func avoidTerm(hash string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: v1alpha1.TemplateHashLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{hash},
		}}},
	}
}

// ours says that a term is one of avoidTerm. A template that is declared can't
// hold one: it would have to know the hash of another.
func ours(term corev1.PodAffinityTerm) bool {
	if term.TopologyKey != corev1.LabelHostname || term.LabelSelector == nil || len(term.LabelSelector.MatchLabels) > 0 {
		return false
	}
	expressions := term.LabelSelector.MatchExpressions
	return len(expressions) == 1 && expressions[0].Key == v1alpha1.TemplateHashLabel && expressions[0].Operator == metav1.LabelSelectorOpIn
}

// addAvoidance keeps the pods of a template off the hosts of a version, beside
// whatever affinity the template declares. The rule is no part of its identity.
func addAvoidance(template map[string]any, rule *v1alpha1.AntiAffinity, hash string) error {
	if rule == nil || hash == "" {
		return nil
	}
	anti, field := template, "spec.template"
	for _, name := range []string{"spec", "affinity", "podAntiAffinity"} {
		field += "." + name
		if anti[name] == nil {
			anti[name] = map[string]any{}
		}
		inner, ok := anti[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: it is no object", field)
		}
		anti = inner
	}
	term := avoidTerm(hash)
	if rule.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if err := appendTo(anti, field, "requiredDuringSchedulingIgnoredDuringExecution", &term); err != nil {
			return err
		}
	}
	if preferred := rule.PreferredDuringSchedulingIgnoredDuringExecution; preferred != nil {
		return appendTo(anti, field, "preferredDuringSchedulingIgnoredDuringExecution",
			&corev1.WeightedPodAffinityTerm{Weight: preferred.Weight, PodAffinityTerm: term})
	}
	return nil
}

// appendTo adds an item to a list of an object; field is the object's path.
func appendTo(object map[string]any, field, name string, item any) error {
	list, ok := object[name].([]any)
	if !ok && object[name] != nil {
		return fmt.Errorf("%s.%s: it is no list", field, name)
	}
	added, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		return fmt.Errorf("%s.%s: %w", field, name, err)
	}
	object[name] = append(slices.Clone(list), added)
	return nil
}

// idle says that a ReplicaSet has no pod and is to have none.
func idle(set *appsv1.ReplicaSet) bool {
	return set.Status.Replicas == 0 && (set.Spec.Replicas == nil || *set.Spec.Replicas == 0)
}

// renewAvoidance keeps a version that starts again off the hosts of the version
// that is stable now. It does so only if the ReplicaSet had no pod, so that
// none is restarted; all else in the template stays.
func renewAvoidance(set *appsv1.ReplicaSet, rule *v1alpha1.AntiAffinity, wasIdle bool, want plan.ReplicaSetWant) {
	if !wasIdle || want.Replicas == 0 || want.Role == v1alpha1.RoleStable {
		return
	}
	spec := &set.Spec.Template.Spec
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		if rule == nil || want.Avoid == "" {
			return
		}
		if spec.Affinity == nil {
			spec.Affinity = &corev1.Affinity{}
		}
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	anti := spec.Affinity.PodAntiAffinity
	anti.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(anti.RequiredDuringSchedulingIgnoredDuringExecution, ours)
	anti.PreferredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(anti.PreferredDuringSchedulingIgnoredDuringExecution,
		func(t corev1.WeightedPodAffinityTerm) bool { return ours(t.PodAffinityTerm) })
	if rule == nil || want.Avoid == "" {
		return
	}
	if rule.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution, avoidTerm(want.Avoid))
	}
	if preferred := rule.PreferredDuringSchedulingIgnoredDuringExecution; preferred != nil {
		anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: preferred.Weight, PodAffinityTerm: avoidTerm(want.Avoid)})
	}
}
