package plan

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// conditions are the phase as kstatus reads it: Reconciling while it goes on, Ready
// when it was Successful, Stalled when its spec can't be used, or has been changed in
// vain.
func conditions(in In, st v1alpha1.ExperimentStatus) []metav1.Condition {
	ready := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionUnknown, Reason: string(st.Phase), Message: st.Message}
	switch {
	case st.Phase == v1alpha1.AnalysisPhaseSuccessful:
		ready.Status = metav1.ConditionTrue
	case st.Phase.Completed():
		ready.Status = metav1.ConditionFalse
	case !begun(st):
		ready.Reason = v1alpha1.ReasonWaiting
	}
	list := []metav1.Condition{ready}
	stalled := func(reason, message string) {
		list = append(list, metav1.Condition{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
	}
	switch {
	case !st.Phase.Completed():
		list = append(list, metav1.Condition{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: ready.Reason, Message: st.Message})
	case st.Phase == v1alpha1.AnalysisPhaseError && !begun(st):
		stalled(v1alpha1.ReasonInvalidSpec, st.Message)
	case changed(in, st):
		stalled(v1alpha1.ReasonSpecChanged, textChanged)
	}
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

// changes are the events of what differs from the persisted status and of what is written.
func changes(in In, p Plan) []Event {
	var out []Event
	for _, set := range p.Sets {
		reason := v1alpha1.ReasonScalingReplicaSet
		if set.Create {
			reason = v1alpha1.ReasonNewReplicaSetCreated
		}
		out = append(out, Event{Reason: reason, Message: set.Why})
	}
	was := map[string]v1alpha1.TemplateStatusCode{}
	for _, t := range in.Status.TemplateStatuses {
		was[t.Name] = t.Status
	}
	for _, t := range p.Status.TemplateStatuses {
		if t.Status == was[t.Name] || t.Status == v1alpha1.TemplateStatusSuccessful {
			continue
		}
		e := Event{Reason: "Template" + string(t.Status), Warning: t.Status == v1alpha1.TemplateStatusFailed,
			Message: fmt.Sprintf("Template %s is %s", t.Name, t.Status)}
		if t.Message != "" {
			e.Message = t.Message
		}
		out = append(out, e)
	}
	if p.Status.Phase != in.Status.Phase {
		out = append(out, Event{
			Reason: v1alpha1.ExperimentKind + string(p.Status.Phase), Message: fmt.Sprintf("The experiment is %s: %s", p.Status.Phase, p.Status.Message),
			Warning: p.Status.Phase.Completed() && p.Status.Phase != v1alpha1.AnalysisPhaseSuccessful,
		})
	}
	return out
}
