package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Messages of the phases.
const (
	textPending    = "waiting for all templates to become available"
	textRunning    = "all templates are available"
	textEnding     = "waiting for the verdicts of the analyses"
	textReturning  = "waiting for all templates to be available again"
	textSuccessful = "all templates were available, and no analysis stands against them"
	textChanged    = "the spec was changed after it had begun, and only terminate, scaleDownDelaySeconds and replicas can be: make another Experiment"
)

// changed says that what can't be changed any more was edited.
func changed(in In, st v1alpha1.ExperimentStatus) bool {
	return begun(st) && st.SpecHash != in.SpecHash
}

// judge moves the phase on by at most one step.
func judge(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	if !begun(st) {
		return judgeFirst(in, st)
	}
	if phase, message := worst(in, st); phase != "" {
		return end(in, st, phase, message)
	}
	if st.AvailableAt == nil {
		return judgePending(in, st)
	}
	st.Phase, st.Message = v1alpha1.AnalysisPhaseRunning, textRunning
	switch {
	case !ending(in, st):
	case !ended(in, st, func(a v1alpha1.ExperimentAnalysisTemplateRef) bool { return owed(in, a) }):
		st.Message = textEnding
	case !allRunning(st) && !in.Spec.Terminate:
		st.Message = textReturning // or until its deadline
	case unstarted(in) != "":
		return end(in, st, v1alpha1.AnalysisPhaseInconclusive, fmt.Sprintf("it was terminated before analysis %s had started", unstarted(in)))
	default:
		return end(in, st, v1alpha1.AnalysisPhaseSuccessful, textSuccessful)
	}
	return st
}

// unstarted is an analysis that was not started before the Experiment was
// terminated; empty for none. What was not measured is no success (law 10).
func unstarted(in In) string {
	for _, a := range in.Spec.Analyses {
		if _, seen := in.Runs[a.Name]; !seen && in.Spec.Terminate {
			return a.Name
		}
	}
	return ""
}

// owed says that the verdict of an analysis is waited for at the end. Who terminates
// it does without those that have not started.
func owed(in In, a v1alpha1.ExperimentAnalysisTemplateRef) bool {
	_, seen := in.Runs[a.Name]
	return seen || !in.Spec.Terminate
}

// judgeFirst is about an Experiment that has not begun.
func judgeFirst(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	switch {
	case len(in.Invalid) > 0:
		return end(in, st, v1alpha1.AnalysisPhaseError, strings.Join(in.Invalid, "; "))
	case in.Spec.Terminate:
		return end(in, st, v1alpha1.AnalysisPhaseInconclusive, "it was terminated before it had begun")
	}
	st.Phase = v1alpha1.AnalysisPhasePending
	if len(in.Missing) > 0 {
		st.Message = "waiting for what the spec names: " + strings.Join(in.Missing, "; ")
		return st
	}
	st.Message = textPending
	return begin(in, st)
}

// judgePending waits for all versions, which is when the clock starts (law 5).
func judgePending(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	switch {
	case in.Spec.Terminate:
		return end(in, st, v1alpha1.AnalysisPhaseInconclusive, "it was terminated before all of its templates were available")
	case !allRunning(st):
		st.Phase, st.Message = v1alpha1.AnalysisPhasePending, textPending
		return st
	}
	now := metav1.NewTime(in.Now)
	st.AvailableAt = &now
	st.Phase, st.Message = v1alpha1.AnalysisPhaseRunning, textRunning
	return st
}

// worst is what ends the Experiment before its time: Failed weighs more than what
// could not be measured, and that more than what is open (Argo 2.18.8). Empty for nothing.
func worst(in In, st v1alpha1.ExperimentStatus) (v1alpha1.AnalysisPhase, string) {
	for _, t := range st.TemplateStatuses {
		if t.Status == v1alpha1.TemplateStatusFailed {
			return v1alpha1.AnalysisPhaseFailed, t.Message
		}
	}
	for _, phase := range []v1alpha1.AnalysisPhase{v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseError, v1alpha1.AnalysisPhaseInconclusive} {
		at := slices.IndexFunc(st.AnalysisRuns, func(r v1alpha1.ExperimentAnalysisRunStatus) bool { return r.Phase == phase })
		if at >= 0 {
			return phase, runText(st.AnalysisRuns[at])
		}
		if phase != v1alpha1.AnalysisPhaseError {
			continue
		}
		switch {
		case changed(in, st):
			return phase, textChanged
		case len(in.Invalid)+len(in.Missing) > 0 && !in.Spec.Terminate:
			return phase, strings.Join(slices.Concat(in.Invalid, in.Missing), "; ")
		}
	}
	return "", ""
}

func runText(r v1alpha1.ExperimentAnalysisRunStatus) string {
	if r.Message == "" {
		return fmt.Sprintf("AnalysisRun %s is %s", r.AnalysisRun, r.Phase)
	}
	return fmt.Sprintf("AnalysisRun %s: %s", r.AnalysisRun, r.Message)
}

// end closes the Experiment. A version that ran until then was successful; one that
// still lacked pods stays Progressing.
func end(in In, st v1alpha1.ExperimentStatus, phase v1alpha1.AnalysisPhase, message string) v1alpha1.ExperimentStatus {
	now := metav1.NewTime(in.Now)
	st.Phase, st.Message, st.CompletedAt = phase, message, &now
	for i := range st.TemplateStatuses {
		if entry := &st.TemplateStatuses[i]; entry.Status == v1alpha1.TemplateStatusRunning {
			entry.Status, entry.LastTransitionTime = v1alpha1.TemplateStatusSuccessful, &now
		}
	}
	return st
}
