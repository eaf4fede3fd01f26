package reconciler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

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
	// An abort reaches it all the same (law 4).
	l.change(func(r *v1alpha1.Rollout) {
		r.Annotations = map[string]string{v1alpha1.AbortAnnotation: r.Status.CurrentPodHash + "/1/stop"}
	})
	clustertest.Eventually(l, patience, func() error {
		if got := l.canaryWeight(); got != 0 {
			return errOr(nil, "aborted, and the canary still has traffic")
		}
		return nil
	})
}

// Another selection of rules of the same route: the rules that are named no more are
// given back as well.
func TestAChangedSelectionOfRulesGivesTheTrafficBackFirst(t *testing.T) {
	l := newLab(t)
	route, rollout := webRoute(), routedRollout(setWeight(25), untilPromoted)
	one, two := gatewayv1.SectionName("one"), gatewayv1.SectionName("two")
	second := *route.Spec.Rules[0].DeepCopy()
	route.Spec.Rules[0].Name, second.Name = &one, &two
	path := "/two"
	second.Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Value: &path}}}
	route.Spec.Rules = append(route.Spec.Rules, second)
	selecting := func(rule string) *v1alpha1.GatewayAPITrafficRouting {
		return &v1alpha1.GatewayAPITrafficRouting{HTTPRoutes: []v1alpha1.GatewayAPIRoute{{Name: "web", RuleNames: []string{rule}}}}
	}
	rollout.Spec.Strategy.Canary.TrafficRouting.GatewayAPI = selecting("one")
	l.create(webService("web-stable"), webService("web-canary"), route, rollout)
	l.watch()
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	l.reach("paused", patience, func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Strategy.Canary.TrafficRouting.GatewayAPI = selecting("two") })
	clustertest.Eventually(l, patience, func() error {
		live := &gatewayv1.HTTPRoute{}
		if err := l.get("web", live); err != nil {
			return err
		}
		was, now := live.Spec.Rules[0].BackendRefs[1].Weight, live.Spec.Rules[1].BackendRefs[1].Weight
		if was == nil || *was != 0 || now == nil || *now != 25 {
			return errOr(nil, "the old rule keeps its weight, or the new one has none")
		}
		return nil
	})
}

// Two Rollouts name one Service: the one that has it keeps it, and the other waits
// and says so; when the first is gone, the other takes it over (law 9).
func TestAServiceIsOneRolloutsAtATime(t *testing.T) {
	l := newLab(t)
	l.routed()
	l.watch()
	l.reach("healthy", patience, healthy)
	other := routedRollout()
	other.Name = "renamed"
	other.Spec.Template = rawTemplate(podTemplate("web:2"))
	other.Spec.Selector.MatchLabels["by"] = "renamed"
	template := podTemplate("web:2")
	template["metadata"].(map[string]any)["labels"].(map[string]any)["by"] = "renamed"
	other.Spec.Template = rawTemplate(template)
	l.create(other)
	renamed := &v1alpha1.Rollout{}
	clustertest.Eventually(l, patience, func() error {
		if err := l.get("renamed", renamed); err != nil {
			return err
		}
		if !strings.Contains(renamed.Status.Message, "Rollout web routes through it too") {
			return errOr(nil, "it says "+renamed.Status.Message)
		}
		return nil
	})
	first := l.hashOf(podTemplate("web:1"))
	l.settled()
	if got := l.selectedHashOf("web-stable"); got != first || len(renamed.Finalizers) > 0 {
		t.Errorf("the Service selects %s, and the one that waits has %v", got, renamed.Finalizers)
	}
	if err := l.client.Delete(t.Context(), l.rollout()); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(l, patience, func() error {
		if got := l.selectedHashOf("web-stable"); got != l.hashOf(template) {
			return errOr(nil, "the Service selects "+got)
		}
		return nil
	})
}
