package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// advance takes at most one step forward, on what was observed alone: a step is
// complete when its effect is seen, and the next one's clock starts then (law 5).
func advance(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	if !inProgress(st) || halted(in, st) || confirmationPending(st) {
		return st, nil
	}
	if st.Attempt != in.Status.Attempt {
		return st, nil // what was observed speaks of the attempt before
	}
	if firstVersion(in, st) {
		return settleFirst(in, st)
	}
	i := index(st)
	if int(i) >= len(steps(in)) {
		return promoteWhole(in, st)
	}
	if !stepDone(in, st, steps(in)[i]) {
		return enter(in, st), nil
	}
	if inconclusive(st) {
		return st, nil // whatever else is over, a person is being asked
	}
	event := Event{Reason: v1alpha1.ReasonStepCompleted, Message: fmt.Sprintf("Completed step %s (%s)", stepText(in, st), describeStep(in, i))}
	return enter(in, nextStep(in, st)), []Event{event}
}

// inconclusive says that a person is asked what to make of a measurement.
func inconclusive(st v1alpha1.RolloutStatus) bool {
	return hasPause(st, v1alpha1.PauseReasonInconclusiveAnalysis) || hasPause(st, v1alpha1.PauseReasonInconclusiveExperiment)
}

// nextStep leaves the current step.
func nextStep(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	st = dropPause(st, stepPause(in), v1alpha1.PauseReasonInconclusiveAnalysis, v1alpha1.PauseReasonInconclusiveExperiment)
	st.Canary.CurrentStepAnalysisRunStatus, st.Canary.CurrentExperiment = nil, ""
	return setIndex(in, st, min(index(st)+1, int32(len(steps(in)))))
}

// enter starts the clock of the current step once the weight that it rests on
// is seen: the pause begins, the analysis may be created.
func enter(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	i := int(index(st))
	if i >= len(steps(in)) || st.StepStartedAt != nil || !atWeight(in, st) {
		return st
	}
	step := steps(in)[i]
	if !waitsForOthers(step) {
		return st
	}
	now := metav1.NewTime(in.Now)
	st.StepStartedAt = &now
	if step.Pause != nil {
		st = addPause(in, st, stepPause(in))
	}
	return st
}

// stepDone says that a step's effect was observed.
func stepDone(in In, st v1alpha1.RolloutStatus, step v1alpha1.CanaryStep) bool {
	switch {
	case step.SetWeight != nil, step.SetHeaderRoute != nil, step.SetMirrorRoute != nil:
		return atWeight(in, st)
	case step.SetCanaryScale != nil:
		return atWeight(in, st) && atScale(in, st, find(in, st.CurrentPodHash))
	case step.Pause != nil:
		length, timed := pauseLength(*step.Pause)
		return timed && st.StepStartedAt != nil && !in.Now.Before(st.StepStartedAt.Add(length))
	case step.Analysis != nil:
		run := stepRun(in, st)
		return run != nil && run.Phase == v1alpha1.AnalysisPhaseSuccessful
	case step.Experiment != nil:
		e := currentExperiment(in, st)
		return e != nil && e.Phase == v1alpha1.AnalysisPhaseSuccessful
	}
	return false // validation refuses other steps
}

// atWeight says that the pods and the weight of the current step are there, as
// observed. Without a router the pods are the weight.
func atWeight(in In, st v1alpha1.RolloutStatus) bool {
	b := sortOut(in, st)
	weight := stepWeight(in, index(st))
	if !routed(in) {
		return atCounts(in, b, weight)
	}
	if in.Replicas == 0 {
		return b.candidate != nil // nothing serves, so there is no traffic to move
	}
	if available(b.candidate) < enough(in, stepSize(in, st)) || in.Routing.Err != "" || in.Routing.Verification == routers.VerificationPending {
		return false
	}
	if !previewReached(in, st) {
		return false
	}
	seen := in.Routing.Canary
	if seen > weight && stranded(in, st) && !dynamic(in) {
		weight = seen // it can't be lowered, for nobody else serves; that must not stop the way out
	}
	if (weight > 0 || len(wantRoutes(in, st)) > 0) && serviceHash(in.Canary) != st.CurrentPodHash {
		return false // that is another version's weight, or the route to it
	}
	return seen == weight && weightSeen(st, weight) && in.Routing.HasRoutes(wantRoutes(in, st))
}

// weightSeen says that the routing was seen with a weight after it was wanted.
func weightSeen(st v1alpha1.RolloutStatus, weight int32) bool {
	w := st.Canary.Weights
	return w != nil && w.Canary.Weight == weight && w.Since != nil
}

// stepSize is the number of pods that the current step asks of the version in progress.
func stepSize(in In, st v1alpha1.RolloutStatus) int32 {
	weight := stepWeight(in, index(st))
	if st.StableRS == "" {
		return in.Replicas // nothing else serves
	}
	if routed(in) {
		return podsFor(in, st, wholeSize(in, st), weight)
	}
	count, _ := split(in.Replicas, weight, surge(in))
	return count
}

// settleFirst makes the first version stable when all of its pods are available.
func settleFirst(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	st.CurrentStepHash = stepHash(in, index(st))
	if int(index(st)) < len(steps(in)) {
		st = setIndex(in, nextStep(in, st), int32(len(steps(in))))
		return st, []Event{{Reason: v1alpha1.ReasonSkipSteps, Message: "Skipped the steps: no other version is left to compare with"}}
	}
	rs := find(in, st.CurrentPodHash)
	if rs == nil || available(rs) < in.Replicas {
		return st, nil
	}
	return makeStable(in, st), []Event{{Reason: v1alpha1.ReasonRolloutCompleted, Message: fmt.Sprintf(
		"Template %s%s is stable: the first version is available", st.CurrentPodHash, byCommit(in, st.CurrentPodHash))}}
}

// promoteWhole makes a version stable when it is whole and has all the traffic,
// as observed.
func promoteWhole(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	rs := find(in, st.CurrentPodHash)
	if len(st.PauseConditions) > 0 || rs == nil || available(rs) < enough(in, wholeSize(in, st)) {
		return st, nil
	}
	if routed(in) && !atWeight(in, st) {
		return st, nil
	}
	return turn(in, makeStable(in, st)), []Event{{Reason: v1alpha1.ReasonRolloutCompleted, Message: fmt.Sprintf(
		"Template %s%s is stable: %s", st.CurrentPodHash, byCommit(in, st.CurrentPodHash), completion(in, st))}}
}

func completion(in In, st v1alpha1.RolloutStatus) string {
	if st.PromoteFull {
		return "the steps that were left are skipped"
	}
	if in.Spec.Strategy.BlueGreen != nil {
		return "the blue-green update is completed"
	}
	return fmt.Sprintf("all %d canary steps are completed", len(steps(in)))
}

// makeStable moves the role; no pod is touched. What was said against the hash
// before is void now.
func makeStable(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	hash := st.CurrentPodHash
	kept := make([]v1alpha1.RejectedVersion, 0, len(st.Rejected))
	for _, r := range st.Rejected {
		if r.Hash != hash {
			kept = append(kept, r)
		}
	}
	st.Rejected = kept
	if len(kept) == 0 {
		st.Rejected = nil
	}
	st.StableRS = hash
	st.PromoteFull, st.Progress, st.PauseConditions, st.Unmeasured = false, nil, nil, 0
	st.Canary.CurrentStepAnalysisRunStatus, st.Canary.CurrentBackgroundAnalysisRunStatus, st.Canary.CurrentExperiment = nil, nil, ""
	return setIndex(in, st, int32(len(steps(in))))
}

func stepText(in In, st v1alpha1.RolloutStatus) string {
	total := len(steps(in))
	return fmt.Sprintf("%d/%d", min(int(index(st))+1, total), total)
}

// stepPause is the reason of a pause that a step makes.
func stepPause(in In) v1alpha1.PauseReason {
	if in.Spec.Strategy.BlueGreen != nil {
		return v1alpha1.PauseReasonBlueGreenPause
	}
	return v1alpha1.PauseReasonCanaryPauseStep
}

// describeStep names the step at an index for people.
func describeStep(in In, i int32) string {
	if stage := stageAt(in, i); stage != "" {
		return string(stage)
	}
	return describe(steps(in)[i])
}

// describe names a step of a canary for people.
func describe(step v1alpha1.CanaryStep) string {
	switch {
	case step.SetWeight != nil:
		return fmt.Sprintf("setWeight %d", *step.SetWeight)
	case step.Pause != nil && step.Pause.Duration != nil:
		return "pause " + step.Pause.Duration.String()
	case step.Pause != nil:
		return "pause"
	case step.Analysis != nil:
		return "analysis"
	case step.Experiment != nil:
		return "experiment"
	case step.SetCanaryScale != nil:
		return scaleText(*step.SetCanaryScale)
	case step.SetHeaderRoute != nil:
		return routeText("setHeaderRoute", step.SetHeaderRoute.Name, len(step.SetHeaderRoute.Match))
	case step.SetMirrorRoute != nil:
		return routeText("setMirrorRoute", step.SetMirrorRoute.Name, len(step.SetMirrorRoute.Match))
	}
	return "unknown"
}

func routeText(kind, name string, matches int) string {
	if matches == 0 {
		return fmt.Sprintf("%s %s, which is removed", kind, name)
	}
	return kind + " " + name
}

func scaleText(set v1alpha1.SetCanaryScale) string {
	switch {
	case set.Replicas != nil:
		return fmt.Sprintf("setCanaryScale replicas %d", *set.Replicas)
	case set.Weight != nil:
		return fmt.Sprintf("setCanaryScale weight %d", *set.Weight)
	}
	return "setCanaryScale matchTrafficWeight"
}
