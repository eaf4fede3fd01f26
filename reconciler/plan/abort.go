package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// abort takes the version in progress back: from here on the weight goes to 0,
// whatever else holds. A version that could not be measured is not rejected,
// unless revert.on includes Error (law 10).
func abort(in In, st v1alpha1.RolloutStatus, why cause) v1alpha1.RolloutStatus {
	if why.reason != v1alpha1.AbortError || slices.Contains(in.RevertOn, v1alpha1.AbortError) {
		st = reject(in, st, why)
	}
	at := st.AbortedAt
	if !st.Abort || at == nil { // a person's abort of what was unmeasured takes back nothing more
		at = &metav1.Time{Time: in.Now}
	}
	background, step, experiment := st.Canary.CurrentBackgroundAnalysisRunStatus, st.Canary.CurrentStepAnalysisRunStatus, st.Canary.CurrentExperiment
	st = cleared(st)
	st.Canary.CurrentBackgroundAnalysisRunStatus, st.Canary.CurrentStepAnalysisRunStatus, st.Canary.CurrentExperiment = background, step, experiment
	st.Abort, st.AbortedAt, st.AbortReason, st.AbortMessage = true, at, why.reason, why.message
	st.Unmeasured++
	if why.reason != v1alpha1.AbortError {
		st.Unmeasured = 0
	}
	return setIndex(in, st, 0)
}

// condemn aborts the version in progress when a run says so, or its deadline.
// It doesn't ask whether the spec is usable or the router in order: an abort
// comes before all of that.
func condemn(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	if !inProgress(st) {
		return st, nil
	}
	if why, found := verdict(in, st); found {
		return abort(in, st, why), nil
	}
	if in.Spec.ProgressDeadlineAbort && overdue(in, st) {
		return abort(in, st, cause{reason: v1alpha1.AbortDeadline, message: deadlineMessage(in, st)}), nil
	}
	return st, nil
}

// verdict returns why the runs of this attempt condemn it. A failed measurement
// weighs more than one that could not be made.
func verdict(in In, st v1alpha1.RolloutStatus) (cause, bool) {
	out, found := experimentCause(in, st)
	if out.reason == v1alpha1.AbortFailed {
		return out, true
	}
	for _, run := range judging(in, st) {
		switch run.Phase {
		case v1alpha1.AnalysisPhaseFailed:
			return cause{reason: v1alpha1.AbortFailed, message: runText(run), run: run.Name}, true
		case v1alpha1.AnalysisPhaseError:
			if !found {
				out, found = cause{reason: v1alpha1.AbortError, message: runText(run), run: run.Name}, true
			}
		}
	}
	return out, found
}

// judging are the runs whose verdict counts now: of this hash and attempt (law
// 11), the current step's and the background one, in that order. Who promotes
// in full has decided not to wait for any.
func judging(in In, st v1alpha1.RolloutStatus) []Run {
	var out []Run
	if run := stepRun(in, st); run != nil && stepAnalysis(in, st) != nil {
		out = append(out, *run)
	}
	if run := backgroundRun(in, st); run != nil && !st.PromoteFull {
		out = append(out, *run)
	}
	return out
}

func runText(run Run) string {
	switch {
	case run.Detail != "":
		return run.Detail
	case run.Message != "":
		return run.Message
	}
	return fmt.Sprintf("AnalysisRun %s ended %s", run.Name, run.Phase)
}
