package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// stepRun is the observed run of the current step in this attempt.
func stepRun(in In, st v1alpha1.RolloutStatus) *Run {
	return findRun(in, st, func(run Run) bool { return run.Kind == RunStep && run.Step == index(st) })
}

// backgroundRun is the observed background run of this attempt.
func backgroundRun(in In, st v1alpha1.RolloutStatus) *Run {
	return findRun(in, st, func(run Run) bool { return run.Kind == RunBackground })
}

func findRun(in In, st v1alpha1.RolloutStatus, matches func(Run) bool) *Run {
	for i := range in.Runs {
		run := in.Runs[i]
		if run.Hash == st.CurrentPodHash && run.Attempt == st.Attempt && matches(run) {
			return &run
		}
	}
	return nil
}

// stepAnalysis is the analysis of the current step; nil when it is none.
func stepAnalysis(in In, st v1alpha1.RolloutStatus) *v1alpha1.RolloutAnalysis {
	if i := int(index(st)); inProgress(st) && i < len(steps(in)) {
		return steps(in)[i].Analysis
	}
	return nil
}

// backgroundDue says that the background analysis is to run now: a version is in
// progress, there is a stable one to go back to, and its starting step is reached.
func backgroundDue(in In, st v1alpha1.RolloutStatus) bool {
	background := canary(in).Analysis
	if background == nil || !inProgress(st) || st.StableRS == "" || st.PromoteFull || confirmationPending(st) {
		return false
	}
	first := int32(0)
	if background.StartingStep != nil {
		first = *background.StartingStep
	}
	return index(st) >= first
}

// wantRuns are the runs to create. Their names are a function of hash, attempt
// and step, so that there is one of each however often this is decided. A step's
// run starts when the step's weight is seen, the background one when there is a
// pod to be measured.
func wantRuns(in In, st v1alpha1.RolloutStatus) []RunWant {
	if !ready(in) || frozen(in, st) {
		return nil
	}
	var out []RunWant
	base := fmt.Sprintf("%s-%s-%d", in.Name, st.CurrentPodHash, st.Attempt)
	if analysis := stepAnalysis(in, st); analysis != nil && st.StepStartedAt != nil && stepRun(in, st) == nil {
		out = append(out, RunWant{Name: fmt.Sprintf("%s-%d", base, index(st)), Kind: RunStep, Analysis: *analysis, Step: index(st)})
	}
	measurable := available(find(in, st.CurrentPodHash)) > 0
	if backgroundDue(in, st) && measurable && backgroundRun(in, st) == nil {
		out = append(out, RunWant{Name: base, Kind: RunBackground, Analysis: canary(in).Analysis.RolloutAnalysis, Step: index(st)})
	}
	for i := range out {
		out[i].Hash, out[i].Attempt = st.CurrentPodHash, st.Attempt
		out[i].StableHash, out[i].LatestHash = st.StableRS, st.CurrentPodHash
	}
	return out
}

// noticeRuns copies the verdicts into the status, and pauses on one that is
// inconclusive. The copy is what tells a new verdict from one that a person has
// already answered.
func noticeRuns(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	if st.CurrentPodHash == st.StableRS || st.CurrentPodHash == "" {
		return st, nil
	}
	var events []Event
	for _, seen := range []struct {
		run  *Run
		copy **v1alpha1.RolloutAnalysisRunStatus
	}{
		{stepRun(in, st), &st.Canary.CurrentStepAnalysisRunStatus},
		{backgroundRun(in, st), &st.Canary.CurrentBackgroundAnalysisRunStatus},
	} {
		before := *seen.copy
		if seen.run == nil || st.Abort && (before == nil || before.Name != seen.run.Name) {
			continue
		}
		*seen.copy = &v1alpha1.RolloutAnalysisRunStatus{Name: seen.run.Name, Status: seen.run.Phase, Message: seen.run.Message}
		if before != nil && before.Name == seen.run.Name && before.Status == seen.run.Phase {
			continue
		}
		events = append(events, runEvents(*seen.run)...)
		if seen.run.Phase == v1alpha1.AnalysisPhaseInconclusive && inProgress(st) && !seen.run.Terminating {
			st = addPause(in, st, v1alpha1.PauseReasonInconclusiveAnalysis)
		}
	}
	return st, events
}

func runEvents(run Run) []Event {
	e := Event{Message: fmt.Sprintf("AnalysisRun %s is %s", run.Name, run.Phase)}
	switch run.Phase {
	case v1alpha1.AnalysisPhaseRunning:
		e.Reason = v1alpha1.ReasonAnalysisRunRunning
	case v1alpha1.AnalysisPhaseSuccessful:
		e.Reason = v1alpha1.ReasonAnalysisRunSuccessful
	case v1alpha1.AnalysisPhaseInconclusive:
		e.Warning, e.Reason = true, v1alpha1.ReasonAnalysisRunInconclusive
	case v1alpha1.AnalysisPhaseFailed:
		e.Warning, e.Reason = true, v1alpha1.ReasonAnalysisRunFailed
		e.Message += ": " + runText(run)
	case v1alpha1.AnalysisPhaseError:
		e.Warning, e.Reason = true, v1alpha1.ReasonAnalysisRunError
		e.Message += ": " + runText(run)
	default:
		return nil
	}
	return []Event{e}
}

// stepInconclusive says that it is the current step's analysis that a person is
// asked about, and not the background one.
func stepInconclusive(in In, st v1alpha1.RolloutStatus) bool {
	run := stepRun(in, st)
	return stepAnalysis(in, st) != nil && run != nil && run.Phase == v1alpha1.AnalysisPhaseInconclusive
}

// endRuns names the runs that serve nobody any more: of other attempts, of steps
// that are over, of a version that is promoted or taken back.
func endRuns(in In, st v1alpha1.RolloutStatus) []string {
	var out []string
	for _, run := range in.Runs {
		if run.Phase.Completed() || run.Terminating || run.Kind == RunExperiment {
			continue
		}
		current := inProgress(st) && run.Hash == st.CurrentPodHash && run.Attempt == st.Attempt
		serves := run.Kind == RunBackground && backgroundDue(in, st) || run.Kind == RunStep && stepAnalysis(in, st) != nil && run.Step == index(st)
		if !current || !serves {
			out = append(out, run.Name)
		}
	}
	slices.Sort(out)
	return out
}

// pruneRuns names finished runs over the history limits, oldest first. Runs of
// the current attempt stay, and those that a revert is still to be made from.
func pruneRuns(in In, st v1alpha1.RolloutStatus) []string {
	good, bad := runHistory(in)
	runs := slices.Clone(in.Runs)
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name)) })
	var out []string
	for _, run := range runs {
		if !run.Phase.Completed() || run.Kind == RunExperiment || run.Attempt >= st.Attempt || condemns(st, run.Name) {
			continue
		}
		left := &bad
		if run.Phase == v1alpha1.AnalysisPhaseSuccessful {
			left = &good
		}
		if *left--; *left < 0 {
			out = append(out, run.Name)
		}
	}
	slices.Sort(out)
	return out
}

// runHistory is how many finished runs, and Experiments, are kept: Successful ones, and others.
func runHistory(in In) (good, bad int32) {
	good, bad = defaultRunHistory, defaultRunHistory
	if limits := in.Spec.Analysis; limits != nil {
		if limits.SuccessfulRunHistoryLimit != nil {
			good = *limits.SuccessfulRunHistoryLimit
		}
		if limits.UnsuccessfulRunHistoryLimit != nil {
			bad = *limits.UnsuccessfulRunHistoryLimit
		}
	}
	return good, bad
}

func condemns(st v1alpha1.RolloutStatus, run string) bool {
	return slices.ContainsFunc(st.Rejected, func(r v1alpha1.RejectedVersion) bool { return r.AnalysisRun == run && r.Revert == "" })
}
