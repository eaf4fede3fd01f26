package plan_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// situations are states that a verb may meet; each is at step index 1 or stable.
var situations = map[string]func(*testing.T) plan.In{
	"stable": func(t *testing.T) plan.In {
		c := cluster(withRouter(setWeight(20), pause(0)))
		stableAt(t, c, "v1")
		return observe(c)
	},
	"pause": func(t *testing.T) plan.In {
		return observe(paused(t, withRouter(setWeight(20), pause(0), setWeight(60), pause(0)), 1))
	},
	"weight": func(t *testing.T) plan.In {
		c := cluster(withRouter(setWeight(20), setWeight(40), pause(0)))
		c.DataPlaneDelay = 20 * time.Second
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "the second weight", atStep("v2", 1))
		return observe(c)
	},
	"inconclusive": func(t *testing.T) plan.In {
		c := cluster(withRouter(setWeight(20), analyse(), pause(0)))
		c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{Phase: v1alpha1.AnalysisPhaseInconclusive})
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "the question", pausedAt("v2", 1))
		return observe(c)
	},
	"user pause": func(t *testing.T) plan.In {
		in := situationNamed("pause")(t)
		in.Status.PauseConditions = append(in.Status.PauseConditions, v1alpha1.PauseCondition{Reason: v1alpha1.PauseReasonUser, StartTime: metav1.NewTime(in.Now)})
		return in
	},
	"spec.paused": func(t *testing.T) plan.In {
		in := situationNamed("pause")(t)
		in.Spec.Paused = true
		return in
	},
	"aborted": func(t *testing.T) plan.In {
		c := paused(t, withRouter(setWeight(20), pause(0)), 1)
		c.RevertAfter = 0
		c.Send(v1alpha1.AbortAnnotation, "earlier")
		c.Run(60, nil)
		return observe(c)
	},
	"irreversible": func(t *testing.T) plan.In {
		c := cluster(withRouter(setWeight(20), pause(0)))
		stableAt(t, c, "v1")
		push(c, "v2")
		c.Template.Irreversible = true
		c.Run(20, nil)
		return observe(c)
	},
	"at the end": func(t *testing.T) plan.In {
		c := cluster(withRouter(setWeight(20)))
		c.Behaviours["v2"] = plansim.Behaviour{Limit: 1}
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the end of the steps", atStep("v2", 1))
		return observe(c)
	},
}

// situationNamed breaks the cycle of the table's initialisation.
func situationNamed(name string) func(*testing.T) plan.In {
	return map[string]func(*testing.T) plan.In{
		"pause": func(t *testing.T) plan.In {
			return observe(paused(t, withRouter(setWeight(20), pause(0), setWeight(60), pause(0)), 1))
		},
	}[name]
}

func observe(c *plansim.Cluster) plan.In {
	in, _ := c.Observe()
	return in
}

// effects of verbs, by situation and verb: what the status then is. A refusal is "no".
func TestVerbs(t *testing.T) {
	const (
		abort   = v1alpha1.AbortAnnotation
		pause   = v1alpha1.PauseAnnotation
		resume  = v1alpha1.ResumeAnnotation
		retry   = v1alpha1.RetryAnnotation
		promote = v1alpha1.PromoteAnnotation
		full    = v1alpha1.PromoteFullAnnotation
		restart = v1alpha1.RestartAnnotation
	)
	for situation, verbs := range map[string]map[string]string{
		"stable":       {abort: "no", pause: "step 2 UserPause", resume: "no", retry: "no", promote: "no", full: "no", restart: "step 2"},
		"pause":        {abort: "aborted", pause: "step 1 CanaryPauseStep UserPause", resume: "no", retry: "no", promote: "step 2", full: "step 4 full", restart: "step 1 CanaryPauseStep"},
		"weight":       {abort: "aborted", pause: "step 1 UserPause", resume: "no", retry: "no", promote: "step 2", full: "step 3 full", restart: "step 1"},
		"inconclusive": {abort: "aborted", pause: "step 1 InconclusiveAnalysisRun UserPause", resume: "step 2 CanaryPauseStep", retry: "no", promote: "step 2 CanaryPauseStep", full: "step 3 full"},
		"user pause":   {abort: "aborted", pause: "no", resume: "step 1 CanaryPauseStep", retry: "no", promote: "step 2", full: "step 4 full"},
		"spec.paused":  {abort: "aborted", pause: "no", resume: "no", retry: "no", promote: "no", full: "no"},
		"aborted":      {abort: "no", pause: "aborted UserPause", resume: "no", retry: "step 0", promote: "no", full: "no"},
		"irreversible": {abort: "aborted", pause: "step 0 IrreversibleUnconfirmed UserPause", resume: "no", retry: "no", promote: "step 0", full: "step 2 full"},
		"at the end":   {abort: "aborted", pause: "step 1 UserPause", resume: "no", retry: "no", promote: "no", full: "step 1 full"},
	} {
		for annotation, want := range verbs {
			t.Run(situation+"/"+annotation, func(t *testing.T) {
				in := situations[situation](t)
				index := int32(0)
				if in.Status.CurrentStepIndex != nil {
					index = *in.Status.CurrentStepIndex
				}
				in.Verbs = map[string]string{annotation: fmt.Sprintf("%s/%d/now", in.Status.CurrentPodHash, index)}
				p := plan.Decide(in)
				answer := p.Status.Verbs[annotation[len("pushback.dev/"):]]
				if answer.Token != "now" {
					t.Fatalf("the token was not echoed: %+v", p.Status.Verbs)
				}
				if (answer.Refused != "") != (want == "no") {
					t.Fatalf("refused %q, want %q", answer.Refused, want)
				}
				if got := summary(p.Status); want != "no" && got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if want == "no" && (p.Status.Abort != in.Status.Abort || p.Status.Attempt != in.Status.Attempt) {
					t.Errorf("a refused verb changed the status to %q", summary(p.Status))
				}
				again := in
				again.Status = p.Status
				if next := plan.Decide(again); next.Status.Attempt != p.Status.Attempt || next.Status.Verbs["x"] != p.Status.Verbs["x"] || len(next.Status.Verbs) != len(p.Status.Verbs) {
					t.Errorf("the same token had a second effect: %q", summary(next.Status))
				}
			})
		}
	}
}

func summary(st v1alpha1.RolloutStatus) string {
	out := "aborted"
	if !st.Abort {
		out = fmt.Sprintf("step %d", *st.CurrentStepIndex)
	}
	for _, p := range st.PauseConditions {
		out += " " + string(p.Reason)
	}
	if st.PromoteFull {
		out += " full"
	}
	return out
}

func TestStaleVerbsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ annotation, value string }{
		"promote of another version":      {v1alpha1.PromoteAnnotation, "v1/1/t"},
		"promote of an earlier step":      {v1alpha1.PromoteAnnotation, "v2/0/t"},
		"promote-full of another version": {v1alpha1.PromoteFullAnnotation, "v0/1/t"},
		"abort of another version":        {v1alpha1.AbortAnnotation, "v1/1/t"},
		"pause of another version":        {v1alpha1.PauseAnnotation, "v1/1/t"},
		"retry of a version in progress":  {v1alpha1.RetryAnnotation, "v2/1/t"},
		"retry of an unknown version":     {v1alpha1.RetryAnnotation, "v9/1/t"},
		"a bare word":                     {v1alpha1.AbortAnnotation, "true"},
		"no hash":                         {v1alpha1.AbortAnnotation, "/1/t"},
		"no token":                        {v1alpha1.AbortAnnotation, "v2/1/"},
		"too many parts":                  {v1alpha1.AbortAnnotation, "v2/1/t/x"},
		"a wildcard":                      {v1alpha1.PromoteAnnotation, "*/1/t"},
	} {
		t.Run(name, func(t *testing.T) {
			in := situations["pause"](t)
			before := plan.Decide(in)
			in.Verbs = map[string]string{tc.annotation: tc.value}
			p := plan.Decide(in)
			answer := p.Status.Verbs[tc.annotation[len("pushback.dev/"):]]
			if answer.Refused == "" || answer.Token == "" {
				t.Errorf("answer %+v", answer)
			}
			if summary(p.Status) != summary(before.Status) || p.Split != nil || p.Revert != nil {
				t.Errorf("had an effect: %q instead of %q", summary(p.Status), summary(before.Status))
			}
			if len(p.Events) == 0 || p.Events[0].Reason != v1alpha1.ReasonVerbRefused {
				t.Errorf("nobody is told: %v", p.Events)
			}
		})
	}
}

func TestResumeCannotHitALaterPause(t *testing.T) {
	in := situations["user pause"](t)
	in.Verbs = map[string]string{v1alpha1.ResumeAnnotation: "v2/0/old"}
	if p := plan.Decide(in); p.Status.Verbs["resume"].Refused == "" {
		t.Errorf("resumed: %q", summary(p.Status))
	}
}

// An abort is taken first, and what came with it waits for the next pass.
func TestAbortIsTakenBeforeOtherVerbs(t *testing.T) {
	for _, other := range []string{v1alpha1.PromoteAnnotation, v1alpha1.PromoteFullAnnotation, v1alpha1.PauseAnnotation, v1alpha1.RetryAnnotation} {
		t.Run(other, func(t *testing.T) {
			in := situations["pause"](t)
			in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/a", other: "v2/1/b"}
			p := plan.Decide(in)
			if !p.Status.Abort || p.Split == nil || p.Split.Canary != 0 || len(p.Status.PauseConditions) > 0 {
				t.Errorf("status %q, split %+v", summary(p.Status), p.Split)
			}
			if _, answered := p.Status.Verbs[other[len("pushback.dev/"):]]; answered {
				t.Error("the other verb was handled in the pass of the abort")
			}
		})
	}
}

func TestAbortAfterPromoteFullWins(t *testing.T) {
	c := paused(t, withRouter(setWeight(20), pause(0)), 1)
	c.Behaviours["v2"] = plansim.Behaviour{Limit: 1}
	c.Send(v1alpha1.PromoteFullAnnotation, "all")
	c.Run(20, nil)
	c.Send(v1alpha1.AbortAnnotation, "no")
	mustReach(t, c, 10, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	if !c.Status.Abort || c.Status.PromoteFull || c.Weight() != 0 {
		t.Errorf("status %q, weight %d", summary(c.Status), c.Weight())
	}
}

func TestAbortCanKeepGit(t *testing.T) {
	for name, keep := range map[string]string{"no annotation": "", "its token": "stop", "another's token": "other"} {
		t.Run(name, func(t *testing.T) {
			in := situations["pause"](t)
			in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
			if keep != "" {
				in.Verbs[v1alpha1.AbortKeepGitAnnotation] = keep
			}
			p := plan.Decide(in)
			if kept := p.Revert == nil; kept != (keep == "stop") {
				t.Errorf("revert %+v", p.Revert)
			}
			if len(p.Status.Rejected) != 1 || keep == "stop" && p.Status.Rejected[0].Revert != v1alpha1.RevertPhaseNone {
				t.Errorf("rejected %+v", p.Status.Rejected)
			}
		})
	}
}

func TestRetryOfAHeldVersion(t *testing.T) {
	c := cluster(withRouter(setWeight(25), analyse()))
	c.Verdict = verdicts("v2", plan.RunStep, fails)
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	push(c, "v2")
	c.Run(60, nil)
	c.Verdict = nil
	c.SendValue(v1alpha1.RetryAnnotation, "v2/0/again")
	mustReach(t, c, 60, "Healthy", healthyOn("v2"))
	if len(c.Status.Rejected) != 0 || c.Role("v2") != v1alpha1.RoleStable {
		t.Errorf("v2 is stable and rejected: %+v", c.Status.Rejected)
	}
}

// A second failure is a second attempt: it is rejected and reverted again, once.
func TestRetryThatFailsIsRevertedOnceMore(t *testing.T) {
	c := cluster(withRouter(setWeight(25), analyse()))
	c.Verdict, c.RevertAfter = verdicts("v2", plan.RunStep, fails), 0
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Run(60, nil)
	c.Send(v1alpha1.RetryAnnotation, "again")
	mustReach(t, c, 10, "attempt 3", func(c *plansim.Cluster) bool { return c.Status.Attempt == 3 && !c.Status.Abort })
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Run(60, nil)
	names := []string{}
	for _, r := range c.Reverts() {
		names = append(names, r.Name)
	}
	if len(names) != 2 || names[0] != "web-v2-2" || names[1] != "web-v2-3" {
		t.Errorf("reverts %v", names)
	}
}
