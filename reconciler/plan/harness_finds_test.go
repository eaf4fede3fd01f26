package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// An abort waits for its traffic until that was verified, not until it was written.
func TestC05_AnAbortWaitsForTheVerifiedWeight(t *testing.T) {
	c := cluster(withRouter(setWeight(50), pause(0)))
	c.RevertAfter = 0
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
	c.DataPlaneDelay = 20e9
	c.Send(v1alpha1.AbortAnnotation, "stop")
	c.Run(15, nil)
	if c.Weight() != 0 || !strings.Contains(c.Status.Message, "waiting for traffic shift") {
		t.Errorf("weight %d, message %q; want 0 and to wait for the data plane", c.Weight(), c.Status.Message)
	}
	c.Run(15, nil)
	if strings.Contains(c.Status.Message, "waiting") {
		t.Errorf("message %q when the data plane has it", c.Status.Message)
	}
}

// A pause that is in trouble too goes on: only its end resumes it.
func TestAPauseInTroubleIsNotResumed(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	in := observe(c)
	in.ReplicaSets = slices.DeleteFunc(in.ReplicaSets, func(rs plan.ReplicaSet) bool { return rs.Hash == "v1" })
	resumed := func(p plan.Plan) bool {
		for _, e := range p.Events {
			if e.Reason == v1alpha1.ReasonResumed {
				return true
			}
		}
		return false
	}
	p := plan.Decide(in)
	if p.Status.Phase != v1alpha1.RolloutPhaseDegraded || resumed(p) {
		t.Fatalf("phase %s, events %+v; want Degraded and no word of an end of the pause", p.Status.Phase, p.Events)
	}
	in.Status = p.Status
	in.Verbs = map[string]string{v1alpha1.PromoteAnnotation: "v2/1/go"}
	if p = plan.Decide(in); !resumed(p) {
		t.Errorf("events %+v of a promotion, want that it goes on", p.Events)
	}
}

// The clock of a rejected version's pods, which runs since another version took its
// place, is not set back when that one is promoted; and with an abort delay of 0,
// which keeps pods only until then, it doesn't stop.
func TestC05_APromotionSetsNoClockBack(t *testing.T) {
	for name, delay := range map[string]*int32{"default": nil, "kept until another follows": ptr(int32(0))} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(setWeight(50), analyse())
			strategy.AbortScaleDownDelaySeconds = delay
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 60, "the analysis", runs(plan.RunStep, "v2"))
			c.RefuseWeights = true
			mustReach(t, c, 60, "the abort", phase(v1alpha1.RolloutPhaseDegraded))
			push(c, "v3")
			c.Run(5, nil)
			c.RefuseWeights = false
			mustReach(t, c, 60, "v3's Service", func(c *plansim.Cluster) bool { return c.Selects("canary") == "v3" })
			moved := c.Now
			c.Run(2, nil)
			mustReach(t, c, 60, "v3 promoted", func(c *plansim.Cluster) bool { return c.Status.StableRS == "v3" })
			if c.Desired("v2") == 0 {
				t.Fatal("v2's pods are gone already")
			}
			mustReach(t, c, 60, "v2 without pods", func(c *plansim.Cluster) bool { return c.Desired("v2") == 0 })
			if took := c.Now.Sub(moved).Seconds(); took < 30 || took > 31 {
				t.Errorf("v2's pods were kept for %v s after the Service left them, want 30", took)
			}
		})
	}
}
