package plan_test

import (
	"maps"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, troubleStories) }

var unmeasurable = plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseError, Detail: `metric "success-rate": 5 consecutive errors: connection refused`}

// withDeadline aborts after a minute without progress.
func withDeadline(c *plansim.Cluster) *plansim.Cluster {
	c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
	return c
}

// breaks makes pods of a version unavailable.
func breaks(hash string, pods int) act {
	return does(func(c *plansim.Cluster) { c.Calm = false; c.BreakPods(hash, pods) })
}

func heals(hash string) act { return does(func(c *plansim.Cluster) { c.HealPods(hash) }) }

// troubleStories tell of pods, providers and routers that fail.
var troubleStories = map[string]story{
	// High-water progress: a pod that comes and goes is none.
	"deadline-with-a-pod-that-flickers": {
		start: func() *plansim.Cluster { return withDeadline(cluster(withRouter(setWeight(50), pause(0)))) },
		script: []act{
			stable("v1"), pods("v2", plansim.Behaviour{ReadyAfter: 3 * time.Second, Limit: 1}),
			commits("v2"), rests(20),
			breaks("v2", 1), rests(10), heals("v2"), rests(10), breaks("v2", 1), rests(10), heals("v2"),
			reaches(60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	"deadline-stands-still-while-paused": {
		start: func() *plansim.Cluster { return withDeadline(cluster(withRouter(setWeight(50), pause(5)))) },
		script: []act{
			stable("v1"), pods("v2", plansim.Behaviour{Never: true}), commits("v2"), rests(30),
			sends(v1alpha1.PauseAnnotation, "wait"), rests(120),
			sends(v1alpha1.ResumeAnnotation, "go"), rests(30),
			pods("v2", plansim.Behaviour{ReadyAfter: 3 * time.Second}),
			reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	// C50: the deadline waits for no router.
	"deadline-while-the-router-is-in-trouble": {
		start: func() *plansim.Cluster { return withDeadline(cluster(withRouter(setWeight(50), pause(5)))) },
		script: []act{
			stable("v1"), pods("v2", plansim.Behaviour{Never: true}), commits("v2"), rests(10),
			does(func(c *plansim.Cluster) { c.RouterErr = "reading HTTPRoute web: the API server is busy" }),
			reaches(120, "the abort", func(c *plansim.Cluster) bool { return c.Status.Abort }), rests(30),
			does(func(c *plansim.Cluster) { c.RouterErr = "" }),
			reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	"deadline-without-an-abort": {
		start: func() *plansim.Cluster {
			c := withDeadline(cluster(withRouter(setWeight(50), pause(5))))
			c.Spec.ProgressDeadlineAbort = false
			return c
		},
		script: []act{
			stable("v1"), pods("v2", plansim.Behaviour{Never: true}), commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)), rests(30),
			pods("v2", plansim.Behaviour{ReadyAfter: 3 * time.Second}),
			reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	// C49: no update, no abort.
	"a-pod-is-lost-at-rest": {
		start:  func() *plansim.Cluster { return withDeadline(cluster(withRouter(setWeight(50), pause(5)))) },
		script: []act{stable("v1"), breaks("v1", 1), rests(120), heals("v1"), rests(30)},
	},
	"abort-delay-of-zero-keeps-the-canary": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(50), analyse())
			strategy.AbortScaleDownDelaySeconds = ptr(int32(0))
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"), commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)), rests(120),
			commits("v3"), rests(60),
		},
	},
	"stable-set-deleted-by-hand": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)), rests(10),
			does(func(c *plansim.Cluster) { c.Calm = false; c.DeleteSet("v1") }), rests(30),
			sends(v1alpha1.PromoteAnnotation, "go"), reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"stable-set-deleted-at-rest": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"), does(func(c *plansim.Cluster) { c.Calm = false; c.DeleteSet("v1") }),
			reaches(60, "pods again", func(c *plansim.Cluster) bool { return c.AvailablePods("v1") == 4 && healthyOn("v1")(c) }), rests(60),
		},
	},
	"canary-set-deleted-by-hand": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)), rests(10),
			does(func(c *plansim.Cluster) { c.Calm = false; c.DeleteSet("v2") }), rests(30),
			sends(v1alpha1.PromoteAnnotation, "go"), reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"first-version-never-ready": {
		start: func() *plansim.Cluster {
			c := withDeadline(cluster(withRouter(setWeight(50), pause(5))))
			c.Behaviours["v1"] = plansim.Behaviour{Never: true}
			return c
		},
		script: []act{
			commits("v1"), reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)), rests(60),
			commits("v2"), reaches(60, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"first-version-without-a-router": {
		start:  func() *plansim.Cluster { return cluster(withoutRouter(setWeight(25), pause(0))) },
		script: []act{commits("v1"), reaches(60, "Healthy", healthyOn("v1")), rests(30)},
	},
	"background-analysis-inconclusive": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(25), pause(60), setWeight(50), pause(5))
			strategy.Analysis = background(1)
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunBackground, plansim.Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseInconclusive})
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the pause", pausedAt("v2", 1)), rests(120),
			sends(v1alpha1.ResumeAnnotation, "go"), reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"blue-green-unmeasured-before-the-switch": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Verdict = verdicts("v2", plan.RunPrePromotion, unmeasurable)
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)), rests(60),
			does(func(c *plansim.Cluster) {
				c.Verdict = nil
				c.Answers = func(plan.Run) bool { return true }
			}),
			reaches(240, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"blue-green-unmeasured-after-the-switch": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Verdict = verdicts("v2", plan.RunPostPromotion, unmeasurable)
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)), rests(60),
			does(func(c *plansim.Cluster) { c.Verdict = nil }),
			sends(v1alpha1.RetryAnnotation, "again"), reaches(120, "Healthy", healthyOn("v2")), rests(60),
		},
	},
	"blue-green-inconclusive-after-the-switch": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Verdict = verdicts("v2", plan.RunPostPromotion, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseInconclusive})
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), reaches(60, "the question", phase(v1alpha1.RolloutPhasePaused)), rests(60),
			sends(v1alpha1.AbortAnnotation, "no"), reaches(60, "Healthy", healthyOn("v1")), rests(60),
		},
	},
	// C71: the last pods of the new version don't come, and a good one can get out.
	"promotion-that-never-ends-superseded": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(50)))
			c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: 3 * time.Second, Limit: 2}
			return c
		},
		script: []act{
			stable("v1"), commits("v2"), rests(60),
			commits("v3"), reaches(120, "Healthy", healthyOn("v3")), rests(60),
		},
	},
}
