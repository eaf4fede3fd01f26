package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// rolledForward has v2 stable and v1 without pods before it.
func rolledForward(t *testing.T, window *v1alpha1.RollbackWindowSpec) *plansim.Cluster {
	t.Helper()
	strategy := withRouter(setWeight(20), analyse(), pause(0))
	strategy.Analysis = background(0)
	c := cluster(strategy)
	c.Spec.RollbackWindow = window
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the pause", pausedAt("v2", 2))
	c.Send(v1alpha1.PromoteFullAnnotation, "all")
	mustReach(t, c, 120, "Healthy", healthyOn("v2"))
	mustReach(t, c, 120, "the end of v1's pods", func(c *plansim.Cluster) bool { return c.Pods("v1") == 0 })
	return c
}

// A return within the window skips steps and analyses, and no traffic moves before
// the pods are there.
func TestC16_RollbackWindow(t *testing.T) {
	c := rolledForward(t, &v1alpha1.RollbackWindowSpec{Revisions: 3})
	runs := len(c.Runs())
	c.Behaviours["v1"] = plansim.Behaviour{ReadyAfter: 5 * time.Second, Limit: 1}
	push(c, "v1")
	c.Run(60, nil)
	if c.Weight() != 0 || c.Pods("v1") != 4 || c.Pods("v2") != 4 || !atStep("v1", 3)(c) {
		t.Fatalf("weight %d at step %d with one pod of 4 and %d pods of stable", c.Weight(), *c.Status.CurrentStepIndex, c.Pods("v2"))
	}
	c.Behaviours["v1"] = plansim.Behaviour{}
	mustReach(t, c, 60, "v1 stable", func(c *plansim.Cluster) bool {
		if c.DataPlane() < 100 && c.Selects("stable") == "v2" && c.Pods("v2") != 4 {
			t.Fatalf("%d pods of v2 before v1 has all of the traffic", c.Pods("v2"))
		}
		return healthyOn("v1")(c)
	})
	if len(c.Runs()) != runs {
		t.Errorf("%d runs for a return within the window", len(c.Runs())-runs)
	}
	push(c, "v2") // it is the newer one again, whatever the creation times
	mustReach(t, c, 60, "the second return", healthyOn("v2"))
}

func TestRollbackWindowIsOffByDefault(t *testing.T) {
	c := rolledForward(t, nil)
	push(c, "v1")
	mustReach(t, c, 120, "its pause", pausedAt("v1", 2))
}

// An abort wins over a return within the window (law 4).
func TestAbortWinsOverARollbackWindow(t *testing.T) {
	c := rolledForward(t, &v1alpha1.RollbackWindowSpec{Revisions: 3})
	c.RevertAfter = 0
	c.Behaviours["v1"] = plansim.Behaviour{Never: true}
	push(c, "v1")
	c.Run(20, nil)
	c.Send(v1alpha1.AbortAnnotation, "stop")
	mustReach(t, c, 20, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Run(120, nil)
	if !c.Status.Abort || c.Status.StableRS != "v2" || c.Pods("v1") != 0 {
		t.Errorf("abort %v, stable %s, %d pods of v1", c.Status.Abort, c.Status.StableRS, c.Pods("v1"))
	}
}

// supersede: Wait lets what is in progress come to its end first, whatever end
// that is; a return to the stable template is taken at once.
func TestSupersedeWait(t *testing.T) {
	start := func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), pause(0)))
		c.Spec.Supersede = v1alpha1.SupersedeWait
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
		push(c, "v3")
		c.Run(60, nil)
		if !pausedAt("v2", 1)(c) || c.Weight() != 50 || c.Exists("v3") {
			t.Fatalf("v3 did not wait: %s at weight %d\n%s", c.Status.CurrentPodHash, c.Weight(), transcript(c))
		}
		if want := "template v3 waits for the end of this rollout"; !strings.Contains(c.Status.Message, want) {
			t.Errorf("message %q doesn't say that %s", c.Status.Message, want)
		}
		if got := c.Status.Git.Current; got == nil || got.Hash != "v2" {
			t.Errorf("the commit of the current template is %+v, want that of v2", got)
		}
		return c
	}
	t.Run("promoted", func(t *testing.T) {
		c := start(t)
		c.Send(v1alpha1.PromoteAnnotation, "on")
		mustReach(t, c, 60, "v2 stable", func(c *plansim.Cluster) bool { return c.Status.StableRS == "v2" })
		if got := c.Status.Git.Stable; got == nil || got.Hash != "v2" {
			t.Errorf("the commit of the stable template is %+v, want that of v2", got)
		}
		mustReach(t, c, 60, "v3 in progress", pausedAt("v3", 1))
		if c.Status.Superseded != 0 {
			t.Errorf("%d superseded", c.Status.Superseded)
		}
	})
	t.Run("aborted", func(t *testing.T) {
		c := start(t)
		c.Send(v1alpha1.AbortAnnotation, "stop")
		mustReach(t, c, 120, "v3 in progress", pausedAt("v3", 1))
		if c.Status.StableRS != "v1" {
			t.Errorf("stable is %s", c.Status.StableRS)
		}
	})
	t.Run("called off in Git", func(t *testing.T) {
		c := start(t)
		push(c, "v1")
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	})
	t.Run("the steps are edited", func(t *testing.T) {
		c := start(t)
		c.Edit("edits the steps", func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Canary.Steps = []v1alpha1.CanaryStep{setWeight(25), pause(0)}
		})
		mustReach(t, c, 60, "the pause at 25", func(c *plansim.Cluster) bool { return pausedAt("v2", 1)(c) && c.Weight() == 25 })
	})
	t.Run("its ReplicaSet is gone", func(t *testing.T) {
		c := start(t)
		c.DeleteSet("v2")
		mustReach(t, c, 120, "v3 in progress", pausedAt("v3", 1))
	})
}

// Of the versions that wait out scaleDownDelaySeconds, as many as the limit says
// keep their pods: the newest.
func TestScaleDownDelayRevisionLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit *int32
		want  map[string]int32
	}{
		"none": {nil, map[string]int32{"v1": 4, "v2": 4, "v3": 4}},
		"one":  {ptr(int32(1)), map[string]int32{"v1": 0, "v2": 4, "v3": 4}},
		"zero": {ptr(int32(0)), map[string]int32{"v1": 0, "v2": 0, "v3": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(setWeight(50))
			strategy.ScaleDownDelaySeconds, strategy.ScaleDownDelayRevisionLimit = ptr(int32(3600)), tc.limit
			c := cluster(strategy)
			stableAt(t, c, "v1")
			for _, hash := range []string{"v2", "v3"} {
				push(c, hash)
				mustReach(t, c, 120, "Healthy", healthyOn(hash))
				c.Run(30, nil)
			}
			for hash, want := range tc.want {
				if got := c.Pods(hash); got != want {
					t.Errorf("%d pods of %s, want %d", got, hash, want)
				}
			}
		})
	}
}

// A pod that flickers earns no time, and the clock stands still under a pause.
func TestProgressIsAHighWaterMark(t *testing.T) {
	start := func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(100), pause(0)))
		c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
		c.RevertAfter = 0
		c.Behaviours["v2"] = plansim.Behaviour{Limit: 2}
		stableAt(t, c, "v1")
		push(c, "v2")
		c.Run(20, nil)
		return c
	}
	t.Run("flickering", func(t *testing.T) {
		c := start(t)
		from := c.Status.Progress.Since
		for i := range 10 {
			c.Behaviours["v2"] = plansim.Behaviour{Limit: 1 + i%2}
			c.Run(3, nil)
		}
		if got := c.Status.Progress; got == nil || !got.Since.Equal(&from) {
			t.Fatalf("the clock was set from %v to %+v", from, got)
		}
		mustReach(t, c, 60, "the abort", func(c *plansim.Cluster) bool { return c.Status.AbortReason == v1alpha1.AbortDeadline })
	})
	t.Run("paused", func(t *testing.T) {
		c := start(t)
		c.Edit("pauses", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
		c.Run(600, nil)
		if c.Status.Abort || c.Status.Progress != nil {
			t.Fatalf("abort %v, clock %+v under a pause", c.Status.Abort, c.Status.Progress)
		}
		c.Edit("goes on", func(s *v1alpha1.RolloutSpec) { s.Paused = false })
		c.Run(50, nil)
		if c.Status.Abort {
			t.Fatal("the time of the pause counted")
		}
		mustReach(t, c, 30, "the abort", func(c *plansim.Cluster) bool { return c.Status.AbortReason == v1alpha1.AbortDeadline })
	})
}

// spec.paused holds every stage where it is, and an abort goes through all the same.
func TestPausedInEveryStage(t *testing.T) {
	for name, reach := range map[string]func(*plansim.Cluster) bool{
		"before the first pod": func(c *plansim.Cluster) bool { return atStep("v2", 0)(c) },
		"at a managed route":   func(c *plansim.Cluster) bool { return atStep("v2", 0)(c) && c.AvailablePods("v2") > 0 },
		"at a scale":           func(c *plansim.Cluster) bool { return atStep("v2", 1)(c) },
		"at a weight":          func(c *plansim.Cluster) bool { return atStep("v2", 2)(c) },
		"at an analysis":       func(c *plansim.Cluster) bool { return atStep("v2", 3)(c) },
		"at a pause":           pausedAt("v2", 4),
		"at the end":           func(c *plansim.Cluster) bool { return atStep("v2", 5)(c) },
	} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(headerRoute("testers", "yes"), scaleTo(3), setWeight(50), analyse(), pause(10))
			strategy.TrafficRouting = managed("testers")
			c := cluster(strategy)
			c.RevertAfter = 0
			c.Verdict = func(plan.Run) plansim.Script {
				return plansim.Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseSuccessful}
			}
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 120, name, reach)
			c.Edit("pauses", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
			index, weight, routes := *c.Status.CurrentStepIndex, c.Weight(), len(c.Routes())
			c.Run(120, nil)
			if *c.Status.CurrentStepIndex != index || c.Weight() > weight || len(c.Routes()) > routes || !phase(v1alpha1.RolloutPhasePaused)(c) {
				t.Fatalf("went on from step %d to %d, weight %d to %d, %d to %d routes, phase %s", index, *c.Status.CurrentStepIndex, weight, c.Weight(),
					routes, len(c.Routes()), c.Status.Phase)
			}
			c.Scale(6) // C107
			c.Run(30, nil)
			if c.Pods("v1") != 6 {
				t.Errorf("%d pods of stable after a scaler asked for 6", c.Pods("v1"))
			}
			c.Send(v1alpha1.AbortAnnotation, "stop")
			mustReach(t, c, 30, "the abort", func(c *plansim.Cluster) bool { return c.Status.Abort && c.Weight() == 0 && len(c.Routes()) == 0 })
		})
	}
}
