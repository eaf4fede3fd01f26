package analysis

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// FailedAt is when the measurement that made a run Failed had finished, in whole
// seconds as statuses keep times; of several metrics that failed, the first one's.
// It is false for a run that isn't Failed, or failed without a measurement.
func FailedAt(status v1alpha1.AnalysisRunStatus) (time.Time, bool) {
	var first time.Time
	if status.Phase != v1alpha1.AnalysisPhaseFailed {
		return first, false
	}
	for _, r := range status.MetricResults {
		if r.DryRun || r.Phase != v1alpha1.AnalysisPhaseFailed {
			continue
		}
		last, ok := lastWith(r, v1alpha1.AnalysisPhaseFailed)
		if ok && last.FinishedAt != nil && (first.IsZero() || last.FinishedAt.Time.Before(first)) {
			first = last.FinishedAt.Time
		}
	}
	return first, !first.IsZero()
}
