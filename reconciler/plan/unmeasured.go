package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// How long a provider's return is not heeded after an abort: the first time, and at
// most. The wait doubles with each attempt in a row that could not be measured, so
// that a provider that comes and goes doesn't carry the traffic along.
const (
	firstReturn   = 10 * time.Second
	longestReturn = 10 * time.Minute
)

// unmeasured says that the current version was taken back because it could not be
// measured, and that this was not held against it (law 10).
func unmeasured(st v1alpha1.RolloutStatus) bool {
	return takenBack(st) && st.AbortReason == v1alpha1.AbortError && !isRejected(st, st.CurrentPodHash)
}

// awaited are the runs whose providers' return starts the version again: all of the
// aborted attempt that ended Error. There are none while something that comes first
// stands against it (law 8): a pause, another template. And none if one of them can't
// be asked again: then only a person can help.
func awaited(in In, st v1alpha1.RolloutStatus) []Run {
	if !unmeasured(st) || frozen(in, st) || in.Template.Hash != st.CurrentPodHash {
		return nil
	}
	var out []Run
	for _, run := range in.Runs {
		if run.Hash != st.CurrentPodHash || run.Attempt != st.Attempt || run.Phase != v1alpha1.AnalysisPhaseError {
			continue
		}
		if !run.Askable {
			return nil
		}
		out = append(out, run)
	}
	return out
}

// answered says that every provider that was out is back.
func answered(in In, st v1alpha1.RolloutStatus) bool {
	runs := awaited(in, st)
	return len(runs) > 0 && !slices.ContainsFunc(runs, func(run Run) bool { return !run.Answered })
}

// startAgain begins a new attempt at the first step, as retry does. An irreversible
// version was confirmed before its first pod, and isn't asked about again.
func startAgain(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	next := dropPause(start(in, st), v1alpha1.PauseReasonIrreversibleUnconfirmed)
	return next, []Event{{Reason: v1alpha1.ReasonRetry, Message: fmt.Sprintf(
		"The provider answers again: started attempt %d of template %s%s", next.Attempt, next.CurrentPodHash, byCommit(in, next.CurrentPodHash))}}
}

// wantProbes are the runs whose providers are to be asked from now on, and those
// where nobody waits for that any more.
func wantProbes(in In, st v1alpha1.RolloutStatus) []ProbeWant {
	waiting := map[string]bool{}
	for _, run := range awaited(in, st) {
		waiting[run.Name] = !run.Answered
	}
	from := returnHeeded(st)
	var out []ProbeWant
	for _, run := range in.Runs {
		switch {
		case waiting[run.Name] && (run.AskFrom == nil || !run.AskFrom.Equal(from)):
			out = append(out, ProbeWant{Name: run.Name, NotBefore: &from})
		case !waiting[run.Name] && run.AskFrom != nil:
			out = append(out, ProbeWant{Name: run.Name})
		}
	}
	slices.SortFunc(out, func(a, b ProbeWant) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// returnHeeded is the time from which a provider's return starts the version again.
// It follows from the persisted abort alone, so that every pass wants the same.
func returnHeeded(st v1alpha1.RolloutStatus) time.Time {
	wait := firstReturn
	for n := int32(1); n < st.Unmeasured && wait < longestReturn; n++ {
		wait *= 2
	}
	if st.AbortedAt == nil {
		return time.Unix(0, 0).UTC() // no abort of ours: there is nothing to wait for
	}
	return st.AbortedAt.Add(min(wait, longestReturn))
}

// unmeasuredText says what starts an unmeasured version again.
func unmeasuredText(in In, st v1alpha1.RolloutStatus) string {
	const kept = "; the version is not rejected, "
	switch {
	case len(awaited(in, st)) == 0:
		return kept + "retry starts it again"
	case answered(in, st) && len(in.Missing) > 0:
		return kept + "the provider answers again; waiting for what the spec names: " + strings.Join(in.Missing, "; ")
	}
	return kept + "it starts again when the provider answers, or by retry"
}
