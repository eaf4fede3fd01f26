package plan

import (
	"fmt"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// changes are the events of what differs from the persisted status and of what
// the plan writes. What is tried again in every pass is said once, and what one of
// the events said before tells already isn't said again.
func changes(in In, p Plan, before []Event) []Event {
	var out []Event
	was, is := in.Status, p.Status
	say := func(happened, warning bool, reason, format string, args ...any) {
		if happened {
			out = append(out, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
		}
	}
	say(is.Abort && (!was.Abort || was.Attempt != is.Attempt || was.AbortReason != is.AbortReason), true, abortEventReason(is),
		"Took back template %s%s: %s", is.CurrentPodHash, byCommit(in, is.CurrentPodHash), is.AbortMessage)
	// The canary Service selects the promoted version then, and giving its share to the
	// stable Service, which does too, would read like a rollback.
	home := serviceHash(in.Canary) == is.StableRS && is.StableRS != "" && wantedCanary(is) == 0
	say(wantedCanary(is) != wantedCanary(was) && p.Split != nil && !home, false, v1alpha1.ReasonTrafficWeightUpdated,
		"Moved the canary's traffic from %s to %s", weightText(in, liveCanary(in)), weightText(in, wantedCanary(is)))
	stable, canary := written(in)
	if w := is.Canary.Weights; turned(in, is) {
		say(true, false, v1alpha1.ReasonSwitchService, "Service %s is the stable one now, and %s the canary's", w.Stable.ServiceName, w.Canary.ServiceName)
	} else if w != nil {
		say(switched(in.Stable, stable, w.Stable), false, v1alpha1.ReasonSwitchService, "Switched Service %s to template %s", w.Stable.ServiceName, w.Stable.PodTemplateHash)
		say(switched(in.Canary, canary, w.Canary), false, v1alpha1.ReasonSwitchService, "Switched Service %s to template %s", w.Canary.ServiceName, w.Canary.PodTemplateHash)
	}
	for _, set := range p.ReplicaSets {
		rs := find(in, set.Hash)
		say(set.Create, false, v1alpha1.ReasonNewReplicaSetCreated, "%s", set.Why)
		say(rs != nil && rs.Desired != set.Replicas, false, v1alpha1.ReasonScalingReplicaSet, "%s", set.Why)
	}
	for _, want := range p.Experiments {
		say(true, false, v1alpha1.ReasonExperimentCreated, "Created Experiment %s for step %s", want.Name, is.Step)
	}
	paused := func(st v1alpha1.RolloutStatus) bool { return st.Phase == v1alpha1.RolloutPhasePaused }
	say(paused(is) && !paused(was), false, v1alpha1.ReasonPaused, "Paused at step %s: %s", is.Step, is.Message)
	goesOn := !paused(is) && len(is.PauseConditions) == 0 && !in.Spec.Paused // or else it is only in trouble too
	completed := slices.ContainsFunc(before, func(e Event) bool { return e.Reason == v1alpha1.ReasonStepCompleted })
	say((paused(was) || len(was.PauseConditions) > 0) && goesOn && !completed && !is.Abort && was.Attempt == is.Attempt, false, v1alpha1.ReasonResumed, "Resumed at step %s", is.Step)
	newly := func(reason string) bool { return readyReason(is) == reason && readyReason(was) != reason }
	for _, reason := range []string{v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonHeld, v1alpha1.ReasonProgressDeadlineExceeded, v1alpha1.ReasonNoSideCanServe} {
		say(newly(reason), true, reason, "%s", is.Message)
	}
	say(p.Revert != nil, false, v1alpha1.ReasonRevertRequested, "Asked for a revert of template %s", revertHash(p))
	return out
}

// abortEventReason is the reason of an abort's event.
func abortEventReason(st v1alpha1.RolloutStatus) string {
	if st.AbortReason == v1alpha1.AbortError {
		return v1alpha1.ReasonUnmeasured
	}
	return v1alpha1.ReasonAborted
}

// weightText is a share for people.
func weightText(in In, weight int32) string {
	if full := fullWeight(in); full != routers.MaxWeight {
		return fmt.Sprintf("%d/%d", weight, full)
	}
	return fmt.Sprintf("%d%%", weight)
}

func liveCanary(in In) int32 {
	if in.Routing == nil {
		return 0
	}
	return in.Routing.Canary
}

func wantedCanary(st v1alpha1.RolloutStatus) int32 {
	if st.Canary.Weights == nil {
		return 0
	}
	return st.Canary.Weights.Canary.Weight
}

func readyReason(st v1alpha1.RolloutStatus) string {
	for _, c := range st.Conditions {
		if c.Type == "Ready" {
			return c.Reason
		}
	}
	return ""
}

func revertHash(p Plan) string {
	if p.Revert == nil {
		return ""
	}
	return p.Revert.Spec.Rejected
}

// switched says that a Service is to select another version from now on: its name
// is persisted before the selector is written.
func switched(s *Service, last string, now v1alpha1.WeightDestination) bool {
	return s != nil && s.Name != "" && now.PodTemplateHash != last && now.PodTemplateHash != s.Hash
}
