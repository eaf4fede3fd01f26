package plan

import (
	"fmt"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// note is what a reader is told: the phase, the sentence, and for the conditions
// a reason and whether only a person can help.
type note struct {
	phase   v1alpha1.RolloutPhase
	message string
	reason  string
	stalled bool
}

// judge finds the first thing that applies, most urgent first. Messages hold no
// time and no counter that changes by itself.
func judge(in In, st v1alpha1.RolloutStatus, w weight) note {
	for _, check := range []func(In, v1alpha1.RolloutStatus, weight) (note, bool){
		noteLeaving, noteInvalid, noteAborted, noteMissing, noteStranded, noteFrozen, noteHeld, noteOverdue, notePaused, noteRestarting, noteProgressing,
	} {
		if n, applies := check(in, st, w); applies {
			if waits(in, st) && n.phase != v1alpha1.RolloutPhaseDegraded {
				n.message += fmt.Sprintf("; template %s waits for the end of this rollout (supersede: Wait)", in.Template.Hash)
			}
			return n
		}
	}
	return note{phase: v1alpha1.RolloutPhaseHealthy, reason: v1alpha1.ReasonHealthy}
}

func noteInvalid(in In, _ v1alpha1.RolloutStatus, _ weight) (note, bool) {
	problems := in.Invalid
	if len(problems) == 0 && in.Template.Hash == "" && len(in.Missing) == 0 {
		problems = []string{"spec.template: it is empty or can't be read"}
	}
	return note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonInvalidSpec, stalled: true,
		message: "InvalidSpec: " + strings.Join(problems, "; ")}, len(problems) > 0
}

func noteMissing(in In, _ v1alpha1.RolloutStatus, _ weight) (note, bool) {
	return note{phase: v1alpha1.RolloutPhaseProgressing, reason: v1alpha1.ReasonProgressing,
		message: "waiting for what the spec names: " + strings.Join(in.Missing, "; ")}, len(in.Missing) > 0
}

// noteAborted: whether a person is needed hangs on the revert. While Git is being
// brought back, nobody is.
func noteAborted(in In, st v1alpha1.RolloutStatus, w weight) (note, bool) {
	if !takenBack(st) {
		return note{}, false
	}
	n := note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonAborted, message: "RolloutAborted: " + st.AbortMessage}
	if st.AbortReason == v1alpha1.AbortError {
		n.reason = v1alpha1.ReasonUnmeasured
		n.message = "Unmeasured: " + st.AbortMessage
		if unmeasured(st) {
			n.message += unmeasuredText(in, st)
		}
	}
	if entry := findRejected(st, st.CurrentPodHash); entry != nil && !entry.Cleared {
		n.message += revertText(*entry)
		n.stalled = !revertUnderWay(*entry)
	}
	switch {
	case w.stranded && st.StableRS == "":
		n.reason, n.stalled = v1alpha1.ReasonNoSideCanServe, true
		n.message += "; there is no stable version to go back to"
	case w.stranded:
		n.reason, n.stalled = v1alpha1.ReasonNoSideCanServe, true
		n.message += "; neither side can serve: no pod of the stable version is available, so the traffic stays where it is"
	case routed(in) && (in.Routing.Err != "" || in.Routing.Canary > 0 || !in.Routing.NoRoutes() || len(in.Routing.Extras) > 0 || in.Routing.Verification == routers.VerificationPending):
		n.message += "; waiting for traffic shift" + because(orEmpty(in.Routing.Err, w.why))
	}
	if frozen(in, st) {
		n.message += "; manually paused, so no other version is taken up"
	}
	return n, true
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func revertText(entry v1alpha1.RejectedVersion) string {
	switch entry.Revert {
	case v1alpha1.RevertPhaseNone:
		return fmt.Sprintf("; Git is not reverted: %s", entry.RevertReason)
	case v1alpha1.RevertBlocked:
		return fmt.Sprintf("; the revert is blocked (%s)", entry.RevertReason)
	case v1alpha1.RevertNoTarget:
		return "; there is no stable version that Git could go back to"
	}
	return ""
}

// revertUnderWay says that Git is being brought back without a person's help.
func revertUnderWay(entry v1alpha1.RejectedVersion) bool {
	switch entry.Revert {
	case "", v1alpha1.RevertPending, v1alpha1.RevertPushed, v1alpha1.RevertPullRequestOpen,
		v1alpha1.RevertObserved, v1alpha1.RevertAlreadyReverted, v1alpha1.RevertSuperseded:
		return true // the last three: the template that follows is on its way
	}
	return false
}

func noteHeld(in In, st v1alpha1.RolloutStatus, _ weight) (note, bool) {
	if !held(in, st) {
		return note{}, false
	}
	entry := findRejected(st, in.Template.Hash)
	return note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonHeld, stalled: true, message: heldText(*entry)}, true
}

// held says that the live template is a rejected one.
func held(in In, st v1alpha1.RolloutStatus) bool {
	return in.Template.Hash != "" && in.Template.Hash != st.StableRS && isRejected(st, in.Template.Hash)
}

func heldText(entry v1alpha1.RejectedVersion) string {
	return fmt.Sprintf("Held: template %s was rejected (%s: %s) and gets no rollout until a person retries it", entry.Hash, entry.Reason, entry.Message)
}

func noteStranded(in In, st v1alpha1.RolloutStatus, w weight) (note, bool) {
	if st.StableRS != "" && find(in, st.StableRS) == nil && in.Replicas > 0 && in.Template.Hash != st.StableRS {
		return note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonNoSideCanServe, stalled: !inProgress(st),
			message: fmt.Sprintf("the ReplicaSet of the stable template %s is gone and its template isn't the live one: declare it again, or let the new version take over", st.StableRS)}, true
	}
	return note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonNoSideCanServe, stalled: !inProgress(st),
		message: "the traffic can't go back: " + w.why}, w.stranded
}

func noteOverdue(in In, st v1alpha1.RolloutStatus, _ weight) (note, bool) {
	return note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonProgressDeadlineExceeded,
		message: "ProgressDeadlineExceeded: " + deadlineMessage(in, st)}, overdue(in, st)
}

func noteFrozen(in In, st v1alpha1.RolloutStatus, _ weight) (note, bool) {
	return note{phase: v1alpha1.RolloutPhasePaused, reason: v1alpha1.ReasonPaused, message: "manually paused"}, frozen(in, st)
}

func notePaused(_ In, st v1alpha1.RolloutStatus, _ weight) (note, bool) {
	n := note{phase: v1alpha1.RolloutPhasePaused, reason: v1alpha1.ReasonPaused}
	switch {
	case confirmationPending(st):
		n.message = fmt.Sprintf("%s: template %s says that it can't be taken back; promote starts its first pod", v1alpha1.PauseReasonIrreversibleUnconfirmed, st.CurrentPodHash)
	case hasPause(st, v1alpha1.PauseReasonInconclusiveExperiment):
		n.message = fmt.Sprintf("%s: Experiment %s", v1alpha1.PauseReasonInconclusiveExperiment, st.Canary.CurrentExperiment)
	case hasPause(st, v1alpha1.PauseReasonInconclusiveAnalysis):
		n.message = string(v1alpha1.PauseReasonInconclusiveAnalysis)
	case len(st.PauseConditions) > 0:
		n.message = string(st.PauseConditions[0].Reason)
	default:
		return note{}, false
	}
	return n, true
}

// noteProgressing says what is being waited for, in Argo's words where the
// meaning is the same.
func noteProgressing(in In, st v1alpha1.RolloutStatus, w weight) (note, bool) {
	n := note{phase: v1alpha1.RolloutPhaseProgressing, reason: v1alpha1.ReasonProgressing}
	rs := find(in, st.CurrentPodHash)
	want := in.Replicas
	if inProgress(st) {
		want = stepSize(in, st)
	}
	switch {
	case st.CurrentPodHash == "":
		n.message = "waiting for the first pass to be persisted"
	case desired(rs) < want || rs == nil || rs.Replicas < want:
		n.message = "more replicas need to be updated"
	case available(rs) < want:
		n.message = "updated replicas are still becoming available"
	case !routed(in) && oldPods(in, st):
		n.message = "old replicas are pending termination"
	case routed(in) && in.Routing.Err != "":
		n.message = "waiting for traffic shift: " + in.Routing.Err
	case in.Spec.Strategy.BlueGreen != nil:
		n.message = blueGreenMessage(in, st)
		return n, n.message != ""
	case inProgress(st) && (w.hold || w.target > stepWeight(in, index(st))) && w.why != "":
		n.message = w.why
	case inProgress(st) && routed(in) && !atWeight(in, st):
		n.message = "waiting for traffic shift" + because(in.Routing.Message)
	case inProgress(st):
		n.message = "waiting for all steps to complete"
	case routed(in) && (!weightSeen(st, 0) || !in.Routing.NoRoutes() || len(in.Routing.Extras) > 0 || in.Replicas > 0 && serviceHash(in.Stable) != st.StableRS):
		n.message = "waiting for traffic shift to the stable Service" + because(w.why)
	default:
		return note{}, false
	}
	return n, true
}

// oldPods says that pods are left that no target includes, without a router.
func oldPods(in In, st v1alpha1.RolloutStatus) bool {
	for _, rs := range in.ReplicaSets {
		if rs.Hash != st.CurrentPodHash && rs.Hash != st.StableRS && size(&rs) > 0 {
			return true
		}
	}
	return false
}
