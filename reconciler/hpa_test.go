package reconciler

import (
	"fmt"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// A canary at a constant load, however many idle pods stand beside it: the HPA
// controller finds nothing to do from the first step to the last.
func TestC77_ACanaryAtAConstantLoadMovesNothing(t *testing.T) {
	s := newScaledLab(newLab(t))
	s.begin(routedRollout(setWeight(0), untilPromoted, setWeight(20), untilPromoted, setWeight(75), untilPromoted))
	s.release()
	for _, step := range []struct{ index, canary int32 }{{1, 0}, {3, 1}, {5, 3}} {
		s.pausedAt(step.index)
		s.looks(func() error { return s.sizesAre(4, 4, step.canary) })
		s.say(v1alpha1.PromoteAnnotation, step.index)
	}
	s.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == s.v2 })
	s.looks(func() error {
		if d, a := s.podsOf(s.v2); d != 4 || a != 4 {
			return fmt.Errorf("%d pods, %d available, after the promotion", d, a)
		}
		return nil
	})
	if sizes := s.sized(); !slices.Equal(sizes, []int32{4}) {
		t.Errorf("the load was constant, and replicas were %v", sizes)
	}
}

// A canary that costs more than stable is seen through the pods beside it, and the
// size falls again only when the canary has no traffic any more.
func TestC77_ALoadedCanaryIsNotHidden(t *testing.T) {
	s := newScaledLab(newLab(t))
	s.begin(routedRollout(setWeight(20), untilPromoted))
	s.dear.Store(6) // 160 on stable and 6 * 40 on the canary are right for 8 pods
	s.release()
	paused := s.pausedAt(1)
	s.sizesBecome(8, 8, 2)
	s.looks(func() error { return s.sizesAre(8, 8, 2) })
	if now := s.rollout(); !atPause(1)(now) || now.Status.Attempt != paused.Status.Attempt || s.canaryWeight() != 20 {
		t.Errorf("the size moved the rollout: step %s, phase %s, weight %d", now.Status.Step, now.Status.Phase, s.canaryWeight())
	}
	s.total.Store(2 * wanted)
	s.dear.Store(1)
	clustertest.Eventually(s, patience, func() error { // the HPA asks for less
		if size := *s.rollout().Spec.Replicas; size != 2 {
			return fmt.Errorf("replicas %d, want 2", size)
		}
		return nil
	})
	s.looks(func() error { return s.sizesAre(2, 8, 2) })
	s.say(v1alpha1.PromoteAnnotation, 1)
	s.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == s.v2 })
	clustertest.Eventually(s, patience, func() error {
		if d, a := s.podsOf(s.v2); d != 2 || a != 2 {
			return fmt.Errorf("%d pods, %d available, want 2", d, a)
		}
		return nil
	})
}

// An aborted version gets no pod from a scaler, although stable is short of some.
func TestC23_AScalerGrowsStableAloneAfterAnAbort(t *testing.T) {
	s := newScaledLab(newLab(t))
	rollout := routedRollout(setWeight(50), untilPromoted)
	rollout.Spec.Strategy.Canary.DynamicStableScale = true
	rollout.Spec.Strategy.Canary.AbortScaleDownDelaySeconds = ptr.To[int32](0) // the aborted pods stay
	s.begin(rollout)
	s.release()
	s.pausedAt(1)
	s.sizesBecome(4, 2, 2)
	s.say(v1alpha1.AbortAnnotation, 1)
	s.total.Store(8 * wanted)
	grown := func() error {
		if d, _ := s.podsOf(s.v2); d > 2 {
			t.Fatalf("the aborted version was given %d pods", d)
		}
		return s.sizesAre(8, 8, 2)
	}
	clustertest.Eventually(s, patience, grown)
	selected := s.selectedHashOf(s.canary)
	s.looks(func() error {
		if now := s.selectedHashOf(s.canary); now != selected {
			return fmt.Errorf("the canary Service selects %s, then %s", selected, now)
		}
		return grown()
	})
	if now := s.rollout(); now.Status.Phase != v1alpha1.RolloutPhaseDegraded || s.canaryWeight() != 0 {
		t.Errorf("phase %s, weight %d; want Degraded and 0", now.Status.Phase, s.canaryWeight())
	}
}

// A scale event in the middle of a blue-green update changes counts and nothing
// else, and the promotion goes on later.
func TestC22_ScalingAPreviewChangesCountsOnly(t *testing.T) {
	s := newScaledLab(newLab(t))
	s.stable, s.canary = "web-active", "web-preview"
	rollout := webRollout()
	rollout.Spec.Strategy = v1alpha1.RolloutStrategy{BlueGreen: &v1alpha1.BlueGreenStrategy{
		ActiveService: s.stable, PreviewService: s.canary, PreviewReplicaCount: ptr.To[int32](1),
		PrePromotionAnalysis: &v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "rate"}}},
	}}
	template := &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "rate"}}
	template.Spec.Metrics = []v1alpha1.Metric{{Name: "rate", SuccessCondition: "result[0] > 0.5",
		Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus.example.com", Query: "up"}}}}
	s.create(template)
	s.begin(rollout)
	s.release()
	s.sizesBecome(4, 4, 1)
	run := s.runOf(s.v2)
	before := s.rollout()
	for _, size := range []int32{8, 3} {
		s.total.Store(int64(size) * wanted)
		s.sizesBecome(size, size, 1)
		s.looks(func() error { return s.sizesAre(size, size, 1) })
	}
	now := s.rollout()
	if now.Status.Phase != before.Status.Phase || now.Status.Attempt != before.Status.Attempt || now.Status.BlueGreen.PreviewSelector != s.v2 ||
		s.selectedHashOf(s.stable) != s.v1 || s.selectedHashOf(s.canary) != s.v2 || s.runOf(s.v2).UID != run.UID {
		t.Errorf("the size moved more than counts: phase %s, attempt %d, active %s, preview %s",
			now.Status.Phase, now.Status.Attempt, s.selectedHashOf(s.stable), s.selectedHashOf(s.canary))
	}
	s.ends(s.runOf(s.v2), v1alpha1.AnalysisPhaseSuccessful, "")
	s.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return r.Status.StableRS == s.v2 })
	if d, a := s.podsOf(s.v2); d != 3 || a != 3 {
		t.Errorf("%d pods, %d available, after the promotion; want 3", d, a)
	}
}

// Where stable shrinks as the canary grows, both are one size to a scaler.
func TestC77_DynamicStableScaleUnderAScaler(t *testing.T) {
	s := newScaledLab(newLab(t))
	rollout := routedRollout(setWeight(50), untilPromoted)
	rollout.Spec.Strategy.Canary.DynamicStableScale = true
	s.begin(rollout)
	s.release()
	s.pausedAt(1)
	s.sizesBecome(4, 2, 2)
	s.looks(func() error { return s.sizesAre(4, 2, 2) })
	if sizes := s.sized(); !slices.Equal(sizes, []int32{4}) {
		t.Errorf("the load was constant, and replicas were %v", sizes)
	}
	s.total.Store(8 * wanted)
	s.sizesBecome(8, 4, 4)
	if now := s.rollout(); !atPause(1)(now) || s.canaryWeight() != 50 {
		t.Errorf("the size moved the rollout: step %s, phase %s, weight %d", now.Status.Step, now.Status.Phase, s.canaryWeight())
	}
	s.say(v1alpha1.PromoteAnnotation, 1)
	s.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == s.v2 })
	s.looks(func() error {
		if d, a := s.podsOf(s.v2); d != 8 || a < 8 {
			return fmt.Errorf("%d pods, %d available, want 8", d, a)
		}
		return nil
	})
}

// apply declares the Rollout as a GitOps tool does, with a size or without.
func (l *lab) apply(replicas *int32, force bool) error {
	l.Helper()
	declared := map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.RolloutKind,
		"metadata": map[string]any{"namespace": l.namespace, "name": "web"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": sizedTemplate("web:1"),
			"strategy": map[string]any{"canary": map[string]any{"steps": []any{map[string]any{"setWeight": int64(20)}, map[string]any{"pause": map[string]any{}}}}},
		},
	}
	if replicas != nil {
		declared["spec"].(map[string]any)["replicas"] = int64(*replicas)
	}
	options := []client.ApplyOption{client.FieldOwner("a-gitops-tool")}
	if force {
		options = append(options, client.ForceOwnership)
	}
	return l.client.Apply(l.Context(), client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: declared}), options...)
}

// Nobody is scaled to one when a size leaves Git: the live one stays, and a scaler
// can set it, which the scale subresource allows only if there is one.
func TestASizeThatLeavesTheSpecStays(t *testing.T) {
	for name, first := range map[string]*int32{"four": ptr.To[int32](4), "none": ptr.To[int32](0), "never given": nil} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			want := ptr.Deref(first, 1)
			if err := l.apply(first, true); err != nil {
				t.Fatal(err)
			}
			l.watch()
			l.reach("healthy", patience, healthy)
			if err := l.apply(nil, true); err != nil {
				t.Fatal(err)
			}
			scale := &autoscalingv1.Scale{}
			clustertest.Eventually(l, patience, func() error {
				for _, set := range l.sets() {
					if *set.Spec.Replicas != want {
						t.Fatalf("the version was given %d pods", *set.Spec.Replicas)
					}
				}
				return l.client.SubResource("scale").Get(t.Context(), l.rollout(), scale)
			})
			if scale.Spec.Replicas != want {
				t.Fatalf("the scale subresource says %d, want %d", scale.Spec.Replicas, want)
			}
			clustertest.Eventually(l, patience, func() error {
				rollout := l.rollout()
				if err := l.client.SubResource("scale").Get(t.Context(), rollout, scale); err != nil {
					return err
				}
				scale.Spec.Replicas = 6
				return l.client.SubResource("scale").Update(t.Context(), rollout, client.WithSubResourceBody(scale), client.FieldOwner("a-scaler"))
			})
			if err := l.apply(nil, false); err != nil { // it is the scaler's field now
				t.Fatal(err)
			}
			clustertest.Eventually(l, patience, func() error {
				if sets := l.sets(); len(sets) != 1 || sets[0].Status.AvailableReplicas != 6 {
					return fmt.Errorf("sizes %v", sets)
				}
				return nil
			})
			l.reach("healthy", patience, healthy)
			l.settled() // and nothing is written any more
		})
	}
}
