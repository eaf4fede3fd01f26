package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func ready(st v1alpha1.RolloutStatus) metav1.Condition { return find(st, "Ready") }

func find(st v1alpha1.RolloutStatus, kind string) metav1.Condition {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func TestC01_RejectedVersionStaysRejected(t *testing.T) {
	c := cluster(withRouter(setWeight(25), analyse()))
	c.Verdict = verdicts("v2", plan.RunStep, fails)
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	mustReach(t, c, 60, "Healthy after the revert", healthyOn("v1"))
	for range 3 {
		push(c, "v2") // automation bumps again
		c.Run(60, nil)
		if find(c.Status, v1alpha1.HeldCondition).Status != metav1.ConditionTrue || c.Status.Phase != v1alpha1.RolloutPhaseDegraded {
			t.Fatalf("phase %s, conditions %v", c.Status.Phase, c.Status.Conditions)
		}
		if find(c.Status, "Stalled").Status != metav1.ConditionTrue {
			t.Error("Held is not Stalled, though only a person can help")
		}
		push(c, "v1")
		c.Run(60, nil)
	}
	if len(c.Reverts()) != 1 || c.Weight() != 0 || c.Role("v2") != v1alpha1.RoleRejected {
		t.Errorf("%d reverts, weight %d, role of v2 %q", len(c.Reverts()), c.Weight(), c.Role("v2"))
	}
}

func TestC13_InconclusiveStaysBesideTheStepPause(t *testing.T) {
	strategy := withRouter(setWeight(20), pause(60), setWeight(60))
	strategy.Analysis = background(0)
	c := cluster(strategy)
	c.Verdict = verdicts("v2", plan.RunBackground, plansim.Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseInconclusive})
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Run(300, nil)
	noViolations(t, c)
	reasons := []v1alpha1.PauseReason{}
	for _, p := range c.Status.PauseConditions {
		reasons = append(reasons, p.Reason)
	}
	if len(reasons) != 2 || c.Status.Phase != v1alpha1.RolloutPhasePaused || c.Weight() != 20 {
		t.Fatalf("pauses %v, phase %s, weight %d", reasons, c.Status.Phase, c.Weight())
	}
	if len(c.Runs()) != 1 {
		t.Errorf("%d background runs, want one", len(c.Runs()))
	}
	c.Send(v1alpha1.ResumeAnnotation, "fine")
	mustReach(t, c, 120, "Healthy", healthyOn("v2"))
	if len(c.Runs()) != 1 {
		t.Errorf("%d background runs in the end, want one", len(c.Runs()))
	}
}

func TestC17_AfterAnAbortGitGoesOn(t *testing.T) {
	abort := func(t *testing.T) *plansim.Cluster {
		c := paused(t, withRouter(setWeight(20), pause(0)), 1)
		c.RevertAfter = 0
		c.Send(v1alpha1.AbortAnnotation, "stop")
		mustReach(t, c, 30, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		c.Run(60, nil)
		return c
	}
	t.Run("a third version starts at step 0", func(t *testing.T) {
		c := abort(t)
		push(c, "v3")
		c.Pass()
		if c.Status.Abort || !atStep("v3", 0)(c) || c.Weight() != 0 || c.Status.Phase != v1alpha1.RolloutPhaseProgressing {
			t.Errorf("status %+v, weight %d", c.Status, c.Weight())
		}
		if c.Status.Superseded != 0 {
			t.Error("an aborted version counts as superseded")
		}
	})
	t.Run("back to stable is Healthy at once", func(t *testing.T) {
		c := abort(t)
		push(c, "v1")
		c.Pass()
		if !healthyOn("v1")(c) || len(c.Runs()) != 0 {
			t.Errorf("phase %s (%s)", c.Status.Phase, c.Status.Message)
		}
	})
}

func TestC22_ScalingChangesCountsOnly(t *testing.T) {
	c := paused(t, withRouter(setWeight(20), pause(0), setWeight(60), pause(0)), 1)
	before := *c.Status.DeepCopy()
	c.Scale(10)
	c.Run(20, nil)
	noViolations(t, c)
	if c.Desired("v1") != 10 || c.Desired("v2") != 2 || c.Weight() != 20 {
		t.Errorf("v1 %d, v2 %d, weight %d; want 10, 2, 20", c.Desired("v1"), c.Desired("v2"), c.Weight())
	}
	after := c.Status
	if diff := cmp.Diff([]any{before.CurrentStepIndex, before.PauseConditions, before.Attempt}, []any{after.CurrentStepIndex, after.PauseConditions, after.Attempt}); diff != "" {
		t.Errorf("scaling changed the state (-before +after):\n%s", diff)
	}
	c.Send(v1alpha1.PromoteAnnotation, "go")
	mustReach(t, c, 60, "the next pause", pausedAt("v2", 3))
	if c.Desired("v2") != 6 {
		t.Errorf("v2 has %d pods at 60%%, want 6", c.Desired("v2"))
	}
}

func TestC28_WaitsForWhatIsMissing(t *testing.T) {
	c := cluster(withRouter(setWeight(20)))
	c.Missing = []string{"HTTPRoute shop/web does not exist"}
	push(c, "v1")
	p := c.Pass()
	if len(p.ReplicaSets)+len(p.Services) > 0 || p.Split != nil || p.Status.Phase != v1alpha1.RolloutPhaseProgressing {
		t.Errorf("plan %+v", p)
	}
	if p.WakeAfter == 0 || p.WakeAfter > 20*time.Second {
		t.Errorf("wakes after %s, want within 20 s", p.WakeAfter)
	}
	c.Missing = nil
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
}

func TestC29_AbortWithNothingInProgressIsRefused(t *testing.T) {
	c := cluster(withRouter(setWeight(20), pause(0)))
	stableAt(t, c, "v1")
	c.Send(v1alpha1.AbortAnnotation, "stop")
	p := c.Pass()
	if p.Split != nil || len(p.ReplicaSets) > 0 || c.Status.Phase != v1alpha1.RolloutPhaseHealthy || c.Status.Abort {
		t.Errorf("plan %+v", p)
	}
	if got := c.Status.Verbs["abort"]; got.Token != "stop" || got.Refused == "" {
		t.Errorf("answer %+v", got)
	}
	push(c, "v2")
	mustReach(t, c, 60, "the pause, unharmed by the old abort", pausedAt("v2", 1))
}

// A new build computes the same hashes, so nothing may start; the steps' hash is
// over the declared JSON, where fields that a newer build knows are absent.
func TestC34_NothingStartsOnAnUnchangedTemplate(t *testing.T) {
	c := paused(t, withRouter(setWeight(20), pause(0)), 1)
	c.Run(30, nil)
	writes, attempt := c.Writes, c.Status.Attempt
	for range 30 {
		c.Pass()
		c.Tick(2)
	}
	if c.Writes != writes || c.Status.Attempt != attempt {
		t.Errorf("%d writes, attempt %d -> %d", c.Writes-writes, attempt, c.Status.Attempt)
	}
}

func TestC43_OneRunHoweverOftenItIsDecided(t *testing.T) {
	c := cluster(withRouter(setWeight(20), analyse()))
	c.Verdict = func(plan.Run) plansim.Script { return plansim.Script{} } // never ends
	c.Lag["runs"] = 1000                                                  // and is never seen
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the analysis", atStep("v2", 1))
	for range 20 {
		c.Pass()
	}
	if len(c.Runs()) != 1 {
		t.Errorf("%d runs: %+v", len(c.Runs()), c.Runs())
	}
}

func TestC49_StableAloneIsNeverOverdue(t *testing.T) {
	strategy := withRouter(setWeight(20))
	strategy.ScaleDownDelaySeconds = ptr(int32(86400))
	c := cluster(strategy)
	c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(30)), true
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "Healthy", healthyOn("v2"))
	c.Run(120, nil)
	if c.Pods("v1") != 4 || c.Status.Phase != v1alpha1.RolloutPhaseHealthy {
		t.Errorf("%d pods of v1 in their delay, phase %s (%s)", c.Pods("v1"), c.Status.Phase, c.Status.Message)
	}
	c.BreakPods("v2", 2)
	c.Run(300, nil)
	if c.Status.Abort || len(c.Status.Rejected) > 0 || c.Weight() != 0 || c.Status.StableRS != "v2" {
		t.Errorf("aborted outside of any update: %+v", c.Status)
	}
	c.HealPods("v2")
	mustReach(t, c, 20, "Healthy", healthyOn("v2"))
}

func TestC53_EditedSteps(t *testing.T) {
	edit := func(c *plansim.Cluster, steps ...v1alpha1.CanaryStep) {
		c.Edit("edits the steps", func(s *v1alpha1.RolloutSpec) { s.Strategy.Canary.Steps = steps })
	}
	at60 := func(t *testing.T) *plansim.Cluster {
		c := paused(t, withRouter(setWeight(20), pause(1), setWeight(60), pause(0)), 3)
		return c
	}
	t.Run("later ones: it goes on where it is", func(t *testing.T) {
		c := at60(t)
		attempt := c.Status.Attempt
		edit(c, setWeight(20), pause(1), setWeight(60), pause(0), setWeight(80), pause(0))
		p := c.Pass()
		if c.Status.Attempt != attempt || !pausedAt("v2", 3)(c) || c.Weight() != 60 || len(p.Events) == 0 {
			t.Errorf("attempt %d -> %d, step %s, weight %d, events %v", attempt, c.Status.Attempt, c.Status.Step, c.Weight(), p.Events)
		}
	})
	t.Run("earlier ones: a new attempt, the weight only goes down", func(t *testing.T) {
		c := at60(t)
		attempt := c.Status.Attempt
		edit(c, setWeight(10), pause(1), setWeight(20), pause(1), setWeight(60), pause(0))
		p := c.Pass()
		if c.Status.Attempt != attempt+1 || !atStep("v2", 0)(c) || p.Split == nil || p.Split.Canary != 10 || len(p.Events) == 0 {
			t.Errorf("attempt %d -> %d, step %s, split %v", attempt, c.Status.Attempt, c.Status.Step, p.Split)
		}
		mustReach(t, c, 120, "the pause at 60", pausedAt("v2", 5))
	})
	t.Run("with a higher first weight it doesn't jump there", func(t *testing.T) {
		c := paused(t, withRouter(setWeight(20), pause(0)), 1)
		edit(c, setWeight(90), pause(0))
		if p := c.Pass(); p.Split != nil {
			t.Errorf("split %v in the pass that restarts the steps", p.Split)
		}
		mustReach(t, c, 60, "the pause at 90", pausedAt("v2", 1))
	})
	t.Run("with a new template too", func(t *testing.T) {
		c := at60(t)
		edit(c, setWeight(10), pause(0))
		push(c, "v3")
		c.Pass()
		if !atStep("v3", 0)(c) || c.Weight() != 0 {
			t.Errorf("step %s of %s, weight %d", c.Status.Step, c.Status.CurrentPodHash, c.Weight())
		}
	})
	t.Run("while stable nothing happens", func(t *testing.T) {
		c := cluster(withRouter(setWeight(20)))
		stableAt(t, c, "v1")
		attempt := c.Status.Attempt
		edit(c, setWeight(1), pause(0), setWeight(2))
		c.Run(20, nil)
		if c.Status.Attempt != attempt || !healthyOn("v1")(c) || c.Status.Step != "3/3" {
			t.Errorf("attempt %d -> %d, phase %s, step %s", attempt, c.Status.Attempt, c.Status.Phase, c.Status.Step)
		}
	})
}

func TestC80_AnInvalidSpecFreezesEverything(t *testing.T) {
	c := paused(t, withRouter(setWeight(20), pause(1), setWeight(60)), 1)
	c.Invalid = []string{"spec.selector: it can't be changed"}
	push(c, "v3")
	c.Scale(9)
	for range 20 {
		p := c.Pass()
		if p.Split != nil || len(p.Services)+len(p.ReplicaSets)+len(p.Runs)+len(p.Prune) > 0 {
			t.Fatalf("acts on an invalid spec: %+v", p)
		}
		c.Tick(5)
	}
	if c.Status.Phase != v1alpha1.RolloutPhaseDegraded || find(c.Status, "Stalled").Status != metav1.ConditionTrue ||
		find(c.Status, v1alpha1.InvalidSpecCondition).Status != metav1.ConditionTrue || !strings.Contains(c.Status.Message, "spec.selector") {
		t.Errorf("phase %s, message %q", c.Status.Phase, c.Status.Message)
	}
	if c.Weight() != 20 || c.Pods("v1") != 4 || c.Exists("v3") {
		t.Errorf("weight %d, %d pods of v1, v3 exists: %v", c.Weight(), c.Pods("v1"), c.Exists("v3"))
	}
}

func TestC82_KeptReplicaSetCountsForNothing(t *testing.T) {
	strategy := withRouter(setWeight(50))
	strategy.ScaleDownDelaySeconds = ptr(int32(3600))
	c := cluster(strategy)
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "Healthy", healthyOn("v2"))
	c.Scale(6)
	mustReach(t, c, 30, "Healthy", healthyOn("v2"))
	push(c, "v3")
	mustReach(t, c, 120, "Healthy", healthyOn("v3"))
	noViolations(t, c)
	if c.Pods("v1") != 4 {
		t.Errorf("%d pods of v1 in their delay, want the 4 it had", c.Pods("v1"))
	}
}

func TestC95_ResumeAfterInconclusiveSkipsTheStepOnce(t *testing.T) {
	for _, verb := range []string{v1alpha1.PromoteAnnotation, v1alpha1.ResumeAnnotation} {
		t.Run(verb, func(t *testing.T) {
			c := cluster(withRouter(setWeight(20), analyse(), pause(50)))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseInconclusive})
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 60, "the question", phase(v1alpha1.RolloutPhasePaused))
			c.Run(200, nil)
			if !atStep("v2", 1)(c) {
				t.Fatalf("moved on by itself to step %s", c.Status.Step)
			}
			c.Send(verb, "go")
			c.Pass()
			if !atStep("v2", 2)(c) || len(c.Runs()) != 1 || c.Status.StepStartedAt == nil || !c.Status.StepStartedAt.Time.Equal(c.Now) {
				t.Fatalf("step %s started at %v, %d runs", c.Status.Step, c.Status.StepStartedAt, len(c.Runs()))
			}
			mustReach(t, c, 90, "Healthy", healthyOn("v2"))
			if len(c.Runs()) != 1 {
				t.Errorf("%d runs in the end", len(c.Runs()))
			}
		})
	}
}

func TestC98_NothingLeaksToTheNextVersion(t *testing.T) {
	strategy := withRouter(setWeight(30), pause(20), setWeight(60))
	strategy.Analysis = background(0)
	c := cluster(strategy)
	c.Verdict = verdicts("v2", plan.RunBackground, plansim.Script{After: 60 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail})
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
	push(c, "v3")
	mustReach(t, c, 120, "Healthy", healthyOn("v3"))
	c.Run(60, nil)
	if len(c.Status.Rejected) > 0 || len(c.Reverts()) > 0 {
		t.Errorf("v2's verdict hit somebody: %+v", c.Status.Rejected)
	}
	for _, run := range c.Runs() {
		if run.Hash == "v2" && !run.Terminating {
			t.Error("v2's background run was not ended")
		}
	}
	// A verdict of v2's attempt that arrives late condemns nobody either.
	in, _ := c.Observe()
	in.Runs = append(in.Runs, plan.Run{Name: "late", Kind: plan.RunBackground, Hash: "v2", Attempt: 2, Phase: v1alpha1.AnalysisPhaseFailed})
	if p := plan.Decide(in); p.Status.Abort {
		t.Error("a late verdict of another attempt aborted v3")
	}
}

func TestC103_AStepEndsOnlyWithItsRun(t *testing.T) {
	c := cluster(withRouter(setWeight(20), analyse()))
	c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 500 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail})
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Run(480, nil)
	if !atStep("v2", 1)(c) {
		t.Fatalf("left the analysis at step %s while its run runs", c.Status.Step)
	}
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
}

func TestC107_PausedStillScales(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"with a router":    withRouter(setWeight(20), pause(0)),
		"without a router": withoutRouter(setWeight(25), pause(0)),
	} {
		t.Run(name, func(t *testing.T) {
			c := paused(t, strategy, 1)
			c.Edit("pauses", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
			weight, canary := c.Weight(), c.Desired("v2")
			c.Scale(8)
			c.Run(60, nil)
			noViolations(t, c)
			if got := c.Desired("v1") + c.Desired("v2"); c.Desired("v1") < 6 || got < 8 {
				t.Errorf("%d pods of v1 and %d of v2 for 8 replicas", c.Desired("v1"), c.Desired("v2"))
			}
			if !atStep("v2", 1)(c) || c.Weight() != weight || c.Desired("v2") < canary || c.Status.Phase != v1alpha1.RolloutPhasePaused {
				t.Errorf("step %s, weight %d -> %d, phase %s", c.Status.Step, weight, c.Weight(), c.Status.Phase)
			}
		})
	}
}

// A selector that was wanted and never written is put right in the status, also where
// no pod is to serve and no event will come.
func TestWhatWasNotWrittenIsForgottenWithoutPodsToo(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	stableAt(t, c, "v1")
	c.Scale(0)
	c.Run(60, nil)
	now := metav1.NewTime(c.Now)
	c.Status.Canary.Weights.Canary.PodTemplateHash, c.Status.Canary.Weights.Since = "v2", &now
	if p := plan.Decide(observe(c)); p.WakeAfter == 0 {
		t.Fatalf("nothing wakes it: %+v", p.Status.Canary.Weights)
	}
	c.Pass()
	mustReach(t, c, 30, "the status to be right", func(c *plansim.Cluster) bool {
		return c.Status.Canary.Weights.Canary.PodTemplateHash == "v1"
	})
}
