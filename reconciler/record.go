package reconciler

import (
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/metrics"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// record takes a pass into the metrics, once its status is persisted. A write
// that took effect and whose answer was lost is not told.
func (r *Reconciler) record(seen *observed, decided plan.Plan) {
	r.Metrics.Record(metrics.Pass{
		Rollout: seen.rollout, After: decided.Status, Desired: seen.in.Replicas,
		FailedAt: failedAt(seen, decided.Status), Now: seen.in.Now,
	})
}

// failedAt is when the measurement that made this attempt an abort had finished;
// zero when none did, or its run is gone.
func failedAt(seen *observed, st v1alpha1.RolloutStatus) time.Time {
	if !st.Abort {
		return time.Time{}
	}
	for _, rejected := range st.Rejected {
		run, ok := seen.runs[rejected.AnalysisRun]
		if !ok || rejected.Hash != st.CurrentPodHash || rejected.Attempt != st.Attempt {
			continue
		}
		if at, failed := analysis.FailedAt(run.Status); failed {
			return at
		}
	}
	return time.Time{}
}
