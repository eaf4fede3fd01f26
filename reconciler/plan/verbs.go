package plan

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// verb is a parsed annotation: "<hash>/<step>/<token>".
type verb struct {
	name, hash, step, token string
}

// effect carries a verb out on a status. A refusal says why it had no effect.
type effect func(In, v1alpha1.RolloutStatus, verb) (v1alpha1.RolloutStatus, refusal)

// refusal is why a verb had no effect; empty when it had.
type refusal string

// verbOrder is the order in which verbs are taken. An abort comes first, and
// when one was carried out the rest waits for the next pass.
var verbOrder = []struct {
	annotation string
	act        effect
}{
	{v1alpha1.AbortAnnotation, abortByVerb},
	{v1alpha1.PauseAnnotation, pauseByVerb},
	{v1alpha1.ResumeAnnotation, resumeByVerb},
	{v1alpha1.RetryAnnotation, retryByVerb},
	{v1alpha1.PromoteFullAnnotation, promoteFull},
	{v1alpha1.PromoteAnnotation, promote},
	{v1alpha1.RestartAnnotation, restart},
}

// heardWhileLeaving are the verbs that need nothing of the routing that is given up.
var heardWhileLeaving = map[string]bool{v1alpha1.AbortAnnotation: true, v1alpha1.PauseAnnotation: true, v1alpha1.ResumeAnnotation: true}

// obey carries out the verbs that were not handled before, and echoes their
// tokens in the status that holds the effect.
func obey(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	var events []Event
	for _, known := range verbOrder {
		value := in.Verbs[known.annotation]
		if value == "" {
			continue
		}
		v := parseVerb(known.annotation, value)
		if st.Verbs[v.name].Token == v.token {
			continue
		}
		next, refused := v1alpha1.RolloutStatus(st), misaimed(st, v, value)
		if refused == "" && in.Leaving != nil && !heardWhileLeaving[known.annotation] {
			refused = refusal("the traffic is being given back first: ask again then")
		}
		if refused == "" {
			next, refused = known.act(in, st, v)
		}
		if refused != "" {
			events = append(events, Event{Warning: true, Reason: v1alpha1.ReasonVerbRefused,
				Message: fmt.Sprintf("Refused %s: %s", v.name, refused)})
		} else {
			st = next
		}
		st = echo(st, v, refused)
		if v.name == "abort" && refused == "" {
			return st, events
		}
	}
	return st, events
}

func parseVerb(annotation, value string) verb {
	v := verb{name: strings.TrimPrefix(annotation, v1alpha1.GroupVersion.Group+"/"), token: value}
	parts := strings.Split(value, "/")
	if len(parts) == 3 && parts[0] != "" && parts[2] != "" {
		v.hash, v.step, v.token = parts[0], parts[1], parts[2]
	}
	return v
}

// misaimed refuses what was meant for another version. retry speaks of a version
// that failed and judges its hash itself.
func misaimed(st v1alpha1.RolloutStatus, v verb, value string) refusal {
	switch {
	case v.hash == "":
		return refusal(fmt.Sprintf("the value %q is not <template hash>/<step index>/<token>", value))
	case v.name != "retry" && v.hash != st.CurrentPodHash:
		return refusal(fmt.Sprintf("it was meant for template %s, and the current one is %s", v.hash, orNone(st.CurrentPodHash)))
	}
	return ""
}

// lateFor refuses what was meant for another step.
func lateFor(st v1alpha1.RolloutStatus, v verb) refusal {
	if v.step == strconv.Itoa(int(index(st))) {
		return ""
	}
	return refusal(fmt.Sprintf("it was meant for the step with index %q, and the current one is %d", v.step, index(st)))
}

func echo(st v1alpha1.RolloutStatus, v verb, refused refusal) v1alpha1.RolloutStatus {
	verbs := maps.Clone(st.Verbs)
	if verbs == nil {
		verbs = map[string]v1alpha1.VerbStatus{}
	}
	verbs[v.name] = v1alpha1.VerbStatus{Token: v.token, Refused: string(refused)}
	st.Verbs = verbs
	return st
}

func orNone(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}

func abortByVerb(in In, st v1alpha1.RolloutStatus, v verb) (v1alpha1.RolloutStatus, refusal) {
	if takenBack(st) && !unmeasured(st) {
		return st, "it is aborted already"
	}
	if !inProgress(st) && !unmeasured(st) {
		return st, "nothing is in progress: the current version is the stable one"
	}
	keep := in.Verbs[v1alpha1.AbortKeepGitAnnotation] == v.token
	return abort(in, st, cause{reason: v1alpha1.AbortByPerson, message: "aborted by a person", keepGit: keep}), ""
}

func pauseByVerb(in In, st v1alpha1.RolloutStatus, _ verb) (v1alpha1.RolloutStatus, refusal) {
	if frozen(in, st) {
		return st, "it is paused already"
	}
	return addPause(in, st, v1alpha1.PauseReasonUser), ""
}

func resumeByVerb(in In, st v1alpha1.RolloutStatus, v verb) (v1alpha1.RolloutStatus, refusal) {
	asked := inconclusive(st)
	switch {
	case hasPause(st, v1alpha1.PauseReasonUser) && !asked, asked && !in.Spec.Paused:
	case in.Spec.Paused:
		return st, pausedInSpec
	default:
		return st, "no person has paused it; promote ends the pause of a step"
	}
	if late := lateFor(st, v); late != "" {
		return st, late
	}
	st = dropPause(st, v1alpha1.PauseReasonUser)
	if !asked {
		return st, ""
	}
	if stepInconclusive(in, st) || experimentInconclusive(in, st) {
		return nextStep(in, st), ""
	}
	return dropPause(st, v1alpha1.PauseReasonInconclusiveAnalysis), ""
}

const pausedInSpec refusal = "spec.paused is true, which a verb can't undo: set it to false where it was declared"

// retryByVerb lifts the hold on a hash and, when it is the live template's,
// begins a new attempt.
func retryByVerb(in In, st v1alpha1.RolloutStatus, v verb) (v1alpha1.RolloutStatus, refusal) {
	over := takenBack(st) && st.CurrentPodHash == v.hash
	switch {
	case !over && !isRejected(st, v.hash):
		return st, refusal(fmt.Sprintf("template %s is neither rejected nor aborted", v.hash))
	case over && v.hash != in.Template.Hash && !isRejected(st, v.hash):
		return st, refusal(fmt.Sprintf("template %s is not the live one any more", v.hash))
	case v.hash == in.Template.Hash && frozen(in, st):
		return st, "it is paused: resume it first"
	case v.hash == in.Template.Hash && !ready(in):
		return st, "the spec can't be acted on yet: see the status message"
	}
	st = liftHold(st, v.hash)
	if v.hash == in.Template.Hash {
		st = start(in, st)
		st = dropPause(st, v1alpha1.PauseReasonIrreversibleUnconfirmed) // a person has just asked for it
	}
	return st, ""
}

func liftHold(st v1alpha1.RolloutStatus, hash string) v1alpha1.RolloutStatus {
	rejected := append([]v1alpha1.RejectedVersion(nil), st.Rejected...)
	for i := range rejected {
		if rejected[i].Hash == hash {
			rejected[i].Cleared = true
		}
	}
	st.Rejected = rejected
	return st
}

// onItsWay refuses what needs a version in progress that isn't frozen by Git.
func onItsWay(in In, st v1alpha1.RolloutStatus) refusal {
	switch {
	case takenBack(st):
		return "it was aborted: retry starts it again"
	case !inProgress(st):
		return "nothing is in progress: the current version is the stable one"
	case in.Spec.Paused:
		return pausedInSpec
	}
	return ""
}

// promoteFull skips the remaining steps and ends every pause.
func promoteFull(in In, st v1alpha1.RolloutStatus, _ verb) (v1alpha1.RolloutStatus, refusal) {
	if no := onItsWay(in, st); no != "" {
		return st, no
	}
	st.PauseConditions, st.ControllerPause = nil, false
	st.Canary.CurrentStepAnalysisRunStatus, st.Canary.CurrentExperiment = nil, ""
	st.PromoteFull = true
	return setIndex(in, st, int32(len(steps(in)))), ""
}

// promote ends what is being waited for: a confirmation, a pause, an
// inconclusive analysis, or else the current step.
func promote(in In, st v1alpha1.RolloutStatus, v verb) (v1alpha1.RolloutStatus, refusal) {
	if no := onItsWay(in, st); no != "" {
		return st, no
	}
	if late := lateFor(st, v); late != "" {
		return st, late
	}
	if confirmationPending(st) {
		return dropPause(st, v1alpha1.PauseReasonIrreversibleUnconfirmed), ""
	}
	if int(index(st)) >= len(steps(in)) && len(st.PauseConditions) == 0 {
		return st, "no step is left: it is promoted as soon as its pods are available and have the traffic"
	}
	waits := len(st.PauseConditions) > 0
	skip := !waits || hasPause(st, stepPause(in)) || stepInconclusive(in, st) || experimentInconclusive(in, st)
	st.PauseConditions = nil
	if skip {
		st = nextStep(in, st)
	}
	return st, ""
}
