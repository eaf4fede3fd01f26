package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// takeUp starts an attempt when the template asks for one: a new template, a
// return to the stable one, the return of a provider, steps that were edited. Precedence (law 8): a pause
// and an unusable spec keep everything as it is; then Held; then a newer template,
// which under supersede: Wait waits for the end of what is in progress.
func takeUp(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	hash := in.Template.Hash
	if !usable(in) || frozen(in, st) || !ready(in) && hash != st.StableRS {
		return st, nil // the way back to stable needs nothing that could be missing
	}
	switch {
	case waits(in, st):
		return followSteps(in, st)
	case hash != st.StableRS && isRejected(st, hash):
		return holdBack(in, st)
	case hash == st.CurrentPodHash && answered(in, st):
		return startAgain(in, st)
	case hash == st.CurrentPodHash && !lifted(st):
		return followSteps(in, st)
	case hash == st.StableRS:
		return goBack(in, st)
	}
	next := start(in, st)
	message := fmt.Sprintf("Started attempt %d of template %s%s", next.Attempt, hash, byCommit(in, hash))
	if was := st.CurrentPodHash; inProgress(st) {
		message += fmt.Sprintf("; it supersedes template %s", was)
	}
	events := []Event{{Reason: v1alpha1.ReasonRolloutUpdated, Message: message}}
	if len(steps(in)) > 0 && int(index(next)) >= len(steps(in)) {
		events = append(events, Event{Reason: v1alpha1.ReasonSkipSteps, Message: "Skipped the steps: " + whySkipped(in, st)})
	}
	return next, events
}

// start begins an attempt of the live template at the first step with no weight.
func start(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	hash := in.Template.Hash
	if inProgress(st) && st.CurrentPodHash != hash {
		st.Superseded++
	}
	st = cleared(st)
	st.Attempt = nextAttempt(in, st)
	if st.CurrentPodHash != hash {
		st.Unmeasured = 0
	}
	st.CurrentPodHash = hash
	st = setIndex(in, st, firstIndex(in, st, hash))
	if hash == st.StableRS || st.StableRS == "" && isNew(in, hash) {
		st = setIndex(in, st, int32(len(steps(in))))
	}
	if inRollbackWindow(in, st) {
		st.PromoteFull = true // as a person would
		st = setIndex(in, st, int32(len(steps(in))))
	}
	if rs := find(in, hash); in.Template.Irreversible && hash != st.StableRS && size(rs) == 0 {
		st = addPause(in, st, v1alpha1.PauseReasonIrreversibleUnconfirmed)
	}
	return st
}

// goBack ends whatever is in progress in favour of the stable version: no steps,
// no analysis, and no pod of stable is touched.
func goBack(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	was := st.CurrentPodHash
	next := cleared(st)
	if inProgress(st) {
		next.Superseded++
	}
	next.Attempt = nextAttempt(in, st)
	next.CurrentPodHash, next.Unmeasured = st.StableRS, 0
	next = setIndex(in, next, int32(len(steps(in))))
	message := fmt.Sprintf("Skipped the steps: template %s%s is the stable one", st.StableRS, byCommit(in, st.StableRS))
	if was == "" {
		return next, nil
	}
	return next, []Event{{Reason: v1alpha1.ReasonSkipSteps, Message: message}}
}

// holdBack gives a rejected template no rollout (law 14). What else was in
// progress ends, because it isn't what the template says any more.
func holdBack(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	if st.StableRS == "" || st.CurrentPodHash == in.Template.Hash || st.CurrentPodHash == st.StableRS {
		return st, nil
	}
	next, _ := goBack(in, st)
	return next, nil
}

// followSteps applies one rule to edited steps of an unchanged template: while
// the steps up to and including the current one are the same, the rollout goes
// on where it is; otherwise it is a new attempt at the first step, to which the
// weight is lowered and never raised at once.
func followSteps(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	now := stepHash(in, index(st))
	if st.CurrentStepHash == now {
		return st, nil
	}
	if !inProgress(st) {
		if !st.Abort {
			st = setIndex(in, st, int32(len(steps(in))))
		}
		st.CurrentStepHash = stepHash(in, index(st))
		return st, nil
	}
	if firstVersion(in, st) {
		return setIndex(in, st, int32(len(steps(in)))), nil
	}
	if samePrefix(st.CurrentStepHash, now) {
		st.CurrentStepHash = now
		return st, []Event{{Reason: v1alpha1.ReasonRolloutUpdated, Message: fmt.Sprintf(
			"Took over the edited steps and stayed at step %s: the steps up to it are unchanged", stepText(in, st))}}
	}
	st = restartSteps(in, st)
	return st, []Event{{Reason: v1alpha1.ReasonRolloutUpdated, Message: fmt.Sprintf(
		"Started attempt %d of template %s at the first step: steps that were already taken have been edited", st.Attempt, st.CurrentPodHash)}}
}

// samePrefix compares the second halves of two step hashes.
func samePrefix(a, b string) bool {
	const whole = 10
	return len(a) > whole && len(b) > whole && a[whole:] == b[whole:]
}

func restartSteps(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	attempt := nextAttempt(in, st)
	confirm := confirmationPending(st)
	st = cleared(st)
	st.Attempt = attempt
	if confirm {
		st = addPause(in, st, v1alpha1.PauseReasonIrreversibleUnconfirmed)
	}
	return setIndex(in, st, 0)
}

// firstVersion says that the version in progress has nothing to be compared with.
func firstVersion(in In, st v1alpha1.RolloutStatus) bool {
	return inProgress(st) && st.StableRS == "" && isNew(in, st.CurrentPodHash)
}

// cleared drops all that belongs to an attempt.
func cleared(st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	st.Abort, st.AbortedAt, st.AbortReason, st.AbortMessage = false, nil, "", ""
	st.PromoteFull, st.ControllerPause = false, false
	st.PauseConditions, st.StepStartedAt, st.Progress = nil, nil, nil
	st.Canary.CurrentStepAnalysisRunStatus, st.Canary.CurrentExperiment = nil, ""
	st.Canary.CurrentBackgroundAnalysisRunStatus = nil
	return st
}

func setIndex(in In, st v1alpha1.RolloutStatus, i int32) v1alpha1.RolloutStatus {
	st.CurrentStepIndex = &i
	st.StepStartedAt = nil
	st.CurrentStepHash = stepHash(in, i)
	return st
}

func addPause(in In, st v1alpha1.RolloutStatus, reason v1alpha1.PauseReason) v1alpha1.RolloutStatus {
	if hasPause(st, reason) {
		return st
	}
	list := append([]v1alpha1.PauseCondition(nil), st.PauseConditions...)
	st.PauseConditions = append(list, v1alpha1.PauseCondition{Reason: reason, StartTime: metav1.NewTime(in.Now)})
	return st
}

func dropPause(st v1alpha1.RolloutStatus, reasons ...v1alpha1.PauseReason) v1alpha1.RolloutStatus {
	var kept []v1alpha1.PauseCondition
	for _, p := range st.PauseConditions {
		drop := false
		for _, reason := range reasons {
			drop = drop || p.Reason == reason
		}
		if !drop {
			kept = append(kept, p)
		}
	}
	st.PauseConditions = kept
	return st
}

// byCommit names the commit that declared a template, for messages.
func byCommit(in In, hash string) string {
	if in.Source == nil || in.Source.Hash != hash || in.Source.Revision == "" {
		return ""
	}
	return " of commit " + in.Source.Revision
}
