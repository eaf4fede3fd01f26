package plan_test

import (
	"maps"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, pingPongStories) }

// pingPongStories tell of two Services that alternate.
var pingPongStories = map[string]story{
	"ping-pong-promoted-twice": {
		start: func() *plansim.Cluster {
			return cluster(plansim.WithPingPong(withRouter(setWeight(50), pause(10))))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
			commits("v3"),
			reaches(120, "Healthy", healthyOn("v3")),
			rests(60),
		},
	},
	"ping-pong-aborted": {
		start: func() *plansim.Cluster {
			c := cluster(plansim.WithPingPong(withRouter(setWeight(50), analyse())))
			c.Verdict = verdicts("v3", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
			commits("v3"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"ping-pong-status-lost": {
		start: func() *plansim.Cluster {
			return cluster(plansim.WithPingPong(withRouter(setWeight(50), pause(10))))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			does(func(c *plansim.Cluster) { c.LoseStatus() }),
			reaches(60, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
}
