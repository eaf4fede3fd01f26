package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
	"github.com/pushback-dev/pushback/routers"
)

// A Rollout that is deleted after any pass of an update: the pods, the roles, the
// Services and the weight change one after the other, and stable may be about to shrink.
func TestC112_ADeletionAfterAnyPassOfAnUpdateEnds(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"canary":    withRouter(setWeight(50)),
		"dynamic":   dynamicScale(setWeight(50)),
		"ping-pong": plansim.WithPingPong(withRouter(setWeight(50))),
	} {
		for passes, over := 0, false; !over; passes++ {
			t.Run(fmt.Sprintf("%s, after pass %d", name, passes), func(t *testing.T) {
				c := cluster(strategy)
				stableAt(t, c, "v1")
				push(c, "v2")
				made := 0
				c.Run(60, func(*plansim.Cluster) bool { made++; return made > passes })
				over = made <= passes
				c.Delete()
				mustReach(t, c, 300, "gone", gone)
				noViolations(t, c)
			})
		}
	}
}

// The route alone is given up, and both Services go on: while a promotion is under
// way the stable Service has yet to select the new version.
func TestARouteIsGivenUpInTheMiddleOfAPromotion(t *testing.T) {
	c := cluster(withRouter(setWeight(50)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the promotion", func(c *plansim.Cluster) bool { return c.Status.StableRS == "v2" })
	in := observe(c)
	in.Leaving = &plan.Leaving{Objects: "HTTPRoute old", Keep: []string{"web-stable", "web-canary"}}
	if diff := cmp.Diff([]plan.ServiceWant{{Name: "web-stable", Hash: "v2"}}, plan.Decide(in).Services); diff != "" {
		t.Errorf("Services (-want +got):\n%s", diff)
	}
	in.Stable = &plan.Service{Name: "web-stable", Hash: "v2"}
	if p := plan.Decide(in); p.Split == nil || p.Split.Canary != 0 || len(p.Services) > 0 {
		t.Errorf("split %+v and Services %+v, want all on the stable Service", p.Split, p.Services)
	}
}

// The route alone is given up, and stable is small beside the canary: it grows, or
// the weight could never go home.
func TestARouteIsGivenUpBesideASmallStable(t *testing.T) {
	for name, weight := range map[string]int32{"some of it": 75, "all of it": 100} {
		t.Run(name, func(t *testing.T) {
			c := paused(t, dynamicScale(setWeight(weight), pause(0)), 1)
			c.Run(30, nil)
			in := observe(c)
			in.Leaving = &plan.Leaving{Objects: "HTTPRoute old", Keep: []string{"web-stable", "web-canary"}}
			p := plan.Decide(in)
			if len(p.ReplicaSets) != 1 || p.ReplicaSets[0].Hash != "v1" || p.ReplicaSets[0].Replicas != 4 || p.ReplicaSets[0].ScaleDownAt != nil {
				t.Errorf("ReplicaSets %+v, want 4 pods of v1", p.ReplicaSets)
			}
			if p.Split != nil && p.Split.Canary < weight {
				t.Errorf("split %+v while stable has %d pods", p.Split, c.AvailablePods("v1"))
			}
		})
	}
}

// Who deletes a Rollout whose routing can't be read, or is never carried out, is told
// what it waits for and the way out.
func TestC112_ADeletionThatCannotEndSaysHowToEndIt(t *testing.T) {
	for name, spoil := range map[string]func(*plan.Routing){
		"it can't be read": func(r *plan.Routing) { r.Err = "HTTPRoute web is forbidden" },
		"it isn't carried out": func(r *plan.Routing) {
			r.Verification, r.Message = routers.VerificationPending, "no Gateway has accepted it"
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := observe(paused(t, withRouter(setWeight(25), pause(0)), 1))
			in.Deleting, in.Leaving = true, &plan.Leaving{Objects: "HTTPRoute web"}
			spoil(in.Routing)
			in.Invalid = []string{"spec.replicas: it is -1"} // which matters no more
			message := plan.Decide(in).Status.Message
			for _, part := range []string{in.Routing.Err + in.Routing.Message, v1alpha1.TrafficFinalizer} {
				if !strings.Contains(message, part) {
					t.Errorf("message %q doesn't name %q", message, part)
				}
			}
		})
	}
}

// A Rollout of a release that remembered no routing, and held no Rollout, in the
// middle of a canary: nothing of its traffic moves before both are there, but back.
func TestAnUpgradeInTheMiddleOfACanary(t *testing.T) {
	upgraded := func() plan.In {
		c := paused(t, withRouter(setWeight(25), pause(0), setWeight(50)), 1)
		c.Run(30, nil)
		in := observe(c)
		in.Status.Routed, in.TrafficFinalizer = nil, false
		return in
	}
	in := upgraded()
	p := plan.Decide(in)
	if p.Split != nil || len(p.Services)+len(p.ReplicaSets) > 0 || p.TrafficFinalizer != plan.FinalizerAdd || p.Status.Routed == nil {
		t.Errorf("split %+v, Services %+v, ReplicaSets %+v, finalizer %q, routed %+v; want it to be held and nothing else",
			p.Split, p.Services, p.ReplicaSets, p.TrafficFinalizer, p.Status.Routed)
	}
	p.Status.Routed = nil
	if diff := cmp.Diff(in.Status, p.Status); diff != "" {
		t.Errorf("status (-before +after):\n%s", diff)
	}
	in = upgraded()
	in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
	if p := plan.Decide(in); p.Split == nil || p.Split.Canary != 0 {
		t.Errorf("aborted, and the routing becomes %+v", p.Split)
	}
}

// The share of an Experiment is taken back, and seen to be, before the route is let
// go: a write that is refused then is tried again.
func TestARouteIsGivenUpBesideAnExperiment(t *testing.T) {
	c := cluster(withRouter(weighted(compare(), 5), setWeight(50)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the share", func(c *plansim.Cluster) bool { return len(c.Extras()) > 0 })
	c.Run(10, nil)
	in := observe(c)
	in.Leaving = &plan.Leaving{Objects: "HTTPRoute old", Keep: []string{"web-stable", "web-canary"}}
	if p := plan.Decide(in); p.Release || p.Split == nil || len(p.Split.Extras) > 0 || p.Status.Routed == nil {
		t.Errorf("release %v, split %+v, routed %v; want the share to be taken back first", p.Release, p.Split, p.Status.Routed)
	}
	in.Routing.Extras = nil
	if p := plan.Decide(in); !p.Release || p.Status.Routed != nil {
		t.Errorf("release %v, routed %v; want it to be let go", p.Release, p.Status.Routed)
	}
}

// Nothing could go back to a stable version without pods: the weight stays, and who
// has edited the spec is told (law 4).
func TestARouteIsNotGivenUpToABrokenStable(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	c.BreakPods("v1", 4)
	c.Run(5, nil)
	in := observe(c)
	in.Leaving = &plan.Leaving{Objects: "HTTPRoute old", Keep: []string{"web-stable", "web-canary"}}
	p := plan.Decide(in)
	if p.Split != nil || p.Release || p.Status.Phase != v1alpha1.RolloutPhaseDegraded {
		t.Errorf("split %+v, release %v, phase %s; want the weight to stay, and Degraded", p.Split, p.Release, p.Status.Phase)
	}
	c.HealPods("v1")
	c.Run(10, nil)
	healed := observe(c)
	healed.Leaving = in.Leaving
	if p := plan.Decide(healed); p.Split == nil || p.Split.Canary != 0 || p.Status.Phase != v1alpha1.RolloutPhaseProgressing {
		t.Errorf("split %+v, phase %s after v1 has come back", p.Split, p.Status.Phase)
	}
}
