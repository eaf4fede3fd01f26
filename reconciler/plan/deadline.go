package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// clockRuns says that progress can be expected of the version in progress: not
// while it is paused, asks for confirmation, or takes a step that has a clock of its own,
// and not while the spec can't be acted on. Stable alone is never overdue (C49).
// Steps that need pods or the router are expected to come to an end.
func clockRuns(in In, st v1alpha1.RolloutStatus) bool {
	if !inProgress(st) || !ready(in) || frozen(in, st) || len(st.PauseConditions) > 0 {
		return false
	}
	if previewing(in, st) && st.StepStartedAt == nil {
		return true // the preview's pods are to come first
	}
	i := int(index(st))
	return i >= len(steps(in)) || !waitsForOthers(steps(in)[i])
}

// waitsForOthers says that a step has a clock or a verdict of its own.
func waitsForOthers(step v1alpha1.CanaryStep) bool {
	return step.Pause != nil || step.Analysis != nil || step.Experiment != nil
}

// progress keeps the clock of progressDeadlineSeconds. Its mark only ever rises
// for one target, so that a pod that flickers earns no time. While the clock
// stands still there is none, and it begins anew afterwards.
func progress(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	if !clockRuns(in, st) {
		st.Progress = nil
		return st
	}
	count := available(find(in, st.CurrentPodHash))
	step := fmt.Sprintf("%s/%d/%d/", st.CurrentPodHash, st.Attempt, index(st))
	goal := stepSize(in, st)
	if p := st.Progress; p != nil && strings.HasPrefix(p.Target, step) {
		var largest int32
		if _, err := fmt.Sscan(strings.TrimPrefix(p.Target, step), &largest); err == nil && goal <= largest {
			if count <= p.Available {
				return st
			}
			goal = largest // a size that goes up and down earns no time either
		}
	}
	st.Progress = &v1alpha1.ProgressStatus{Available: count, Target: fmt.Sprintf("%s%d", step, goal), Since: metav1.NewTime(in.Now)}
	return st
}

// overdue says that the version in progress has made none for too long.
func overdue(in In, st v1alpha1.RolloutStatus) bool {
	return st.Progress != nil && clockRuns(in, st) && !in.Now.Before(st.Progress.Since.Add(progressDeadline(in)))
}

func deadlineMessage(in In, st v1alpha1.RolloutStatus) string {
	return fmt.Sprintf("ReplicaSet %q has timed out progressing.", setName(in, st.CurrentPodHash))
}
