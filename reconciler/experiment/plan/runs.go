package plan

import (
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// noticeRuns copies the verdicts into the status, in the order of the spec. A verdict
// that is there stays, whatever becomes of its run.
func noticeRuns(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	for _, a := range in.Spec.Analyses {
		run, seen := in.Runs[a.Name]
		if !seen {
			continue
		}
		at := slices.IndexFunc(st.AnalysisRuns, func(r v1alpha1.ExperimentAnalysisRunStatus) bool { return r.Name == a.Name })
		if at < 0 {
			st.AnalysisRuns = append(st.AnalysisRuns, v1alpha1.ExperimentAnalysisRunStatus{Name: a.Name, AnalysisRun: RunName(in.Name, a.Name)})
			at = len(st.AnalysisRuns) - 1
		}
		entry := &st.AnalysisRuns[at]
		if entry.Phase.Completed() {
			continue
		}
		entry.Phase, entry.Message = run.Phase, run.Message
		if entry.Phase == "" {
			entry.Phase = v1alpha1.AnalysisPhasePending
		}
	}
	return st
}

// phaseOf is the verdict of an analysis so far; empty before it has a run.
func phaseOf(st v1alpha1.ExperimentStatus, analysis string) v1alpha1.AnalysisPhase {
	for _, r := range st.AnalysisRuns {
		if r.Name == analysis {
			return r.Phase
		}
	}
	return ""
}

// ended says that all analyses that match have their verdict.
func ended(in In, st v1alpha1.ExperimentStatus, matches func(v1alpha1.ExperimentAnalysisTemplateRef) bool) bool {
	return !slices.ContainsFunc(in.Spec.Analyses, func(a v1alpha1.ExperimentAnalysisTemplateRef) bool {
		return matches(a) && !phaseOf(st, a.Name).Completed()
	})
}

func anyAnalysis(v1alpha1.ExperimentAnalysisTemplateRef) bool { return true }

func required(a v1alpha1.ExperimentAnalysisTemplateRef) bool { return a.RequiredForCompletion }

// finishesAt is when the duration is over; false when there is none, or it hasn't begun.
func finishesAt(in In, st v1alpha1.ExperimentStatus) (time.Time, bool) {
	length := duration(in)
	if length == 0 || st.AvailableAt == nil {
		return time.Time{}, false
	}
	return st.AvailableAt.Add(length), true
}

// ending says that nothing is waited for any more but verdicts.
func ending(in In, st v1alpha1.ExperimentStatus) bool {
	if in.Spec.Terminate {
		return true
	}
	end, timed := finishesAt(in, st)
	switch {
	case timed:
		return !in.Now.Before(end) && ended(in, st, required)
	case slices.ContainsFunc(in.Spec.Analyses, required):
		return ended(in, st, required)
	}
	return len(in.Spec.Analyses) > 0 && ended(in, st, anyAnalysis)
}

// wantRuns are the runs to create, once the time that they are told is persisted. One
// that was deleted by hand before its verdict is made again.
func wantRuns(in In) []RunWant {
	st := in.Status
	if st.AvailableAt == nil || st.Phase.Completed() || in.Spec.Terminate || len(in.Invalid)+len(in.Missing) > 0 || changed(in, st) {
		return nil
	}
	end, _ := finishesAt(in, st)
	var out []RunWant
	for _, a := range in.Spec.Analyses {
		if _, seen := in.Runs[a.Name]; !seen && !phaseOf(st, a.Name).Completed() {
			out = append(out, RunWant{Analysis: a.Name, AvailableAt: st.AvailableAt.Time, FinishedAt: end})
		}
	}
	return out
}

// endRuns names the analyses whose runs are to end: all when the Experiment has
// ended; and when only verdicts are waited for, those that have measured something,
// for what was never measured says nothing (law 10). Who terminates it doesn't wait.
func endRuns(in In, st v1alpha1.ExperimentStatus) []string {
	over := st.Phase.Completed()
	if !over && !(st.AvailableAt != nil && ending(in, st)) {
		return nil
	}
	var out []string
	for _, a := range in.Spec.Analyses {
		run, seen := in.Runs[a.Name]
		if !seen || run.Phase.Completed() || run.Terminating {
			continue
		}
		if over || in.Spec.Terminate || run.Measured {
			out = append(out, a.Name)
		}
	}
	return out
}
