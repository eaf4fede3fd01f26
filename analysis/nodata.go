package analysis

import (
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// waitingFor marks the handle of a measurement that is not the provider's, but waits
// for something to measure: it is begun anew when it is resumed.
const waitingFor = "pushback.dev/waiting-for"

// Waits says that a measurement under way waits for something to measure.
func Waits(h Handle) bool { return h[waitingFor] != "" }

// JudgeSample gives the outcome of a value that was measured. No data is decided by the
// metric's policy, before the conditions see it. Value and message have no secret that
// the conditions' Redactor knows.
func JudgeSample(m v1alpha1.Metric, c Conditions, task Task, value any, at time.Time) Measured {
	out := Measured{Task: task, Value: c.redactor.Redact(Text(value))}
	if !isEmpty(value) {
		out.Phase, out.Message = Judge(c, value, at)
		return out
	}
	switch m.NoData {
	case v1alpha1.NoDataFail:
		out.Phase, out.Message = v1alpha1.AnalysisPhaseFailed, "there is no data, and noData is Fail"
	case v1alpha1.NoDataInconclusive:
		out.Phase, out.Message = v1alpha1.AnalysisPhaseInconclusive, "there is no data, and noData is Inconclusive"
	case v1alpha1.NoDataPass:
		out.Phase, out.Message = v1alpha1.AnalysisPhaseSuccessful, "there is no data, and noData is Pass"
	case v1alpha1.NoDataWait:
		return wait(m, task, "data", "there is no data yet")
	default:
		out.Phase, out.Message = Judge(c, value, at)
	}
	return out
}

// WaitForSamples is a measurement that is put off until there are enough samples.
func WaitForSamples(m v1alpha1.Metric, task Task, have float64) Measured {
	return wait(m, task, "samples", fmt.Sprintf("%s of %d samples yet", Text(have), m.MinSamples.Count))
}

// wait leaves a measurement under way, to be begun anew after the interval.
func wait(m v1alpha1.Metric, task Task, what, message string) Measured {
	after := errorRetry
	if d, err := ParseDuration(m.Interval); err == nil && m.Interval != "" {
		after = d
	}
	return Measured{
		Task: task, Phase: v1alpha1.AnalysisPhaseRunning, Message: message,
		Handle: Handle{waitingFor: what}, After: after,
	}
}
