package plan_test

import (
	"maps"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, routerStories) }

// routerStories tell what a router can do beside two weights of 100.
var routerStories = map[string]story{
	"header-route": {
		start: func() *plansim.Cluster {
			strategy := withRouter(headerRoute("testers", "yes"), pause(10), setWeight(25), headerRoute("testers", ""), pause(5))
			strategy.TrafficRouting = managed("testers")
			c := cluster(strategy)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"mirror-aborted": {
		start: func() *plansim.Cluster {
			strategy := withRouter(mirrorRoute("shadow", "api"), analyse(), setWeight(25))
			strategy.TrafficRouting = managed("testers", "shadow")
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"weights-of-a-thousand": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(5), pause(10), setWeight(300), pause(10))
			strategy.TrafficRouting = managed()
			strategy.TrafficRouting.MaxTrafficWeight = ptr(int32(1000))
			c := cluster(strategy)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
}
