package reconciler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// The roles of a blue-green Rollout: their metadata reaches the pods in place, and
// the preview's pods keep off the hosts of the active ones.
func TestBlueGreenRoles(t *testing.T) {
	l := newLab(t)
	rollout := webRollout()
	manually := false
	rollout.Spec.Strategy = v1alpha1.RolloutStrategy{BlueGreen: &v1alpha1.BlueGreenStrategy{
		ActiveService: "web-active", PreviewService: "web-preview", AutoPromotionEnabled: &manually,
		ActiveMetadata:  &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": "active"}},
		PreviewMetadata: &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": "preview", "trial": "yes"}},
		AntiAffinity:    preferred(40),
	}}
	l.create(webService("web-active"), webService("web-preview"), rollout)
	l.byHand()
	first, second := l.hashOf(podTemplate("web:1")), l.hashOf(podTemplate("web:2"))
	l.passesUntil("healthy", healthy)
	l.podsAre(map[string]int{first + " role=active trial= note=": 2})

	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	l.passesUntil("paused", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	previewed := l.podsAre(map[string]int{first + " role=active trial= note=": 2, second + " role=preview trial=yes note=": 2})
	want := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: 40, PodAffinityTerm: avoidTerm(first),
	}}}}
	if diff := cmp.Diff(want, l.affinityOf(second)); diff != "" {
		t.Errorf("the preview (-want +got):\n%s", diff)
	}

	l.change(func(r *v1alpha1.Rollout) {
		r.Annotations = map[string]string{v1alpha1.PromoteAnnotation: second + "/0/now"}
	})
	l.passesUntil("promoted", func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == second })
	// The old pods wait out their delay, with no role.
	promoted := l.podsAre(map[string]int{first + " role= trial= note=": 2, second + " role=active trial= note=": 2})
	for uid := range previewed {
		if _, still := promoted[uid]; !still {
			t.Errorf("pod %s was replaced", uid)
		}
	}
}
