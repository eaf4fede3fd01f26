package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// serving is a ReplicaSet with 4 pods.
func serving(hash, role string, revision int64) plan.ReplicaSet {
	return plan.ReplicaSet{Name: "web-" + hash, Hash: hash, Desired: 4, Replicas: 4, Ready: 4, Available: 4, Observed: true, Role: role, Revision: revision}
}

func empty(hash, role string, revision int64) plan.ReplicaSet {
	return plan.ReplicaSet{Name: "web-" + hash, Hash: hash, Observed: true, Role: role, Revision: revision}
}

// lost is a Rollout at v2 whose status is gone, with the given ReplicaSets and
// Services.
func lost(sets []plan.ReplicaSet, stable, canary string, weight int32) plan.In {
	strategy := withRouter(setWeight(20), pause(0))
	in := plan.In{Now: start, Namespace: "shop", Name: "web", Generation: 7, Replicas: 4, Template: plan.Template{Hash: "v2"}}
	in.Spec.Strategy.Canary = &strategy
	in.ReplicaSets = sets
	in.Stable, in.Canary = &plan.Service{Name: "web-stable", Hash: stable}, &plan.Service{Name: "web-canary", Hash: canary}
	in.Routing = &plan.Routing{Observed: routers.Observed{Stable: 100 - weight, Canary: weight, Uniform: true, Verification: routers.Verified}}
	return in
}

// TestLaw7_StatusLost: what is marked and routed is the memory, and nothing goes
// further than it was.
func TestLaw7_StatusLost(t *testing.T) {
	for name, tc := range map[string]struct {
		in      plan.In
		stable  string
		current string
		index   int32
	}{
		"by its mark": {
			lost([]plan.ReplicaSet{serving("v1", v1alpha1.RoleStable, 1), serving("v2", "", 2)}, "", "", 0), "v1", "v2", 0},
		"by the newer of two marks, for a promotion marks first": {
			lost([]plan.ReplicaSet{serving("v1", v1alpha1.RoleStable, 1), serving("v2", v1alpha1.RoleStable, 2)}, "v1", "v2", 100), "v2", "v2", 2},
		"by the stable Service": {
			lost([]plan.ReplicaSet{serving("v1", "", 1), serving("v2", "", 2)}, "v1", "v2", 20), "v1", "v2", 0},
		"by its pods, when nothing else tells": {
			lost([]plan.ReplicaSet{serving("v1", "", 1), serving("v2", "", 2)}, "", "", 0), "v1", "v2", 0},
		"the live template alone is not stable by having pods": {
			lost([]plan.ReplicaSet{serving("v2", "", 1)}, "", "", 0), "", "v2", 2}, // a first version, whose steps are skipped
		"a rejected version is never stable": {
			lost([]plan.ReplicaSet{serving("v1", v1alpha1.RoleRejected, 1), empty("v2", "", 2)}, "", "", 0), "", "v2", 0},
		"a route that names another hash means it isn't new": {
			lost([]plan.ReplicaSet{empty("v2", "", 2)}, "v1", "v1", 0), "", "v2", 0},
		"nothing else: a first version": {
			lost(nil, "", "", 0), "", "v2", 2},
		"old versions without pods don't count": {
			lost([]plan.ReplicaSet{empty("v0", "", 1)}, "", "", 0), "", "v2", 2},
		"the template is the stable one": {
			lost([]plan.ReplicaSet{serving("v1", "", 1), serving("v2", v1alpha1.RoleStable, 2)}, "v2", "v1", 40), "v2", "v2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.Decide(tc.in)
			st := p.Status
			if st.StableRS != tc.stable || st.CurrentPodHash != tc.current || *st.CurrentStepIndex != tc.index {
				t.Errorf("stable %q, current %q at %d; want %q, %q at %d", st.StableRS, st.CurrentPodHash, *st.CurrentStepIndex, tc.stable, tc.current, tc.index)
			}
			if live := tc.in.Routing.Canary; p.Split != nil && p.Split.Canary > live {
				t.Errorf("raised the weight from %d to %d", live, p.Split.Canary)
			}
			for _, set := range p.ReplicaSets {
				for _, rs := range tc.in.ReplicaSets {
					if rs.Hash == set.Hash && set.Replicas < rs.Desired {
						t.Errorf("scaled %s down from %d to %d", set.Hash, rs.Desired, set.Replicas)
					}
				}
			}
		})
	}
}

// An attempt's number must be new even when the status that counted is gone: old
// runs and reverts are still there (laws 11 and 12).
func TestLaw11_AttemptAfterALostStatus(t *testing.T) {
	in := lost([]plan.ReplicaSet{serving("v1", v1alpha1.RoleStable, 3), serving("v2", "", 4)}, "v1", "v1", 0)
	if got := plan.Decide(in).Status.Attempt; got != 5 {
		t.Errorf("attempt %d after revision 4, want 5", got)
	}
	in.Runs = []plan.Run{{Name: "web-v2-9-1", Kind: plan.RunStep, Hash: "v2", Attempt: 9, Step: 1, Phase: v1alpha1.AnalysisPhaseFailed}}
	if p := plan.Decide(in); p.Status.Attempt != 10 || p.Status.Abort {
		t.Errorf("attempt %d after a run of attempt 9, abort %v", p.Status.Attempt, p.Status.Abort)
	}
	in.Reverts = []plan.Revert{{Name: "web-v3-12", Hash: "v3", Attempt: 12}}
	if got := plan.Decide(in).Status.Attempt; got != 13 {
		t.Errorf("attempt %d after a revert of attempt 12, want 13", got)
	}
}

// A rejected mark outlives the status: the version stays held, and there is no
// second revert.
func TestLaw14_RejectedByItsMark(t *testing.T) {
	in := lost([]plan.ReplicaSet{serving("v1", v1alpha1.RoleStable, 1), empty("v2", v1alpha1.RoleRejected, 2)}, "v1", "v1", 0)
	in.Source = &plan.Source{Hash: "v2", Revision: "main@sha1:1", GitSyncName: "apps"}
	in.RevertOn = []v1alpha1.AbortReason{v1alpha1.AbortFailed}
	in.Reverts = []plan.Revert{{Name: "web-v2-2", Hash: "v2", Attempt: 2, Phase: v1alpha1.RevertObserved, Commit: "abc"}}
	p := plan.Decide(in)
	if p.Status.CurrentPodHash != "v1" || p.Status.Phase != v1alpha1.RolloutPhaseDegraded || p.Revert != nil {
		t.Errorf("current %s, phase %s, revert %v", p.Status.CurrentPodHash, p.Status.Phase, p.Revert)
	}
	if r := p.Status.Rejected; len(r) != 1 || r[0].Attempt != 2 || r[0].RevertCommit != "abc" {
		t.Errorf("rejected %+v", r)
	}
	in.Status = p.Status
	in.Now = in.Now.Add(60e9)
	next := plan.Decide(in)
	in.Status = next.Status
	in.Now = in.Now.Add(60e9)
	if again := plan.Decide(in); len(again.Events) > 0 || len(again.Status.Rejected) != 1 || !again.Status.Rejected[0].Time.Equal(&next.Status.Rejected[0].Time) {
		t.Errorf("it is rejected anew in every pass: %+v", again.Events)
	}
}

// A crash between the marks and the status leaves two stable marks: the status
// goes on counting, and the marks follow it.
func TestLaw7_StatusBeatsTheMarks(t *testing.T) {
	in := lost([]plan.ReplicaSet{serving("v1", "", 1), serving("v2", v1alpha1.RoleStable, 2)}, "v1", "v2", 100)
	index := int32(2)
	in.Status = v1alpha1.RolloutStatus{Attempt: 2, StableRS: "v1", CurrentPodHash: "v2", CurrentStepIndex: &index, Abort: true, AbortReason: v1alpha1.AbortFailed}
	p := plan.Decide(in)
	roles := map[string]string{}
	for _, set := range p.ReplicaSets {
		roles[set.Hash] = set.Role
	}
	if p.Status.StableRS != "v1" || roles["v1"] != v1alpha1.RoleStable || roles["v2"] == v1alpha1.RoleStable {
		t.Errorf("stable %s, roles %v", p.Status.StableRS, roles)
	}
}

// The pass that makes the first ReplicaSet leaves no status: the next one is of the
// same attempt, for nothing speaks of another one.
func TestLaw7_APassThatLeftNoStatusIsNoAttempt(t *testing.T) {
	c := cluster(withRouter(setWeight(25), pause(0)))
	push(c, "v1")
	lost := true
	c.Crash = func(effect string) bool { return lost && effect == "status" }
	c.Pass()
	c.Tick(2)
	if lost = false; !c.Exists("v1") {
		t.Fatal("the lost pass made no ReplicaSet")
	}
	mustReach(t, c, 60, "Healthy", healthyOn("v1"))
	if c.Status.Attempt != 1 {
		t.Errorf("attempt %d of the first version, want 1", c.Status.Attempt)
	}
}
