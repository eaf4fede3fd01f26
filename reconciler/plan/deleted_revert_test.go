package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// TestADeletedRevertIsAskedForAgain while it was not worked off, and never once
// its push was seen: that would be a second revert (law 12).
func TestADeletedRevertIsAskedForAgain(t *testing.T) {
	for phase, want := range map[v1alpha1.RevertPhase]bool{
		v1alpha1.RevertPending: true, v1alpha1.RevertBlocked: true, v1alpha1.RevertPushed: false,
		v1alpha1.RevertObserved: false, v1alpha1.RevertAlreadyReverted: false, v1alpha1.RevertSuperseded: false,
	} {
		t.Run(string(phase), func(t *testing.T) {
			c := paused(t, withRouter(setWeight(20), pause(0)), 1)
			c.RevertAfter = 0
			c.Send(v1alpha1.AbortAnnotation, "stop")
			c.Run(60, nil)
			in := observe(c)
			in.Reverts = []plan.Revert{{Name: "web-v2-2", Hash: "v2", Attempt: 2, Phase: phase, Reason: v1alpha1.RevertReasonPolicy}}
			in.Status = plan.Decide(in).Status
			if got := in.Status.Rejected[0].Revert; got != phase {
				t.Fatalf("the status says %q, want %q", got, phase)
			}
			in.Reverts = nil
			next := plan.Decide(in)
			if asked := next.Revert != nil && next.Revert.Name == "web-v2-2"; asked != want {
				t.Errorf("asked for again: %t, want %t (%+v)", asked, want, next.Revert)
			}
			// A GitSync that doesn't want it any more is obeyed.
			in.RevertOn = nil
			if next := plan.Decide(in); next.Revert != nil {
				t.Errorf("asked for again against revert.on: %+v", next.Revert)
			}
		})
	}
}
