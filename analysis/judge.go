package analysis

import (
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// maxShown is the most bytes of a value that a message shows.
const maxShown = 256

// Judge gives the verdict of a metric's conditions on a value, and the reason when
// it isn't Successful. The failure condition is asked first: true is Failed. Then the
// success condition: true is Successful; not true is Failed without a failure
// condition and Inconclusive with one. A failure condition alone that is not true is
// Successful.
//
// What can't be evaluated is Error. A value that holds NaN is never Successful by
// conditions that don't mention isNaN: it is Inconclusive, unless they make it Failed.
// Without any condition the value can't be judged: Error.
//
// The value is judged as it is. The reason has no secret that the conditions' Redactor
// knows: it is redacted before it is cut. At is the time that now() gives in expr
// conditions.
func Judge(c Conditions, value any, at time.Time) (v1alpha1.AnalysisPhase, string) {
	phase, reason := c.judge(value, at)
	return phase, c.redactor.Redact(reason)
}

func (c Conditions) judge(value any, at time.Time) (v1alpha1.AnalysisPhase, string) {
	shown := Truncate(c.redactor.Redact(Text(value)), maxShown)
	if c.success == nil && c.failure == nil {
		return v1alpha1.AnalysisPhaseError, fmt.Sprintf("value %s can't be judged: the metric has no condition", shown)
	}
	if c.failure != nil {
		failed, err := c.failure.holds(value, at)
		if err != nil {
			return v1alpha1.AnalysisPhaseError, fmt.Sprintf("failureCondition %s: %v", c.failure.text, err)
		}
		if failed {
			return v1alpha1.AnalysisPhaseFailed, fmt.Sprintf("value %s satisfies the failure condition %s", shown, c.failure.text)
		}
	}
	if c.success != nil {
		succeeded, err := c.success.holds(value, at)
		if err != nil {
			return v1alpha1.AnalysisPhaseError, fmt.Sprintf("successCondition %s: %v", c.success.text, err)
		}
		if !succeeded {
			return c.unsatisfied(shown)
		}
	}
	if hasNaN(value) && !c.guardsNaN() {
		return v1alpha1.AnalysisPhaseInconclusive, fmt.Sprintf("value %s holds NaN, of which no condition speaks; guard with isNaN(…)", shown)
	}
	return v1alpha1.AnalysisPhaseSuccessful, ""
}

func (c Conditions) unsatisfied(shown string) (v1alpha1.AnalysisPhase, string) {
	if c.failure == nil {
		return v1alpha1.AnalysisPhaseFailed, fmt.Sprintf("value %s does not satisfy %s", shown, c.success.text)
	}
	return v1alpha1.AnalysisPhaseInconclusive, fmt.Sprintf("value %s satisfies neither the success condition %s nor the failure condition %s", shown, c.success.text, c.failure.text)
}

func (c Conditions) guardsNaN() bool {
	return c.success != nil && c.success.guardsNaN || c.failure != nil && c.failure.guardsNaN
}
