package reconciler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// selectedHashOf is the template hash in a Service's selector.
func (l *lab) selectedHashOf(name string) string {
	l.Helper()
	service := &corev1.Service{}
	if err := l.get(name, service); err != nil {
		l.Fatal(err)
	}
	return service.Spec.Selector[v1alpha1.TemplateHashLabel]
}

// half brings a routed Rollout to a pause at 50%, and returns the hashes of both versions.
func (l *lab) half() (stable, canary string) {
	l.Helper()
	l.routed(setWeight(50), untilPromoted)
	l.watch()
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	l.reach("paused", patience, func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	if got := l.canaryWeight(); got != 50 {
		l.Fatalf("the canary has %d", got)
	}
	return l.hashOf(podTemplate("web:1")), l.hashOf(podTemplate("web:2"))
}

// A Rollout that is deleted in the middle of a canary: its traffic is stable's
// before it goes, and the Services are as they were before it came. Its pods stay
// with those who ask for that.
func TestC112_DeletionGivesTheTrafficBack(t *testing.T) {
	l := newLab(t)
	stable, canary := l.half()
	if err := l.client.Delete(t.Context(), l.rollout(), client.PropagationPolicy("Orphan")); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(l, patience, func() error {
		err := l.get("web", &v1alpha1.Rollout{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errOr(err, "the Rollout is still there")
	})
	if got := l.canaryWeight(); got != 0 {
		t.Errorf("the canary still has %d", got)
	}
	for _, name := range []string{"web-stable", "web-canary"} {
		if got := l.selectedHashOf(name); got != "" {
			t.Errorf("Service %s still selects %s", name, got)
		}
	}
	for _, set := range l.sets() {
		want := map[string]int32{stable: 2, canary: 0}[set.Labels[v1alpha1.TemplateHashLabel]]
		if *set.Spec.Replicas != want {
			t.Errorf("ReplicaSet %s has %d pods, want %d", set.Name, *set.Spec.Replicas, want)
		}
	}
}

// The strategy changes from one kind to the other while the canary has half of the
// traffic: the old route gets it back before the new Services are used.
func TestAChangedStrategyGivesTheTrafficBackFirst(t *testing.T) {
	green := func(active string) func(*v1alpha1.Rollout) {
		return func(r *v1alpha1.Rollout) {
			manually := false
			r.Spec.Strategy = v1alpha1.RolloutStrategy{BlueGreen: &v1alpha1.BlueGreenStrategy{ActiveService: active, AutoPromotionEnabled: &manually}}
		}
	}
	for name, tt := range map[string]struct {
		change   func(*v1alpha1.Rollout)
		reaches  func(*v1alpha1.Rollout) bool
		selected map[string]func(stable, canary string) string
	}{
		"blue-green with the same Service": {
			change:  green("web-stable"),
			reaches: func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused },
			selected: map[string]func(string, string) string{
				"web-stable": func(stable, _ string) string { return stable },
				"web-canary": func(string, string) string { return "" },
			},
		},
		"no router any more": {
			change: func(r *v1alpha1.Rollout) {
				r.Spec.Strategy.Canary.TrafficRouting, r.Spec.Strategy.Canary.Steps = nil, nil
				r.Spec.Strategy.Canary.StableService, r.Spec.Strategy.Canary.CanaryService = "", ""
			},
			reaches: healthy,
			selected: map[string]func(string, string) string{
				"web-stable": func(string, string) string { return "" },
				"web-canary": func(string, string) string { return "" },
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			stable, canary := l.half()
			l.change(tt.change)
			clustertest.Eventually(l, patience, func() error {
				if l.canaryWeight() != 0 {
					return errOr(nil, "the canary has traffic")
				}
				for service, want := range tt.selected {
					if got := l.selectedHashOf(service); got != want(stable, canary) {
						return errOr(nil, service+" selects "+got)
					}
				}
				return nil
			})
			now := l.reach("settled", patience, tt.reaches)
			if now.Status.Routed != nil && now.Status.Routed.TrafficRouting != nil {
				t.Errorf("the status still remembers %+v", now.Status.Routed)
			}
			want := []string{v1alpha1.TrafficFinalizer}
			if now.Spec.Strategy.BlueGreen == nil {
				want = nil
			}
			if got := now.Finalizers; len(got) != len(want) {
				t.Errorf("finalizers %v, want %v", got, want)
			}
		})
	}
}

// A spec that can't be used gives nothing back: it may be a slip.
func TestASpecThatCannotBeUsedKeepsTheTraffic(t *testing.T) {
	l := newLab(t)
	l.half()
	l.change(func(r *v1alpha1.Rollout) {
		r.Spec.Strategy.Canary.TrafficRouting = nil
		r.Spec.Strategy.Canary.ScaleDownDelaySeconds = new(int32) // without a router it has no meaning
	})
	l.reach("refused", patience, func(r *v1alpha1.Rollout) bool { return r.Status.ObservedGeneration == r.Generation })
	before := l.canaryWeight()
	l.settled()
	if got := l.canaryWeight(); before != 50 || got != 50 {
		t.Errorf("the canary had %d, and has %d", before, got)
	}
}
