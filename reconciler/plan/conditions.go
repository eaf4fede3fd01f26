package plan

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// conditions are the observations of this pass, in a fixed order. Ready, and
// Argo's Progressing, Available and Healthy are always there; the others only
// while they are True, and Reverted while an abort and its revert are of interest.
func conditions(in In, st v1alpha1.RolloutStatus, n note) []metav1.Condition {
	list := kstatus(n)
	list = append(list, argoConditions(in, st, n)...)
	if in.Source != nil && in.Template.Hash != "" && in.Source.Hash != in.Template.Hash {
		list = append(list, condition(v1alpha1.TemplateModifiedCondition, true, "TemplateModified", fmt.Sprintf(
			"the live template hashes to %s and Git declares %s: %s edited it", in.Template.Hash, in.Source.Hash, orEmpty(in.ModifiedBy, "somebody"))))
	}
	if held(in, st) {
		list = append(list, condition(v1alpha1.HeldCondition, true, v1alpha1.ReasonHeld, heldText(*findRejected(st, in.Template.Hash))))
	}
	if c, applies := revertedCondition(st); applies {
		list = append(list, c)
	}
	return stamp(in, append(list, workloadConditions(in)...))
}

// kstatus are Ready, Reconciling and Stalled (the table of the design, part 4).
func kstatus(n note) []metav1.Condition {
	message := n.message
	if message == "" {
		message = "the stable version is available"
	}
	readyCondition := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionUnknown, Reason: n.reason, Message: message}
	switch n.phase {
	case v1alpha1.RolloutPhaseHealthy:
		readyCondition.Status = metav1.ConditionTrue
		return []metav1.Condition{readyCondition}
	case v1alpha1.RolloutPhaseDegraded:
		readyCondition.Status = metav1.ConditionFalse
		if n.stalled {
			return []metav1.Condition{readyCondition, condition(meta.StalledCondition, true, n.reason, message)}
		}
		return []metav1.Condition{readyCondition}
	}
	return []metav1.Condition{readyCondition, condition(meta.ReconcilingCondition, true, n.reason, message)}
}

func argoConditions(in In, st v1alpha1.RolloutStatus, n note) []metav1.Condition {
	moving := condition(v1alpha1.ProgressingCondition, true, n.reason, n.message)
	switch {
	case n.phase == v1alpha1.RolloutPhaseDegraded:
		moving.Status = metav1.ConditionFalse
	case n.phase == v1alpha1.RolloutPhasePaused:
		moving.Status = metav1.ConditionUnknown
	case n.phase == v1alpha1.RolloutPhaseHealthy:
		moving.Reason, moving.Message = "NewReplicaSetAvailable", "the stable version is available"
	}
	least := in.Replicas - unavailable(in)
	serving := condition(v1alpha1.AvailableCondition, totalAvailable(in) >= least, "MinimumReplicasAvailable", "enough pods are available")
	if serving.Status != metav1.ConditionTrue {
		serving.Reason, serving.Message = "MinimumReplicasUnavailable", "fewer pods are available than replicas - maxUnavailable"
	}
	healthy := condition(v1alpha1.HealthyCondition, n.phase == v1alpha1.RolloutPhaseHealthy, n.reason, n.message)
	list := []metav1.Condition{moving, serving, healthy}
	if frozen(in, st) || len(st.PauseConditions) > 0 {
		message := "manually paused"
		if len(st.PauseConditions) > 0 {
			message = string(st.PauseConditions[0].Reason)
		}
		list = append(list, condition(v1alpha1.PausedCondition, true, v1alpha1.ReasonPaused, message))
	}
	if n.reason == v1alpha1.ReasonInvalidSpec {
		list = append(list, condition(v1alpha1.InvalidSpecCondition, true, n.reason, n.message))
	}
	return list
}

// revertedCondition speaks of the newest rejected version while it is the last
// thing that happened: until another version is taken up.
func revertedCondition(st v1alpha1.RolloutStatus) (metav1.Condition, bool) {
	if len(st.Rejected) == 0 || inProgress(st) {
		return metav1.Condition{}, false
	}
	entry := st.Rejected[len(st.Rejected)-1]
	if entry.Attempt < st.Attempt-1 || entry.Revert == v1alpha1.RevertPhaseNone || entry.Cleared {
		return metav1.Condition{}, false
	}
	c := metav1.Condition{Type: v1alpha1.RevertedCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonRevertRequested,
		Message: fmt.Sprintf("Git is being brought back from template %s", entry.Hash)}
	switch entry.Revert {
	case "":
	case v1alpha1.RevertObserved, v1alpha1.RevertAlreadyReverted:
		c.Status, c.Reason = metav1.ConditionTrue, string(entry.Revert)
		c.Message = fmt.Sprintf("Git does not declare template %s any more%s", entry.Hash, inCommit(entry.RevertCommit))
	case v1alpha1.RevertBlocked, v1alpha1.RevertNoTarget, v1alpha1.RevertSuperseded:
		c.Status, c.Reason = metav1.ConditionFalse, string(entry.Revert)
		c.Message = fmt.Sprintf("Git was not brought back from template %s%s", entry.Hash, because(entry.RevertReason))
	default:
		c.Reason = string(entry.Revert)
	}
	return c, true
}

func condition(kind string, yes bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if yes {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// stamp keeps the time of a condition whose status did not change.
func stamp(in In, list []metav1.Condition) []metav1.Condition {
	for i := range list {
		list[i].ObservedGeneration = in.Generation
		list[i].LastTransitionTime = metav1.NewTime(in.Now)
		for _, before := range in.Status.Conditions {
			if before.Type == list[i].Type && before.Status == list[i].Status {
				list[i].LastTransitionTime = before.LastTransitionTime
			}
		}
	}
	return list
}
