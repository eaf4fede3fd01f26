package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// A first version that never works must not stand in the way of its fix.
func TestBrokenFirstVersionIsReplaced(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"with a router":    withRouter(setWeight(20), pause(0)),
		"without a router": withoutRouter(setWeight(20), pause(0)),
	} {
		for _, aborts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deadline aborts: %v", name, aborts), func(t *testing.T) {
				c := cluster(strategy)
				c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(30)), aborts
				c.Behaviours["v1"] = plansim.Behaviour{Never: true}
				push(c, "v1")
				mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
				if c.Pods("v1") != 4 {
					t.Errorf("%d pods of v1: nothing else serves, so they stay", c.Pods("v1"))
				}
				c.Run(20, nil)
				if aborts && (len(c.Reverts()) != 1 || c.Status.Rejected[0].Revert != v1alpha1.RevertNoTarget) {
					t.Errorf("reverts %+v, rejected %+v", c.Reverts(), c.Status.Rejected)
				}
				push(c, "v2")
				mustReach(t, c, 120, "Healthy", healthyOn("v2"))
				c.Run(60, nil)
				if c.Pods("v1") != 0 {
					t.Errorf("%d pods of v1 are left", c.Pods("v1"))
				}
			})
		}
	}
}

// A version that serves, though it never became whole, is not skipped over.
func TestServingFirstVersionIsKeptWhileTheNextTakesItsSteps(t *testing.T) {
	c := cluster(withRouter(setWeight(20), pause(0)))
	c.Behaviours["v1"] = plansim.Behaviour{Limit: 3}
	push(c, "v1")
	c.Run(30, nil)
	push(c, "v2")
	mustReach(t, c, 120, "the pause", pausedAt("v2", 1))
	if c.Status.StableRS != "v1" || c.Weight() != 20 || c.Pods("v1") != 4 {
		t.Errorf("stable %q, weight %d, %d pods of v1", c.Status.StableRS, c.Weight(), c.Pods("v1"))
	}
}

func TestHeldWithoutAStableVersion(t *testing.T) {
	c := cluster(withRouter(setWeight(20)))
	c.Behaviours["v1"] = plansim.Behaviour{Never: true}
	push(c, "v1")
	c.Run(5, nil)
	c.Send(v1alpha1.AbortAnnotation, "stop")
	c.Run(30, nil)
	if !c.Status.Abort || c.Status.Phase != v1alpha1.RolloutPhaseDegraded || c.Pods("v1") != 4 {
		t.Errorf("status %q, phase %s, %d pods", summary(c.Status), c.Status.Phase, c.Pods("v1"))
	}
	c.Behaviours["v1"] = plansim.Behaviour{}
	c.Send(v1alpha1.RetryAnnotation, "again")
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
}

func TestDeletedStableReplicaSet(t *testing.T) {
	t.Run("of the live template: made again", func(t *testing.T) {
		c := cluster(withRouter(setWeight(20)))
		stableAt(t, c, "v1")
		c.DeleteSet("v1")
		mustReach(t, c, 60, "four pods", func(c *plansim.Cluster) bool { return c.Pods("v1") == 4 })
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	})
	t.Run("of another template: said, and the new version gets out", func(t *testing.T) {
		c := paused(t, withRouter(setWeight(20), pause(0)), 1)
		c.DeleteSet("v1")
		c.Run(5, nil)
		if c.Status.Phase != v1alpha1.RolloutPhaseDegraded || ready(c.Status).Reason != v1alpha1.ReasonNoSideCanServe {
			t.Errorf("phase %s, %q", c.Status.Phase, c.Status.Message)
		}
		c.Send(v1alpha1.PromoteAnnotation, "go")
		mustReach(t, c, 60, "Healthy", healthyOn("v2"))
	})
}

// A canary whose pods come and go earns no time, and neither does a scaler.
func TestProgressMarkOnlyRises(t *testing.T) {
	for name, disturb := range map[string]func(*plansim.Cluster, int){
		"a flickering pod": func(c *plansim.Cluster, i int) {
			c.Calm = false
			if i%2 == 0 {
				c.BreakPods("v2", 1)
			} else {
				c.HealPods("v2")
			}
		},
		"a scaler that goes up and down": func(c *plansim.Cluster, i int) { c.Scale(4 + int32(i%2)*2) },
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(withRouter(setWeight(50), pause(0)))
			c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
			c.Behaviours["v2"] = plansim.Behaviour{Limit: 1}
			c.RevertAfter = 0
			stableAt(t, c, "v1")
			push(c, "v2")
			for i := range 20 {
				c.Run(6, nil)
				if c.Status.Abort {
					return
				}
				disturb(c, i)
			}
			t.Errorf("not aborted after 120 s without progress: %+v", c.Status.Progress)
		})
	}
}

func TestDeadlineWithoutAbortRecovers(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	c.Spec.ProgressDeadlineSeconds = ptr(int32(30))
	c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: 50 * time.Second}
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 40, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	if c.Status.Abort || kstatus(c.Status) != "False - -" || ready(c.Status).Reason != v1alpha1.ReasonProgressDeadlineExceeded {
		t.Errorf("abort %v, %q, %s", c.Status.Abort, kstatus(c.Status), ready(c.Status).Reason)
	}
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
}

// The clock stands still where no progress can be expected (C50's counterpart:
// a fresh rollout must not be aborted for the time that it was invalid).
func TestDeadlineStandsStill(t *testing.T) {
	for name, hold := range map[string]func(*plansim.Cluster){
		"while paused":             func(c *plansim.Cluster) { c.Spec.Paused = true },
		"while something misses":   func(c *plansim.Cluster) { c.Missing = []string{"Service shop/web"} },
		"while the spec is broken": func(c *plansim.Cluster) { c.Invalid = []string{"spec: no"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(withRouter(setWeight(25), pause(0)))
			c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(30)), true
			c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: 20 * time.Second}
			stableAt(t, c, "v1")
			push(c, "v2")
			c.Run(10, nil)
			hold(c)
			c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: 500 * time.Second}
			c.Run(300, nil)
			if c.Status.Abort {
				t.Error("aborted for the time that it stood still")
			}
		})
	}
}

func TestRevertRequest(t *testing.T) {
	c := cluster(withRouter(setWeight(25), analyse()))
	c.Verdict = verdicts("v2", plan.RunStep, fails)
	stableAt(t, c, "v1")
	push(c, "v2")
	var got *plan.RevertWant
	for range 60 {
		if p := c.Pass(); p.Revert != nil {
			got = p.Revert
			break
		}
		c.Tick(1)
	}
	want := &plan.RevertWant{Name: "web-v2-2", Spec: v1alpha1.RevertRequest{
		Rollout:  v1alpha1.RevertRollout{Namespace: "shop", Name: "web"},
		GitSync:  v1alpha1.RevertGitSync{Namespace: "flux", Name: "apps"},
		Rejected: "v2", Stable: "v1", Attempt: 2, Reason: v1alpha1.AbortFailed, Message: detail,
		RejectedRevision: "main@sha1:v2c0ffee", RejectedSubject: "Update web to v2", AnalysisRun: "web-v2-2-1",
		Measurements: []string{"measured web-v2-2-1"}, AbortedAt: metav1.NewTime(c.Now),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a Revert is wanted for, and why not.
func TestRevertIsWantedOnlyWhenItCanHelp(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*plan.In)
		wanted bool
		phase  v1alpha1.RevertPhase
	}{
		"by default":                  {func(*plan.In) {}, true, ""},
		"not from Git":                {func(in *plan.In) { in.Source = nil }, false, v1alpha1.RevertPhaseNone},
		"mode None":                   {func(in *plan.In) { in.RevertOn = nil }, false, v1alpha1.RevertPhaseNone},
		"not on this reason":          {func(in *plan.In) { in.RevertOn = []v1alpha1.AbortReason{v1alpha1.AbortDeadline} }, false, v1alpha1.RevertPhaseNone},
		"Git declares something else": {func(in *plan.In) { in.Source.Hash = "v7" }, false, v1alpha1.RevertPhaseNone},
	} {
		t.Run(name, func(t *testing.T) {
			in := situations["pause"](t)
			tc.change(&in)
			in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
			p := plan.Decide(in)
			r := p.Status.Rejected
			if (p.Revert != nil) != tc.wanted || len(r) != 1 || r[0].Revert != tc.phase || (r[0].RevertReason == "") != tc.wanted {
				t.Fatalf("revert %+v, rejected %+v", p.Revert, r)
			}
			if p.Split == nil || p.Split.Canary != 0 {
				t.Errorf("split %+v", p.Split)
			}
			// A crash before the Revert is made repeats it word for word.
			in.Status = p.Status
			in.Now = in.Now.Add(90 * time.Second)
			if diff := cmp.Diff(p.Revert, plan.Decide(in).Revert); diff != "" {
				t.Errorf("the repeated revert differs:\n%s", diff)
			}
		})
	}
}

// What happened to Git before the Revert was made.
func TestLateRevertIsNotNeededAnyMore(t *testing.T) {
	in := situations["pause"](t)
	in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
	in.Status = plan.Decide(in).Status
	for hash, want := range map[string]v1alpha1.RevertPhase{"v1": v1alpha1.RevertAlreadyReverted, "v3": v1alpha1.RevertSuperseded} {
		later := in
		later.Template.Hash = hash
		later.Source = &plan.Source{Hash: hash, Revision: "main@sha1:later"}
		if p := plan.Decide(later); p.Revert != nil || p.Status.Rejected[0].Revert != want {
			t.Errorf("Git at %s: revert %v, phase %q, want %q", hash, p.Revert, p.Status.Rejected[0].Revert, want)
		}
	}
}

func TestLaw10_UnmeasuredRejectsOnlyOnRequest(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("revert on Error: %v", on), func(t *testing.T) {
			c := cluster(withRouter(setWeight(25), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{Phase: v1alpha1.AnalysisPhaseError, Detail: "connection refused"})
			c.RevertAfter = 0
			if on {
				c.RevertOn = append(c.RevertOn, v1alpha1.AbortError)
			}
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
			c.Run(30, nil)
			want := 0
			if on {
				want = 1
			}
			if len(c.Reverts()) != want || len(c.Status.Rejected) != want || c.Weight() != 0 {
				t.Errorf("%d reverts, %d rejected, weight %d", len(c.Reverts()), len(c.Status.Rejected), c.Weight())
			}
			if ready(c.Status).Reason != v1alpha1.ReasonUnmeasured || kstatus(c.Status) != "False - -" {
				t.Errorf("%s, %q", ready(c.Status).Reason, kstatus(c.Status))
			}
		})
	}
}

func TestTrailerLiftsTheHoldOnce(t *testing.T) {
	c := cluster(withRouter(setWeight(25), analyse()))
	c.Verdict = verdicts("v2", plan.RunStep, fails)
	c.RevertAfter = 0
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Source.RetryHashes = []string{"v2"} // spoken before it failed: it says nothing about the failure
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Run(120, nil)
	if c.Status.Attempt != 2 {
		t.Fatalf("attempt %d: the trailer of the failed commit itself was taken for a retry", c.Status.Attempt)
	}
	for i, revision := range []string{"main@sha1:one", "main@sha1:two"} {
		c.Commit("v2", revision, "Try again")
		c.Source.RetryHashes = []string{"v2"}
		c.Run(200, nil)
		if want := int64(3 + i); c.Status.Attempt != want || !c.Status.Abort {
			t.Fatalf("attempt %d after commit %s, want %d, failed again", c.Status.Attempt, revision, want)
		}
	}
	noViolations(t, c)
}

func TestIrreversibleVersionsAreConfirmedOnce(t *testing.T) {
	c := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Template.Irreversible = true
	c.Run(300, nil)
	if c.Exists("v2") || c.Status.Phase != v1alpha1.RolloutPhasePaused {
		t.Fatalf("v2 exists: %v, phase %s", c.Exists("v2"), c.Status.Phase)
	}
	c.Send(v1alpha1.PromoteAnnotation, "yes")
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
	c.LoseStatus()
	mustReach(t, c, 60, "the pause again, without asking: its pods run", pausedAt("v2", 1))
}

// A pause outranks the return of the stable template; the message says so.
func TestPausedAfterAnAbortSaysSo(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	c.RevertAfter = 0
	c.Send(v1alpha1.AbortAnnotation, "stop")
	c.Run(20, nil)
	c.Send(v1alpha1.PauseAnnotation, "wait")
	c.Run(5, nil)
	push(c, "v1")
	c.Run(20, nil)
	if !c.Status.Abort || !strings.Contains(c.Status.Message, "manually paused") {
		t.Errorf("abort %v, %q", c.Status.Abort, c.Status.Message)
	}
	c.Send(v1alpha1.ResumeAnnotation, "go")
	mustReach(t, c, 10, "Healthy", healthyOn("v1"))
}

func TestHistoryLimits(t *testing.T) {
	strategy := withRouter(setWeight(50), analyse())
	strategy.ScaleDownDelaySeconds = ptr(int32(0))
	c := cluster(strategy)
	c.Spec.RevisionHistoryLimit = ptr(int32(1))
	c.Spec.Analysis = &v1alpha1.AnalysisRunStrategy{SuccessfulRunHistoryLimit: ptr(int32(2))}
	stableAt(t, c, "v1")
	for _, v := range []string{"v2", "v3", "v4"} {
		push(c, v)
		mustReach(t, c, 120, "Healthy on "+v, healthyOn(v))
		c.Run(30, nil)
	}
	if c.Exists("v1") || c.Exists("v2") || !c.Exists("v3") || !c.Exists("v4") {
		t.Errorf("v1 %v, v2 %v, v3 %v, v4 %v", c.Exists("v1"), c.Exists("v2"), c.Exists("v3"), c.Exists("v4"))
	}
	if got := len(c.Runs()); got != 3 {
		t.Errorf("%d runs, want the current attempt's and two older ones: %+v", got, c.Runs())
	}
}

func TestUsedAgainReplicaSetGetsTheHighestRevision(t *testing.T) {
	c := cluster(withRouter())
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "Healthy", healthyOn("v2"))
	push(c, "v1")
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	in := observe(c)
	revisions := map[string]int64{}
	for _, rs := range in.ReplicaSets {
		revisions[rs.Hash] = rs.Revision
	}
	if diff := cmp.Diff(map[string]int64{"v1": 3, "v2": 2}, revisions); diff != "" {
		t.Error(diff)
	}
}
