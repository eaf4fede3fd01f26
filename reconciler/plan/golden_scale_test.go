package plan_test

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, scaleStories) }

// scaleToWeight sizes the canary as if it had this weight.
func scaleToWeight(weight int32) v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Weight: &weight}}
}

// sized is cluster with another number of replicas.
func sized(c *plansim.Cluster, replicas int32) *plansim.Cluster {
	c.Replicas = replicas
	return c
}

// scaleStories tell how many pods a canary gets, and when.
var scaleStories = map[string]story{
	"canary-scale-by-replicas": {
		start: func() *plansim.Cluster {
			return cluster(withRouter(scaleTo(3), setWeight(25), pause(10), matchWeight, pause(10), setWeight(50), pause(10)))
		},
		script: []act{stable("v1"), commits("v2"), reaches(120, "Healthy", healthyOn("v2")), rests(60)},
	},
	"canary-scale-by-weight": {
		start: func() *plansim.Cluster {
			return cluster(withRouter(scaleToWeight(75), setWeight(10), analyse(), matchWeight, setWeight(50), pause(10)))
		},
		script: []act{stable("v1"), commits("v2"), reaches(120, "Healthy", healthyOn("v2")), rests(60)},
	},
	// Too small a canary for its weight is the user's word; an abort gives it nothing more.
	"canary-scale-smaller-than-its-weight-aborted": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(scaleTo(1), setWeight(50), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"), commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	"least-pods": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(1), pause(10), setWeight(40), pause(10))
			strategy.MinPodsPerReplicaSet = ptr(int32(2))
			return sized(cluster(strategy), 10)
		},
		script: []act{stable("v1"), commits("v2"), reaches(120, "Healthy", healthyOn("v2")), rests(60)},
	},
	"surge-in-batches": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(50), pause(10))
			strategy.MaxSurge = ptr(intstr.FromString("20%"))
			return sized(cluster(strategy), 10)
		},
		script: []act{stable("v1"), commits("v2"), reaches(180, "Healthy", healthyOn("v2")), rests(60)},
	},
	"scaled-to-zero-in-mid-step": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(20))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)),
			scales(0), rests(40), scales(4),
			reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"scaled-while-the-old-version-is-kept": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "Healthy", healthyOn("v2")),
			scales(6), rests(5), commits("v3"),
			reaches(120, "Healthy", healthyOn("v3")), rests(60),
		},
	},
	"without-a-router-scaled-in-mid-step": {
		start: func() *plansim.Cluster { return cluster(withoutRouter(setWeight(50), pause(30))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)),
			scales(8), rests(15), scales(3),
			reaches(120, "Healthy", healthyOn("v2")), rests(30),
		},
	},
	// Nothing may be missing and nothing more: by one at a time.
	"without-a-router-superseded": {
		start: func() *plansim.Cluster { return cluster(withoutRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)),
			commits("v3"), reaches(120, "the pause", pausedAt("v3", 1)), rests(30),
		},
	},
	"delays-of-one-revision-only": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(50))
			strategy.ScaleDownDelayRevisionLimit, strategy.ScaleDownDelaySeconds = ptr(int32(1)), ptr(int32(120))
			return cluster(strategy)
		},
		script: []act{
			stable("v1"),
			commits("v2"), reaches(120, "Healthy", healthyOn("v2")),
			commits("v3"), reaches(120, "Healthy", healthyOn("v3")),
			rests(150),
		},
	},
}
