package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// Nobody shrinks what the traffic is to return to: a scaler that goes down while the
// canary has most of it leaves stable whole until its traffic is back.
func TestC70_StableIsWholeBeforeTrafficReturns(t *testing.T) {
	for name, verb := range map[string]string{"aborted": v1alpha1.AbortAnnotation, "promoted": v1alpha1.PromoteAnnotation} {
		t.Run(name, func(t *testing.T) {
			c := sized(cluster(withRouter(setWeight(75), pause(0))), 8)
			c.RevertAfter = 0
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
			c.Scale(1)
			c.Run(60, nil)
			if c.Desired("v1") != 8 || c.Desired("v2") != 6 {
				t.Fatalf("%d and %d pods while the canary has traffic, want 8 and 6", c.Desired("v1"), c.Desired("v2"))
			}
			c.Send(verb, "go")
			end := map[string]string{v1alpha1.AbortAnnotation: "v1", v1alpha1.PromoteAnnotation: "v2"}[verb]
			mustReach(t, c, 120, "the end", func(c *plansim.Cluster) bool {
				if c.DataPlane() > 0 && c.AvailablePods("v1") < 8 {
					t.Fatalf("%d pods of v1 while the canary has %d%%", c.AvailablePods("v1"), c.DataPlane())
				}
				return c.Weight() == 0 && c.Desired(end) == 1
			})
		})
	}
}

// A version whose last pods don't come is taken back by its deadline, and one that is
// good follows.
func TestC71_APromotionThatDoesNotEndIsTakenBack(t *testing.T) {
	c := withDeadline(cluster(withRouter(setWeight(50))))
	c.RevertAfter = 0
	c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: 3e9, Limit: 2}
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the abort", phase(v1alpha1.RolloutPhaseDegraded))
	if c.Weight() != 0 || c.Status.StableRS != "v1" || c.Status.AbortReason != v1alpha1.AbortDeadline {
		t.Errorf("weight %d, stable %s, reason %s; want all on v1 by the deadline", c.Weight(), c.Status.StableRS, c.Status.AbortReason)
	}
	push(c, "v3")
	mustReach(t, c, 120, "Healthy", healthyOn("v3"))
}

// What is to be cleaned up is, each for itself: that the canary Service isn't there
// keeps neither the weight nor the stable Service from going home.
func TestC112_CleansUpWithoutTheCanaryService(t *testing.T) {
	c := paused(t, withRouter(setWeight(25), pause(0)), 1)
	in := observe(c)
	in.Canary, in.Missing = nil, []string{"Service web-canary"}
	in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
	if p := plan.Decide(in); !p.Status.Abort || p.Split == nil || p.Split.Canary != 0 || p.Revert == nil && p.Status.Rejected == nil {
		t.Errorf("aborted %v, split %+v; want all traffic on stable", p.Status.Abort, p.Split)
	}
	in.Verbs = nil
	in.Stable.Hash = "v2" // as a pass that failed left it
	if p := plan.Decide(in); len(p.Services) != 1 || p.Services[0] != (plan.ServiceWant{Name: "web-stable", Hash: "v1"}) {
		t.Errorf("Services %+v, want the stable one on v1", p.Services)
	}
	in.Deleting, in.Leaving = true, &plan.Leaving{Objects: "HTTPRoute web, Service web-stable"}
	in.Stable.Hash = "v1"
	if p := plan.Decide(in); p.Split == nil || p.Split.Canary != 0 {
		t.Errorf("deleted, and the routing becomes %+v", p.Split)
	}
}
