package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// A Service moves to a version only when the persisted status holds its pods:
// otherwise a status that is refused leaves the Service on pods that the next
// pass, whose cache is behind, lets go.
func TestLaw17_AServiceMovesOnlyToWhatIsPersisted(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	stableAt(t, c, "v1")
	push(c, "v2")
	lost := true
	c.Crash = func(effect string) bool { return lost && effect == "status" }
	c.Pass() // makes v2's pods, and leaves no word of it
	c.Tick(10)
	if p := c.Pass(); c.AvailablePods("v2") != 1 || len(p.Services) > 0 {
		t.Fatalf("%d pods of v2, Services %+v; want 1 and no move before the status is persisted", c.AvailablePods("v2"), p.Services)
	}
	lost = false
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
}

// The status names a version before the canary Service selects it: a status that
// is refused after the Service was moved would leave it on pods that nothing
// remembers, and with a cache behind and no delay they were scaled down.
func TestLaw17_TheStatusNamesAVersionBeforeTheServiceSelectsIt(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	stableAt(t, c, "v1")
	seen := ""
	c.Between = func(string) {
		if now := c.Selects("canary"); now != seen && now == c.Status.CurrentPodHash && c.Status.Canary.Weights.Canary.PodTemplateHash != now {
			t.Errorf("the Service selects %s, and the persisted status names %q", now, c.Status.Canary.Weights.Canary.PodTemplateHash)
		}
		seen = c.Selects("canary")
	}
	for _, v := range []string{"v2", "v3"} {
		push(c, v)
		mustReach(t, c, 120, "the pause", pausedAt(v, 1))
		if seen != v {
			t.Fatalf("the Service selects %q, want %s", seen, v)
		}
	}
}

// As soon as the canary has traffic, the size doesn't fall: the raise waits for
// the pods of that size, or for stable to be as small as it is to be.
func TestLaw1_ARaiseCountsTheSizeThatItFixes(t *testing.T) {
	c := cluster(withRouter(setWeight(0), pause(0), setWeight(100), pause(0)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
	in := observe(c)
	for i := range in.ReplicaSets {
		if rs := &in.ReplicaSets[i]; rs.Hash == "v2" {
			rs.Desired, rs.Replicas, rs.Ready, rs.Available = 1, 1, 1, 1
		}
	}
	in.Canary.Hash, in.Canary.ReadyHashes = "v2", map[string]int32{"v2": 1}
	in.Status.CurrentStepIndex, in.Status.CurrentStepHash = ptr(int32(2)), stepHashAt(t, in, 2)
	in.Status.PauseConditions, in.Status.StepStartedAt = nil, nil
	in.Replicas = 1
	if p := plan.Decide(in); p.Split != nil {
		t.Errorf("raised to %d with 1 pod beside 4 of stable; the weight fixes the size at 4", p.Split.Canary)
	}
	for i := range in.ReplicaSets {
		if rs := &in.ReplicaSets[i]; rs.Hash == "v1" {
			rs.Desired, rs.Replicas, rs.Ready, rs.Available = 1, 1, 1, 1
		}
	}
	if p := plan.Decide(in); p.Split == nil || p.Split.Canary != 100 {
		t.Errorf("split %+v when stable is as small, want 100", p.Split)
	}
}

// stepHashAt is the step hash that a decision notes at a step.
func stepHashAt(t *testing.T, in plan.In, index int32) string {
	t.Helper()
	in.Status.CurrentStepIndex = &index
	in.Status.CurrentStepHash = ""
	in.Status.Abort = true // so that it is only noted
	at := metav1.NewTime(in.Now)
	in.Status.AbortedAt = &at
	return plan.Decide(in).Status.CurrentStepHash
}

// What Git says of paused a verb can't undo: also not the question of an
// inconclusive analysis.
func TestLaw8_ResumeDoesNotPassAPauseInGit(t *testing.T) {
	c := cluster(withRouter(setWeight(20), analyse(), pause(0)))
	c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{Phase: v1alpha1.AnalysisPhaseInconclusive})
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the question", pausedAt("v2", 1))
	c.Edit("pauses", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
	c.Send(v1alpha1.ResumeAnnotation, "go")
	c.Run(30, nil)
	if got := c.Status.Verbs["resume"]; got.Token != "go" || got.Refused == "" || !atStep("v2", 1)(c) {
		t.Errorf("resume %+v at step %s, want it refused at 1/3", got, c.Status.Step)
	}
	noViolations(t, c)
}

// Where there is no stable version, one that was taken back must not keep the
// next one from the Service that it was given.
func TestRejectedFirstVersionGivesUpTheService(t *testing.T) {
	in := observe(paused(t, withRouter(setWeight(50), pause(1)), 1))
	in.Now = in.Now.Add(time.Minute)
	long := metav1.NewTime(in.Now.Add(-time.Minute))
	st := &in.Status
	st.StableRS, st.CurrentPodHash, st.CurrentStepIndex, st.StepStartedAt, st.PauseConditions = "", "v3", ptr(int32(0)), nil, nil
	st.CurrentStepHash = stepHashAt(t, in, 0)
	st.Rejected = []v1alpha1.RejectedVersion{{Hash: "v2", Attempt: 2, Reason: v1alpha1.AbortByPerson, Revert: v1alpha1.RevertPhaseNone}}
	st.Canary.Weights = &v1alpha1.TrafficWeights{
		Canary: v1alpha1.WeightDestination{PodTemplateHash: "v2"}, Stable: v1alpha1.WeightDestination{Weight: 100}, Since: &long,
	}
	in.Template.Hash, in.Routing.Canary, in.Routing.Stable = "v3", 0, 100
	in.Stable.Hash, in.Canary.Hash = "", "v2"
	in.ReplicaSets = []plan.ReplicaSet{
		{Name: "web-v2", Hash: "v2", Desired: 2, Replicas: 2, Ready: 2, Available: 2, Observed: true, Revision: 2, Role: v1alpha1.RoleRejected},
		{Name: "web-v3", Hash: "v3", Desired: 4, Replicas: 4, Ready: 4, Available: 4, Observed: true, Revision: 3},
	}
	moves := func(in plan.In) bool {
		in.Status = plan.Decide(in).Status // names it
		services := plan.Decide(in).Services
		return len(services) == 1 && services[0] == plan.ServiceWant{Name: "web-canary", Hash: "v3"}
	}
	if !moves(in) {
		t.Error("the Service was not moved, want the canary Service on v3")
	}
	in.Routing.Canary, in.Routing.Stable = 50, 50 // all pods can take any share
	if !moves(in) {
		t.Error("the Service was not moved while it has half of the traffic, want the canary Service on v3")
	}
	in.ReplicaSets[1].Available = 3
	if moves(in) {
		t.Error("the Service was moved to a version that isn't whole")
	}
}

// A version that was named for the Service and superseded before it was selected
// is taken back in the status too, by a wake-up of its own.
func TestANameThatWasNotWrittenIsTakenBack(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	c.Commit("v1", "main@sha1:1", "One")
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	c.Run(60, nil)
	push(c, "v2")
	named := func() bool { return c.Status.Canary.Weights.Canary.PodTemplateHash == "v2" }
	mustReach(t, c, 60, "v2 named", func(*plansim.Cluster) bool { return named() })
	if c.Selects("canary") != "v1" {
		t.Fatalf("the Service selects %s already", c.Selects("canary"))
	}
	push(c, "v1")
	c.Run(60, nil)
	if named() || !healthyOn("v1")(c) {
		t.Errorf("the status names %s, phase %s", c.Status.Canary.Weights.Canary.PodTemplateHash, c.Status.Phase)
	}
	writes := c.Writes
	for range 20 {
		c.Pass()
		c.Tick(3)
	}
	if c.Writes != writes {
		t.Errorf("%d writes at rest\n%s", c.Writes-writes, transcript(c))
	}
}

// When the status is lost, nothing tells that the cache of Services is behind:
// also without a delay a version keeps its pods until it has caught up.
func TestLaw2_LostStatusWaitsForTheCaches(t *testing.T) {
	strategy := withRouter(setWeight(25), pause(0))
	strategy.ScaleDownDelaySeconds = ptr(int32(0))
	c := paused(t, strategy, 1)
	in := observe(c)
	in.Status, in.Routing.Canary, in.Routing.Stable = v1alpha1.RolloutStatus{}, 0, 100
	in.Template.Hash, in.Canary.Hash, in.Canary.ReadyHashes = "v1", "v1", map[string]int32{"v1": 4} // as the cache has it
	p := plan.Decide(in)
	in.Status = p.Status
	in.Status.Canary.Weights = nil // still nothing remembers
	p = plan.Decide(in)
	for _, want := range p.ReplicaSets {
		if want.Hash != "v2" {
			continue
		}
		if want.Replicas != 1 || want.ScaleDownAt == nil || want.ScaleDownAt.Sub(in.Now) < 5*time.Second {
			t.Errorf("v2 is to have %d pods until %v at %v, want its 1 for 5 s", want.Replicas, want.ScaleDownAt, in.Now)
		}
		return
	}
	t.Errorf("nothing is said of v2: %+v", p.ReplicaSets)
}

// A Service that is to be left alone is not written as a cache that is behind
// shows it.
func TestLaw17_APromotionLeavesTheStableServiceAlone(t *testing.T) {
	c := cluster(withRouter(setWeight(100)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the promotion", func(c *plansim.Cluster) bool {
		in := observe(c)
		in.Stable.Hash = "v0" // as the cache has it
		p := plan.Decide(in)
		if p.Status.StableRS != "v2" || in.Status.StableRS != "v1" {
			return false
		}
		if len(p.Services) > 0 {
			t.Errorf("promoted, and %+v are to be written", p.Services)
		}
		return true
	})
}

// A version that was marked stable before the status that says so was lost waits
// for none of its steps any more; a person's pause stands.
func TestLaw7_AMarkedStableVersionWaitsForNoStep(t *testing.T) {
	c := paused(t, withRouter(setWeight(25), pause(0)), 1)
	in := observe(c)
	in.Status.StableRS = ""
	in.Status.PauseConditions = append(in.Status.PauseConditions, v1alpha1.PauseCondition{Reason: v1alpha1.PauseReasonUser})
	for i := range in.ReplicaSets {
		in.ReplicaSets[i].Role = ""
		if in.ReplicaSets[i].Hash == "v2" {
			in.ReplicaSets[i].Role = v1alpha1.RoleStable
		}
	}
	st := plan.Decide(in).Status
	if st.StableRS != "v2" || len(st.PauseConditions) != 1 || st.PauseConditions[0].Reason != v1alpha1.PauseReasonUser || *st.CurrentStepIndex != 2 {
		t.Errorf("stable %q at step %s, paused by %+v; want v2 at the end of its steps, paused by the person alone", st.StableRS, st.Step, st.PauseConditions)
	}
}

// A version that has become the first one skips its steps, and with them the
// pause that it was in.
func TestLaw7_SkippedStepsLeaveNoPause(t *testing.T) {
	c := paused(t, withRouter(setWeight(0), pause(0), setWeight(50)), 1)
	in := observe(c)
	in.Status.StableRS = ""
	in.ReplicaSets = nil
	in.Stable.Hash, in.Canary.Hash, in.Stable.ReadyHashes, in.Canary.ReadyHashes = "", "", nil, nil
	st := plan.Decide(in).Status
	if *st.CurrentStepIndex != 3 || len(st.PauseConditions) > 0 {
		t.Errorf("at step %s, paused by %+v", st.Step, st.PauseConditions)
	}
}

// At a size of 0 nobody is to serve: the version before must not keep its pods
// because the stable Service names it, and the Service not wait for their end.
func TestAPromotionAtSizeZeroComesToAnEnd(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	in := observe(c)
	in.Replicas, in.Status.StableRS = 0, "v2"
	in.Template.Hash, in.Stable.Hash, in.Canary.Hash = "v2", "v1", "v2"
	for i := range in.ReplicaSets {
		if rs := &in.ReplicaSets[i]; rs.Hash == "v2" {
			rs.Desired, rs.Replicas, rs.Ready, rs.Available = 0, 0, 0, 0
		}
	}
	want := plan.ServiceWant{Name: "web-stable", Hash: "v2"}
	if got := plan.Decide(in).Services; len(got) != 1 || got[0] != want {
		t.Errorf("Services %+v, want %+v", got, want)
	}
	in.Replicas = 4 // with a size it waits for v2's pods
	if got := plan.Decide(in).Services; len(got) != 0 {
		t.Errorf("Services %+v with none of 4 pods, want none", got)
	}
}

// The same when it was aborted before it was selected: its pods linger, and the
// Service doesn't.
func TestANameThatWasNotWrittenIsTakenBackAfterAnAbort(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	c.RevertAfter = 0
	stableAt(t, c, "v1")
	push(c, "v2")
	named := func() bool { return c.Status.Canary.Weights.Canary.PodTemplateHash == "v2" }
	mustReach(t, c, 60, "v2 named", func(*plansim.Cluster) bool { return named() && c.Selects("canary") == "v1" })
	c.Send(v1alpha1.AbortAnnotation, "stop")
	c.Run(20, nil) // less than the delay that v2's pods linger for
	if named() || c.Pods("v2") == 0 {
		t.Errorf("the status names v2: %v; %d pods of v2, want no and some", named(), c.Pods("v2"))
	}
}

// At a size of 0 the stable Service is not taken over, and a weight that somebody
// gave the canary Service doesn't wait for that.
func TestAtSizeZeroAWeightGoesHome(t *testing.T) {
	c := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, c, "v1")
	in := observe(c)
	in.Replicas, in.Routing.Canary, in.Routing.Stable = 0, 30, 70
	in.Canary.Hash = "v1"
	for name, want := range map[string]bool{"": true, "v0": false, "v1": true} {
		in.Stable.Hash = name
		if p := plan.Decide(in); (p.Split != nil && p.Split.Canary == 0) != want {
			t.Errorf("split %+v while the stable Service selects %q, want it home: %v", p.Split, name, want)
		}
	}
}
