package plan_test

import (
	"maps"
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, routerStories) }

// routerStories tell what a router can do beside two weights of 100.
var routerStories = map[string]func(*testing.T) *plansim.Cluster{
	"header-route": func(t *testing.T) *plansim.Cluster {
		strategy := withRouter(headerRoute("testers", "yes"), pause(10), setWeight(25), headerRoute("testers", ""), pause(5))
		strategy.TrafficRouting = managed("testers")
		c := cluster(strategy)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"mirror-aborted": func(t *testing.T) *plansim.Cluster {
		strategy := withRouter(mirrorRoute("shadow", "api"), analyse(), setWeight(25))
		strategy.TrafficRouting = managed("testers", "shadow")
		c := cluster(strategy)
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"weights-of-a-thousand": func(t *testing.T) *plansim.Cluster {
		strategy := withRouter(setWeight(5), pause(10), setWeight(300), pause(10))
		strategy.TrafficRouting = managed()
		strategy.TrafficRouting.MaxTrafficWeight = ptr(int32(1000))
		c := cluster(strategy)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
}
