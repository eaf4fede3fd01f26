package plan_test

import (
	"maps"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, dynamicStories) }

// dynamicScale is a canary whose stable version shrinks as it grows.
func dynamicScale(steps ...v1alpha1.CanaryStep) v1alpha1.CanaryStrategy {
	strategy := withRouter(steps...)
	strategy.DynamicStableScale = true
	return strategy
}

// slowStable lets the pods that stable gets from now on take their time.
func slowStable(hash string, after time.Duration) act {
	return does(func(c *plansim.Cluster) { c.Behaviours[hash] = plansim.Behaviour{ReadyAfter: after} })
}

// dynamicStories tell of a stable version that shrinks as the canary grows.
var dynamicStories = map[string]story{
	"dynamic-promoted": {
		start: func() *plansim.Cluster {
			return cluster(dynamicScale(setWeight(25), pause(30), setWeight(75), pause(30)))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(180, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	// C25: stable grows first, the weight follows it down, and then the clock of the canary's pods starts.
	"dynamic-aborted": {
		start: func() *plansim.Cluster {
			strategy := dynamicScale(setWeight(80), pause(30), analyse())
			strategy.AbortScaleDownDelaySeconds = ptr(int32(300))
			strategy.MinPodsPerReplicaSet = ptr(int32(1))
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0 // nobody brings Git back: the aborted version stays declared
			return c
		},
		script: []act{
			stable("v1"),
			slowStable("v1", 20*time.Second),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			rests(400),
		},
	},
	// C04: a newer version while stable is small.
	"dynamic-superseded": {
		start: func() *plansim.Cluster {
			return cluster(dynamicScale(setWeight(50), pause(60), setWeight(100), pause(0)))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(180, "the last pause", pausedAt("v2", 3)),
			rests(30),
			slowStable("v1", 15*time.Second),
			commits("v3"),
			reaches(300, "the last pause", pausedAt("v3", 3)),
		},
	},
	// C23: a scaler grows the stable version of an aborted rollout and nothing else.
	"dynamic-aborted-and-scaled": {
		start: func() *plansim.Cluster {
			c := cluster(dynamicScale(setWeight(75), pause(20), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			slowStable("v1", 60*time.Second),
			scales(8),
			rests(120),
		},
	},
	// A scale of its own: stable is as small as the canary is large, and never smaller than its traffic.
	"dynamic-with-a-canary-scale": {
		start: func() *plansim.Cluster {
			return cluster(dynamicScale(
				v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Weight: ptr(int32(75))}}, pause(30), setWeight(50), pause(30), matchWeight, setWeight(75), pause(30)))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(300, "Healthy", healthyOn("v2")),
		},
	},
}
