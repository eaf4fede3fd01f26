package plan_test

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, lifeStories) }

func edits(what string, change func(*v1alpha1.RolloutSpec)) act {
	return does(func(c *plansim.Cluster) { c.Edit(what, change) })
}

func takesSteps(steps ...v1alpha1.CanaryStep) func(*v1alpha1.RolloutSpec) {
	return func(s *v1alpha1.RolloutSpec) { s.Strategy.Canary.Steps = steps }
}

// lifeStories tell what people and Git do in the course of a rollout.
var lifeStories = map[string]story{
	"rolled-back-within-the-window": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse(), pause(0)))
			c.Spec.RollbackWindow = &v1alpha1.RollbackWindowSpec{Revisions: 3}
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(120, "the pause", pausedAt("v2", 2)),
			sends(v1alpha1.PromoteAnnotation, "go"), reaches(120, "Healthy", healthyOn("v2")), rests(60),
			commits("v1"), reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	"a-newer-template-waits": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), pause(30)))
			c.Spec.Supersede = v1alpha1.SupersedeWait
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)),
			commits("v3"), reaches(120, "Healthy", healthyOn("v3")), rests(60),
		},
	},
	"promoted-in-full-in-mid-analysis": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse(), setWeight(50), pause(0)))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 300 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail})
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the analysis", runs(plan.RunStep, "v2")), rests(10),
			sends(v1alpha1.PromoteFullAnnotation, "now"), reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"aborted-by-a-person-and-retried": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), pause(0), setWeight(50)))
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)),
			sends(v1alpha1.AbortAnnotation, "stop"), rests(60),
			sends(v1alpha1.RetryAnnotation, "again"), reaches(60, "the pause", pausedAt("v2", 1)),
			sends(v1alpha1.PromoteAnnotation, "go"), reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	// C29: there is nothing to abort, and nothing is kept for the next version.
	"aborted-when-there-is-nothing-to-abort": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(25), pause(5))) },
		script: []act{
			stable("v1"), sends(v1alpha1.AbortAnnotation, "stop"), rests(30),
			commits("v2"), reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"superseded-in-mid-analysis": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse(), setWeight(50), pause(5)))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 300 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail})
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the analysis", runs(plan.RunStep, "v2")), rests(5),
			commits("v3"), reaches(120, "Healthy", healthyOn("v3")), rests(60),
		},
	},
	// The weight of the rejected version can't be taken back yet when the next one comes.
	"superseded-while-the-router-refuses-the-abort": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(50), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the analysis", runs(plan.RunStep, "v2")),
			does(func(c *plansim.Cluster) { c.RefuseWeights = true }),
			reaches(60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)), rests(10),
			commits("v3"), rests(30),
			does(func(c *plansim.Cluster) { c.RefuseWeights = false }),
			reaches(120, "Healthy", healthyOn("v3")), rests(60),
		},
	},
	// C53: later steps are edited, then one before.
	"steps-edited-midway": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(25), pause(0), setWeight(50))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)),
			edits("makes the last step 75", takesSteps(setWeight(25), pause(0), setWeight(75), pause(5))), rests(15),
			edits("puts a step of 10 before", takesSteps(setWeight(10), pause(5), setWeight(25), pause(0), setWeight(75), pause(5))),
			reaches(60, "the pause", pausedAt("v2", 3)), rests(10),
			sends(v1alpha1.PromoteAnnotation, "go"), reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"paused-in-git-during-a-step": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(25), pause(20), setWeight(75))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)), rests(5),
			edits("sets spec.paused", func(s *v1alpha1.RolloutSpec) { s.Paused = true }), rests(10),
			scales(8), rests(30),
			sends(v1alpha1.ResumeAnnotation, "go"), rests(10),
			edits("takes spec.paused away", func(s *v1alpha1.RolloutSpec) { s.Paused = false }),
			reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"restarted": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)), rests(10),
			sends(v1alpha1.RestartAnnotation, "fresh"), rests(60),
			does(func(c *plansim.Cluster) {
				at := metav1.NewTime(c.Now)
				c.Edit("sets spec.restartAt", func(s *v1alpha1.RolloutSpec) { s.RestartAt = &at })
			}),
			rests(60),
		},
	},
	// C26: as often as one likes.
	"superseded-again-and-again-with-a-header-route": {
		start: func() *plansim.Cluster {
			strategy := withRouter(headerRoute("testers", "yes"), setWeight(25), pause(0))
			strategy.TrafficRouting = managed("testers")
			return cluster(strategy)
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 2)),
			commits("v3"), reaches(60, "the pause", pausedAt("v3", 2)),
			commits("v4"), reaches(60, "the pause", pausedAt("v4", 2)),
			commits("v1"), reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	"header-and-mirror-routes": {
		start: func() *plansim.Cluster {
			strategy := withRouter(headerRoute("testers", "yes"), mirrorRoute("shadow", "api"), analyse(), mirrorRoute("shadow", ""), setWeight(25), pause(5))
			strategy.TrafficRouting = managed("testers", "shadow")
			return cluster(strategy)
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the analysis", runs(plan.RunStep, "v2")),
			does(func(c *plansim.Cluster) { c.EditRoutes() }),
			reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"weights-of-ten-aborted": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(3), analyse(), setWeight(7))
			strategy.TrafficRouting = managed()
			strategy.TrafficRouting.MaxTrafficWeight = ptr(int32(10))
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"), commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	"a-hand-on-the-weight": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)), rests(10),
			does(func(c *plansim.Cluster) { c.Calm = false; c.SetWeight(90) }), rests(20),
			does(func(c *plansim.Cluster) { c.SetWeight(10) }), rests(20),
			sends(v1alpha1.PromoteAnnotation, "go"), reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
}
