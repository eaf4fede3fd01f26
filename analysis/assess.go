package analysis

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Messages of metrics and runs that were ended early.
const (
	messageTerminated    = "Terminated"
	messageRunTerminated = "Run Terminated"
)

// severity is the order in which phases win: the worst of a run's metrics is the
// run's.
var severity = map[v1alpha1.AnalysisPhase]int{
	v1alpha1.AnalysisPhaseSuccessful:   1,
	v1alpha1.AnalysisPhaseRunning:      2,
	v1alpha1.AnalysisPhasePending:      3,
	v1alpha1.AnalysisPhaseInconclusive: 4,
	v1alpha1.AnalysisPhaseError:        5,
	v1alpha1.AnalysisPhaseFailed:       6,
}

// assess gives each metric its phase, and the run its own once all are final.
func (p Prepared) assess(out *v1alpha1.AnalysisRunStatus, at metav1.Time) {
	p.assessMetrics(out, p.spec.Terminate)
	// A metric that went bad ends the others, which may have come before it.
	if p.ending(*out) {
		p.assessMetrics(out, true)
	}
	out.RunSummary, out.DryRunSummary = summarize(out.MetricResults)
	out.Phase, out.Message = v1alpha1.AnalysisPhaseRunning, ""
	for _, r := range out.MetricResults {
		if !r.Phase.Completed() {
			return
		}
	}
	out.Phase, out.Message = p.verdict(out.MetricResults)
	out.CompletedAt = &at
}

func (p Prepared) assessMetrics(out *v1alpha1.AnalysisRunStatus, ending bool) {
	for i := range out.MetricResults {
		r := &out.MetricResults[i]
		if !r.Phase.Completed() {
			r.Phase, r.Message = p.metrics[i].assess(*r, ending)
		}
	}
}

// verdict is the worst phase of the metrics that decide, and what led to it. With
// none that decide it is Successful.
func (p Prepared) verdict(results []v1alpha1.MetricResult) (v1alpha1.AnalysisPhase, string) {
	worst := v1alpha1.MetricResult{Phase: v1alpha1.AnalysisPhaseSuccessful}
	for _, r := range results {
		if !r.DryRun && severity[r.Phase] > severity[worst.Phase] {
			worst = r
		}
	}
	if !bad(worst.Phase) {
		if p.spec.Terminate {
			return worst.Phase, messageRunTerminated
		}
		return worst.Phase, ""
	}
	message := fmt.Sprintf("Metric %q assessed %s due to %s", worst.Name, worst.Phase, worst.Message)
	if last, ok := lastOf(worst); ok && worst.Phase == v1alpha1.AnalysisPhaseError && last.Message != "" {
		message += fmt.Sprintf(": \"Error Message: %s\"", last.Message)
	}
	return worst.Phase, message
}

// assess gives the phase of a metric that was not final, and the reason of a bad
// one. Limits are exceeded by more than they say; of several, Error wins over
// Inconclusive and that over Failed.
func (m prepared) assess(r v1alpha1.MetricResult, ending bool) (v1alpha1.AnalysisPhase, string) {
	if _, underway := inFlight(r); underway {
		return v1alpha1.AnalysisPhaseRunning, ""
	}
	switch {
	case finished(r) == 0 && ending:
		// It says nothing about the release, and is not counted as a success.
		return v1alpha1.AnalysisPhaseSuccessful, messageTerminated
	case finished(r) == 0:
		return v1alpha1.AnalysisPhasePending, ""
	case r.ConsecutiveError > m.consecutiveError:
		return v1alpha1.AnalysisPhaseError, fmt.Sprintf("consecutiveErrors (%d) > consecutiveErrorLimit (%d)", r.ConsecutiveError, m.consecutiveError)
	case r.Inconclusive > m.inconclusive:
		return v1alpha1.AnalysisPhaseInconclusive, fmt.Sprintf("inconclusive (%d) > inconclusiveLimit (%d)", r.Inconclusive, m.inconclusive)
	case m.failure != anyFailures && r.Failed > m.failure:
		return v1alpha1.AnalysisPhaseFailed, fmt.Sprintf("failed (%d) > failureLimit (%d)", r.Failed, m.failure)
	case m.consecutiveSuccess > 0 && r.ConsecutiveSuccess >= m.consecutiveSuccess:
		return v1alpha1.AnalysisPhaseSuccessful, ""
	case m.count > 0 && r.Count >= m.count:
		return m.counted(r)
	case ending:
		return m.terminated(r)
	}
	return v1alpha1.AnalysisPhaseRunning, ""
}

// counted is the phase of a metric whose count is reached with no limit exceeded.
func (m prepared) counted(r v1alpha1.MetricResult) (v1alpha1.AnalysisPhase, string) {
	if m.consecutiveSuccess == 0 {
		return v1alpha1.AnalysisPhaseSuccessful, ""
	}
	reason := fmt.Sprintf("consecutiveSuccess (%d) < consecutiveSuccessLimit (%d) after count (%d)", r.ConsecutiveSuccess, m.consecutiveSuccess, m.count)
	if m.failure == anyFailures {
		return v1alpha1.AnalysisPhaseFailed, reason
	}
	return v1alpha1.AnalysisPhaseInconclusive, reason
}

// terminated is the phase of a metric that was ended before its count with no limit
// exceeded. Measurements without a single success among them are no success: the
// metric takes the phase of the last bad one. Failures that failureLimit -1 tolerates
// are not bad.
func (m prepared) terminated(r v1alpha1.MetricResult) (v1alpha1.AnalysisPhase, string) {
	if r.Successful == 0 {
		if phase, ok := m.lastBad(r); ok {
			return phase, fmt.Sprintf("the run was ended with no success: failed %d, inconclusive %d, error %d", r.Failed, r.Inconclusive, r.Error)
		}
	}
	return v1alpha1.AnalysisPhaseSuccessful, messageTerminated
}

func (m prepared) lastBad(r v1alpha1.MetricResult) (v1alpha1.AnalysisPhase, bool) {
	for i := len(r.Measurements) - 1; i >= 0; i-- {
		phase := r.Measurements[i].Phase
		if bad(phase) && !(phase == v1alpha1.AnalysisPhaseFailed && m.failure == anyFailures) {
			return phase, true
		}
	}
	return "", false
}

// summarize counts metrics by their phase. One that was ended unmeasured is in the
// count and in no other number.
func summarize(results []v1alpha1.MetricResult) (v1alpha1.RunSummary, *v1alpha1.RunSummary) {
	var wet v1alpha1.RunSummary
	var dry *v1alpha1.RunSummary
	for _, r := range results {
		to := &wet
		if r.DryRun {
			if dry == nil {
				dry = &v1alpha1.RunSummary{}
			}
			to = dry
		}
		to.Count++
		switch r.Phase {
		case v1alpha1.AnalysisPhaseSuccessful:
			if finished(r) > 0 {
				to.Successful++
			}
		case v1alpha1.AnalysisPhaseFailed:
			to.Failed++
		case v1alpha1.AnalysisPhaseInconclusive:
			to.Inconclusive++
		case v1alpha1.AnalysisPhaseError:
			to.Error++
		}
	}
	return wet, dry
}
