package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// kstatus is the table of the design, part 4, as "Ready Reconciling Stalled".
func kstatus(st v1alpha1.RolloutStatus) string {
	out := []string{}
	for _, kind := range []string{"Ready", "Reconciling", "Stalled"} {
		status := string(find(st, kind).Status)
		if status == "" {
			status = "-"
		}
		out = append(out, status)
	}
	return strings.Join(out, " ")
}

func TestConditionsByPhase(t *testing.T) {
	aborted := func(after func(*plansim.Cluster)) func(*testing.T) plan.In {
		return func(t *testing.T) plan.In {
			c := paused(t, withRouter(setWeight(20), pause(0)), 1)
			c.RevertAfter = 0
			c.Send(v1alpha1.AbortAnnotation, "stop")
			c.Run(60, nil)
			after(c)
			return observe(c)
		}
	}
	withRevert := func(phase v1alpha1.RevertPhase, reason string) func(*testing.T) plan.In {
		return func(t *testing.T) plan.In {
			in := aborted(func(*plansim.Cluster) {})(t)
			in.Reverts = []plan.Revert{{Name: "web-v2-2", Hash: "v2", Attempt: 2, Phase: phase, Reason: reason}}
			return in
		}
	}
	for name, tc := range map[string]struct {
		in    func(*testing.T) plan.In
		phase v1alpha1.RolloutPhase
		want  string
		// reason of Ready, and other conditions as "Type=Status"
		reason string
		others []string
	}{
		"healthy":                  {situations["stable"], "Healthy", "True - -", v1alpha1.ReasonHealthy, []string{"Progressing=True", "Available=True", "Healthy=True"}},
		"progressing":              {situations["at the end"], "Progressing", "Unknown True -", v1alpha1.ReasonProgressing, []string{"Progressing=True", "Available=True", "Healthy=False"}},
		"step pause":               {situations["pause"], "Paused", "Unknown True -", v1alpha1.ReasonPaused, []string{"Progressing=Unknown", "Available=True", "Healthy=False", "Paused=True"}},
		"paused by Git":            {situations["spec.paused"], "Paused", "Unknown True -", v1alpha1.ReasonPaused, []string{"Progressing=Unknown", "Available=True", "Healthy=False", "Paused=True"}},
		"to be confirmed":          {situations["irreversible"], "Paused", "Unknown True -", v1alpha1.ReasonPaused, []string{"Progressing=Unknown", "Available=True", "Healthy=False", "Paused=True"}},
		"aborted, revert asked":    {aborted(func(*plansim.Cluster) {}), "Degraded", "False - -", v1alpha1.ReasonAborted, []string{"Progressing=False", "Available=True", "Healthy=False", "Held=True", "Reverted=Unknown"}},
		"aborted, revert pushed":   {withRevert(v1alpha1.RevertPushed, ""), "Degraded", "False - -", v1alpha1.ReasonAborted, []string{"Progressing=False", "Available=True", "Healthy=False", "Held=True", "Reverted=Unknown"}},
		"aborted, pull request":    {withRevert(v1alpha1.RevertPullRequestOpen, ""), "Degraded", "False - -", v1alpha1.ReasonAborted, []string{"Progressing=False", "Available=True", "Healthy=False", "Held=True", "Reverted=Unknown"}},
		"aborted, revert observed": {withRevert(v1alpha1.RevertObserved, ""), "Degraded", "False - -", v1alpha1.ReasonAborted, []string{"Progressing=False", "Available=True", "Healthy=False", "Held=True", "Reverted=True"}},
		"aborted, revert blocked":  {withRevert(v1alpha1.RevertBlocked, v1alpha1.RevertReasonDeclined), "Degraded", "False - True", v1alpha1.ReasonAborted, []string{"Progressing=False", "Available=True", "Healthy=False", "Held=True", "Reverted=False"}},
		"invalid": {func(t *testing.T) plan.In {
			in := situations["pause"](t)
			in.Invalid = []string{"spec.replicas: no"}
			return in
		}, "Degraded", "False - True", v1alpha1.ReasonInvalidSpec, []string{"Progressing=False", "Available=True", "Healthy=False", "Paused=True", "InvalidSpec=True"}},
		"missing": {func(t *testing.T) plan.In {
			in := situations["stable"](t)
			in.Missing = []string{"Service shop/web-canary"}
			return in
		}, "Progressing", "Unknown True -", v1alpha1.ReasonProgressing, []string{"Progressing=True", "Available=True", "Healthy=False"}},
		"edited by hand": {func(t *testing.T) plan.In {
			in := situations["stable"](t)
			in.Source.Hash = "v7"
			return in
		}, "Healthy", "True - -", v1alpha1.ReasonHealthy, []string{"Progressing=True", "Available=True", "Healthy=True", "TemplateModified=True"}},
	} {
		t.Run(name, func(t *testing.T) {
			st := plan.Decide(tc.in(t)).Status
			others := []string{}
			for _, c := range st.Conditions {
				if c.Reason == "" || c.ObservedGeneration == 0 || c.LastTransitionTime.IsZero() {
					t.Errorf("incomplete condition %+v", c)
				}
				if !slices.Contains([]string{"Ready", "Reconciling", "Stalled"}, c.Type) {
					others = append(others, fmt.Sprintf("%s=%s", c.Type, c.Status))
				}
			}
			if st.Phase != tc.phase || kstatus(st) != tc.want || ready(st).Reason != tc.reason {
				t.Errorf("phase %s, %q, reason %s; want %s, %q, %s (%s)", st.Phase, kstatus(st), ready(st).Reason, tc.phase, tc.want, tc.reason, st.Message)
			}
			if diff := cmp.Diff(tc.others, others); diff != "" {
				t.Errorf("other conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTransitionTimesMoveWithTheStatusOnly(t *testing.T) {
	in := situations["pause"](t)
	before := plan.Decide(in).Status
	in.Status = before
	in.Now = in.Now.Add(time.Hour)
	in.Status.StepStartedAt = ptr(metav1.NewTime(in.Now))
	after := plan.Decide(in).Status
	if diff := cmp.Diff(before.Conditions, after.Conditions); diff != "" {
		t.Errorf("an hour changed the conditions:\n%s", diff)
	}
	in.Spec.Paused = true
	in.Generation++
	for _, c := range plan.Decide(in).Status.Conditions {
		if c.Type == "Ready" && !c.LastTransitionTime.Equal(ptr(find(before, "Ready").LastTransitionTime)) {
			t.Errorf("%s keeps its status and loses its time", c.Type)
		}
	}
}

// Messages are the same from pass to pass, whatever the time and the counters.
func TestMessagesHoldNoTime(t *testing.T) {
	for name, situation := range situations {
		in := situation(t)
		first := plan.Decide(in)
		in.Now = in.Now.Add(3 * time.Second)
		if second := plan.Decide(in); first.Status.Message != second.Status.Message {
			t.Errorf("%s: %q became %q", name, first.Status.Message, second.Status.Message)
		}
	}
}

func TestScaleStatusMatchesThePodsThatServe(t *testing.T) {
	only := func(hash string) string { return "app=web,pushback.dev/template-hash=" + hash }
	t.Run("with a router", func(t *testing.T) {
		c := cluster(withRouter(pause(5), setWeight(25), pause(0)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 30, "the first pause", pausedAt("v2", 0))
		if got := c.Status; got.Selector != only("v1") || got.HPAReplicas != 4 {
			t.Errorf("without weight: %q, %d pods", got.Selector, got.HPAReplicas)
		}
		mustReach(t, c, 30, "the second pause", pausedAt("v2", 2))
		c.Run(10, nil)
		if got := c.Status; got.Selector != "app=web,pushback.dev/template-hash in (v1,v2)" || got.HPAReplicas != 5 {
			t.Errorf("with weight: %q, %d pods", got.Selector, got.HPAReplicas)
		}
		c.Send(v1alpha1.AbortAnnotation, "stop")
		c.Run(15, nil)
		if got := c.Status; got.Selector != only("v1") || got.HPAReplicas != 4 || c.Pods("v2") != 1 {
			t.Errorf("after the abort: %q, %d pods", got.Selector, got.HPAReplicas)
		}
	})
	t.Run("without a router", func(t *testing.T) {
		c := paused(t, withoutRouter(setWeight(50), pause(0)), 1)
		c.Run(10, nil)
		if got := c.Status; got.Selector != "app=web,pushback.dev/template-hash in (v1,v2)" || got.HPAReplicas != 4 {
			t.Errorf("%q, %d pods", got.Selector, got.HPAReplicas)
		}
	})
	t.Run("first version", func(t *testing.T) {
		c := cluster(withRouter())
		push(c, "v1")
		c.Run(2, nil)
		if got := c.Status.Selector; got != only("v1") {
			t.Errorf("%q", got)
		}
	})
}

func TestSizeDoesNotFallWhileTheCanaryHasTraffic(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	c.Scale(2)
	c.Run(20, nil)
	if c.Desired("v1") != 4 || c.Desired("v2") != 2 {
		t.Errorf("stable %d, canary %d; want 4 and 2 while the canary has traffic", c.Desired("v1"), c.Desired("v2"))
	}
	c.Send(v1alpha1.AbortAnnotation, "stop")
	mustReach(t, c, 30, "two stable pods", func(c *plansim.Cluster) bool { return c.Desired("v1") == 2 })
	if c.DataPlane() != 0 {
		t.Error("the size fell before the traffic was gone")
	}
}

func TestGitStatus(t *testing.T) {
	c := cluster(withRouter(setWeight(25), analyse()))
	c.Verdict = verdicts("v2", plan.RunStep, fails)
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	if got := c.Status.Git; got.Stable.Hash != "v1" || got.Current.Hash != "v2" || got.Current.ShortCommit != "v2c0ffe" || got.Current.Subject != "Update web to v2" {
		t.Errorf("stable %+v, current %+v", got.Stable, got.Current)
	}
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	if got := c.Status.Git; got.Stable.Revision != "main@sha1:v1c0ffee" || got.Current.Revision != "main@sha1:revert1" {
		t.Errorf("stable %+v, current %+v", got.Stable, got.Current)
	}
	if got := find(c.Status, v1alpha1.RevertedCondition); got.Status == metav1.ConditionFalse || got.Status == "" {
		t.Errorf("Reverted is %+v", got)
	}
	c.Run(30, nil)
	if got := find(c.Status, v1alpha1.RevertedCondition); got.Status != metav1.ConditionTrue {
		t.Errorf("Reverted is %+v", got)
	}
	push(c, "v3")
	mustReach(t, c, 60, "Healthy", healthyOn("v3"))
	if got := find(c.Status, v1alpha1.RevertedCondition); got.Status != "" {
		t.Errorf("Reverted outlives the next version: %+v", got)
	}
}
