package plan_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
	"github.com/pushback-dev/pushback/routers"
)

// paused brings v2 to its first pause, with v1 stable.
func paused(t *testing.T, strategy v1alpha1.CanaryStrategy, index int32) *plansim.Cluster {
	t.Helper()
	c := cluster(strategy)
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the pause", pausedAt("v2", index))
	return c
}

func TestC04_SupersededCanaryKeepsItsPodsWhileItIsNamed(t *testing.T) {
	c := paused(t, withRouter(setWeight(30), pause(0)), 1)
	c.BreakPods("v1", 1)
	c.Behaviours["v3"] = plansim.Behaviour{Never: true}
	push(c, "v3")
	named := func() bool { return c.Selects("canary") == "v2" || c.Selects("stable") == "v2" }
	for range 60 {
		c.Run(1, nil)
		if (named() || c.DataPlane() > 0 && c.Selects("canary") == "v2") && c.Pods("v2") < 2 {
			t.Fatalf("v2 has %d pods while its hash is named\n%s", c.Pods("v2"), transcript(c))
		}
	}
	noViolations(t, c)
	if c.Weight() != 0 || c.Selects("canary") != "v1" || c.Pods("v2") != 0 {
		t.Errorf("weight %d, canary Service on %s, %d pods of v2; want 0, v1, 0\n%s", c.Weight(), c.Selects("canary"), c.Pods("v2"), transcript(c))
	}
	if !atStep("v3", 0)(c) || c.Status.Superseded != 1 {
		t.Errorf("v3 is not at step 0 with one superseded version: %+v", c.Status)
	}
}

func TestC05_AbortClockStartsWhenTheWeightIsSeen(t *testing.T) {
	c := cluster(withRouter(setWeight(50), analyse()))
	c.Verdict, c.RevertAfter = verdicts("v2", plan.RunStep, fails), 0
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the analysis", atStep("v2", 1))
	c.RefuseWeights = true
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Run(120, nil)
	if c.Pods("v2") != 2 || c.Selects("canary") != "v2" {
		t.Fatalf("%d pods of v2 and the canary Service on %s while the router refuses the weight", c.Pods("v2"), c.Selects("canary"))
	}
	if want := "RolloutAborted: " + detail + "; waiting for traffic shift"; c.Status.Message != want {
		t.Errorf("message %q, want %q", c.Status.Message, want)
	}
	c.RefuseWeights = false
	var seen time.Time
	mustReach(t, c, 30, "weight 0 in the data plane", func(c *plansim.Cluster) bool { seen = c.Now; return c.DataPlane() == 0 && c.Weight() == 0 })
	mustReach(t, c, 60, "the end of v2's pods", func(c *plansim.Cluster) bool { return c.Desired("v2") == 0 })
	if waited := c.Now.Sub(seen); waited < 30*time.Second || waited > 40*time.Second {
		t.Errorf("v2 lost its pods %s after its traffic ended, want 30 s and little more\n%s", waited, transcript(c))
	}
	if c.Selects("canary") != "v1" {
		t.Errorf("the canary Service selects %s in the end, want v1", c.Selects("canary"))
	}
}

// A router that can't even be read is still told to take an aborted version back.
func TestC05_AbortIsTriedOnARouterThatCannotBeRead(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	c.RouterErr = "connection refused"
	c.Send(v1alpha1.AbortAnnotation, "stop")
	p := c.Pass()
	if p.Split == nil || p.Split.Canary != 0 || !p.Status.Abort || p.Revert == nil {
		t.Fatalf("split %+v, abort %v, revert %+v", p.Split, p.Status.Abort, p.Revert)
	}
	if want := "RolloutAborted: aborted by a person; waiting for traffic shift: connection refused"; p.Status.Message != want {
		t.Errorf("message %q, want %q", p.Status.Message, want)
	}
	if p.WakeAfter <= 0 {
		t.Error("nothing wakes it up again")
	}
}

func TestC50_DeadlineDoesNotWaitForTheRouter(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
	c.Behaviours["v2"] = plansim.Behaviour{Never: true}
	c.RevertAfter = 0
	stableAt(t, c, "v1")
	c.RouterErr = "the subset does not exist"
	push(c, "v2")
	mustReach(t, c, 62, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	if !c.Status.Abort || c.Status.AbortReason != v1alpha1.AbortDeadline || len(c.Reverts()) != 1 {
		t.Errorf("abort %v for %q, reverts %v", c.Status.Abort, c.Status.AbortReason, c.Reverts())
	}
}

func TestC52_CanaryServiceAfterAnAbort(t *testing.T) {
	for name, tc := range map[string]struct {
		delay    *int32
		pods     int32
		selected string
	}{
		"by default it goes home when the pods go": {nil, 0, "v1"},
		"kept pods keep the Service":               {ptr(int32(0)), 2, "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(setWeight(50), pause(0))
			strategy.AbortScaleDownDelaySeconds = tc.delay
			c := paused(t, strategy, 1)
			c.Send(v1alpha1.AbortAnnotation, "stop")
			mustReach(t, c, 60, "Healthy after the revert", healthyOn("v1"))
			c.Run(120, nil)
			if c.Pods("v2") != tc.pods || c.Selects("canary") != tc.selected {
				t.Errorf("%d pods of v2 and the canary Service on %s, want %d and %s\n%s", c.Pods("v2"), c.Selects("canary"), tc.pods, tc.selected, transcript(c))
			}
			writes := c.Writes
			for range 20 {
				c.Pass()
				c.Tick(5)
			}
			if c.Writes != writes {
				t.Errorf("%d writes at rest", c.Writes-writes)
			}
			noViolations(t, c)
		})
	}
}

func TestC55_WeightWaitsForTheEndpoints(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the canary Service on v2", func(c *plansim.Cluster) bool { return c.Selects("canary") == "v2" })
	in, _ := c.Observe()
	in.Canary.ReadyHashes = map[string]int32{"v1": 4}
	if p := plan.Decide(in); p.Split != nil {
		t.Errorf("moved the weight to %d while the canary Service's endpoints are v1's", p.Split.Canary)
	}
	in.Canary.ReadyHashes = map[string]int32{"v2": 1}
	if p := plan.Decide(in); p.Split == nil || p.Split.Canary != 25 {
		t.Errorf("split %+v once the endpoints are v2's, want 25", p.Split)
	}
}

func TestC65_ServicesAreTakenOverOnlyWhenThePodsAreThere(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	c.Behaviours["v1"] = plansim.Behaviour{Limit: 3}
	c.SetWeight(50) // an HTTPRoute as people write it first
	push(c, "v1")
	c.Run(120, nil)
	if c.Selects("stable") != "" || c.Selects("canary") != "" || c.Weight() != 50 {
		t.Fatalf("touched the routing with 3 of 4 pods: stable %q, canary %q, weight %d", c.Selects("stable"), c.Selects("canary"), c.Weight())
	}
	if c.Status.Phase != v1alpha1.RolloutPhaseProgressing || c.Status.StableRS != "" {
		t.Errorf("phase %s, stable %q", c.Status.Phase, c.Status.StableRS)
	}
	c.Behaviours["v1"] = plansim.Behaviour{}
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	c.Run(30, nil)
	if c.Selects("stable") != "v1" || c.Weight() != 0 {
		t.Errorf("stable Service on %q, weight %d", c.Selects("stable"), c.Weight())
	}
}

func TestC67_WithoutARouterServicesAreLeftAlone(t *testing.T) {
	c := paused(t, withoutRouter(setWeight(50), pause(0)), 1)
	in, _ := c.Observe()
	in.Stable, in.Canary = &plan.Service{Name: "web-stable"}, &plan.Service{Name: "web-canary"}
	if p := plan.Decide(in); len(p.Services) > 0 || p.Split != nil {
		t.Errorf("wants services %v and split %v without a router", p.Services, p.Split)
	}
}

func TestC68_BasicCanaryKeepsItsBounds(t *testing.T) {
	// The bounds are checked by the simulation at every move.
	for _, replicas := range []int32{1, 2, 3, 10} {
		c := cluster(withoutRouter(setWeight(10), pause(3), setWeight(50), pause(3), setWeight(90), pause(3)))
		c.Replicas = replicas
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 300, "Healthy", healthyOn("v2"))
		if c.Pods("v1") != 0 || c.Pods("v2") != replicas {
			t.Errorf("%d replicas: %d pods of v1 and %d of v2", replicas, c.Pods("v1"), c.Pods("v2"))
		}
	}
}

func TestC85_UnverifiedWeightsHoldTheStep(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	c.DataPlaneDelay = time.Hour
	c.Now = c.Now.Add(2 * time.Hour)
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Run(120, nil)
	if c.Weight() != 25 || !atStep("v2", 0)(c) || c.Status.StepStartedAt != nil {
		t.Fatalf("weight %d, step %s", c.Weight(), c.Status.Step)
	}
	if w := c.Status.Canary.Weights; w.Verified == nil || *w.Verified {
		t.Errorf("verified %v, want false", w.Verified)
	}
	c.DataPlaneDelay = 0
	mustReach(t, c, 10, "the pause", pausedAt("v2", 1))
}

// A lower weight frees no pods of a version in progress: a higher one may follow,
// and an old observation must not pass for pods that are gone (law 1).
func TestLaw2_ALowerWeightKeepsThePods(t *testing.T) {
	c := cluster(withRouter(setWeight(100), pause(5), setWeight(25), pause(200), setWeight(75), pause(0)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the lower weight", pausedAt("v2", 3))
	c.Run(190, nil)
	if c.Weight() != 25 || c.Desired("v2") != 4 {
		t.Errorf("weight %d, %d pods", c.Weight(), c.Desired("v2"))
	}
	mustReach(t, c, 60, "the higher weight", pausedAt("v2", 5))
}

// Where the router can't verify, scaleDownDelaySeconds stands in before an old
// version loses its pods.
func TestLaw2_UnverifiableRouterWaitsOutTheDelay(t *testing.T) {
	strategy := withRouter(setWeight(50))
	strategy.ScaleDownDelaySeconds = ptr(int32(60))
	c := cluster(strategy)
	c.Verifies, c.DataPlaneDelay = false, 20*time.Second
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 90, "Healthy", healthyOn("v2"))
	healthy := c.Now
	mustReach(t, c, 120, "v1's end", func(c *plansim.Cluster) bool { return c.Desired("v1") == 0 })
	if waited := c.Now.Sub(healthy); waited < 58*time.Second {
		t.Errorf("v1 lost its pods %s after it lost its traffic, want 60 s", waited)
	}
}

// A drifted route is brought back, and rules that disagree are made equal.
func TestDriftedRouteIsCorrected(t *testing.T) {
	c := paused(t, withRouter(setWeight(25), pause(0)), 1)
	for name, live := range map[string]routers.Observed{
		"too much":    {Stable: 20, Canary: 80, Uniform: true, Verification: routers.Verified},
		"too little":  {Stable: 100, Canary: 0, Uniform: true, Verification: routers.Verified},
		"disagreeing": {Stable: 75, Canary: 25, Uniform: false, Verification: routers.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := c.Observe()
			in.Routing = &plan.Routing{Observed: live}
			if p := plan.Decide(in); p.Split == nil || p.Split.Canary != 25 || p.Split.Stable != 75 {
				t.Errorf("split %+v, want 75/25", p.Split)
			}
		})
	}
}

// The whole table of law 4 that this slice can meet.
func TestLaw4_AbortTable(t *testing.T) {
	for name, tc := range map[string]struct {
		stablePods int32
		split      *routers.Split
		reason     string
	}{
		"stable is whole":                {4, &routers.Split{Stable: 100, Max: 100}, v1alpha1.ReasonAborted},
		"stable has one pod":             {1, &routers.Split{Stable: 100, Max: 100}, v1alpha1.ReasonAborted},
		"stable has none: traffic stays": {0, nil, v1alpha1.ReasonNoSideCanServe},
	} {
		for _, also := range []string{"", "missing", "invalid", "paused", "unhashable"} {
			t.Run(name+" "+also, func(t *testing.T) {
				c := paused(t, withRouter(setWeight(50), pause(0)), 1)
				c.Send(v1alpha1.AbortAnnotation, "stop")
				in, _ := c.Observe()
				for i := range in.ReplicaSets {
					if in.ReplicaSets[i].Hash == "v1" {
						in.ReplicaSets[i].Available = tc.stablePods
					}
				}
				switch also {
				case "missing":
					in.Missing = []string{"Service web-canary"}
				case "invalid":
					in.Invalid = []string{"spec.strategy.canary.steps[0]: no"}
				case "paused":
					in.Spec.Paused = true
				case "unhashable":
					in.Template.Hash = ""
				}
				p := plan.Decide(in)
				if !p.Status.Abort || !reflect.DeepEqual(p.Split, tc.split) {
					t.Fatalf("abort %v, split %+v, want %+v", p.Status.Abort, p.Split, tc.split)
				}
				if also != "invalid" && also != "unhashable" {
					if got := ready(p.Status).Reason; got != tc.reason {
						t.Errorf("reason %s, want %s", got, tc.reason)
					}
				}
				for _, set := range p.ReplicaSets {
					if set.Hash == "v2" && set.Replicas < 2 {
						t.Errorf("v2 loses pods in the pass that aborts: %+v", set)
					}
				}
			})
		}
	}
}
