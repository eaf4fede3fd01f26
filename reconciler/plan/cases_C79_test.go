package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

type simCluster = plansim.Cluster

// A router that comes together with a new image: stable keeps the traffic, and the
// canary takes its steps from the first.
func TestC79_ARouterThatComesWithANewImage(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	routedSpec := *c.Spec.Strategy.Canary.DeepCopy()
	c.Edit("no router yet", func(spec *v1alpha1.RolloutSpec) {
		strategy := withoutRouter(setWeight(50), pause(0))
		spec.Strategy.Canary = &strategy
	})
	c.Routed = false
	stableAt(t, c, "v1")
	c.Edit("a router", func(spec *v1alpha1.RolloutSpec) {
		spec.Strategy.Canary = &routedSpec
	})
	c.Routed = true
	push(c, "v2")
	for range 30 {
		c.Run(1, nil)
		if c.Pods("v1") < 4 || c.Weight() > 25 {
			t.Fatalf("stable has %d pods and the canary weight %d\n%s", c.Pods("v1"), c.Weight(), transcript(c))
		}
	}
	noViolations(t, c)
	if !pausedAt("v2", 1)(c) || c.Weight() != 25 || c.Selects("stable") != "v1" || c.Selects("canary") != "v2" || c.Status.StableRS != "v1" {
		t.Errorf("weight %d, stable Service on %s, canary Service on %s\n%s", c.Weight(), c.Selects("stable"), c.Selects("canary"), transcript(c))
	}
}
