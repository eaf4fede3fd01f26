package analysisrun

import (
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// setConditions puts the phase into conditions as kstatus reads them: Reconciling while
// it runs, Ready when it was Successful, Stalled when its spec can't be used.
func setConditions(status *v1alpha1.AnalysisRunStatus, generation int64, stalled bool, now time.Time) {
	status.ObservedGeneration = generation
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	ready := metav1.ConditionUnknown
	switch {
	case status.Phase == v1alpha1.AnalysisPhaseSuccessful:
		ready = metav1.ConditionTrue
	case status.Phase.Completed():
		ready = metav1.ConditionFalse
	}
	reason := string(status.Phase)
	set(fluxmeta.ReadyCondition, ready, reason, status.Message)
	if status.Phase.Completed() {
		meta.RemoveStatusCondition(&status.Conditions, fluxmeta.ReconcilingCondition)
	} else {
		set(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, reason, "measuring")
	}
	if stalled {
		set(fluxmeta.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec, status.Message)
	}
}
