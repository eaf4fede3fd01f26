package analysisrun

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// errNoMetric says that a metric was taken out of the run while it was measured.
var errNoMetric = errors.New("the metric is not in the spec any more")

// abandon stops what is under way of a run whose spec can't be used any more, because
// somebody changed it meanwhile. A provider that can't be told is logged, as when a run
// ends otherwise.
func (r *Reconciler) abandon(ctx context.Context, run *v1alpha1.AnalysisRun) {
	if run.Status.Phase.Completed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.MeasureTimeout)
	defer cancel()
	for _, result := range run.Status.MetricResults {
		if n := len(result.Measurements); n == 0 || result.Measurements[n-1].Phase.Completed() {
			continue
		}
		if err := r.abandonMetric(ctx, run, result); err != nil {
			log.FromContext(ctx).Error(err, "A measurement of a run that can't be used any more could not be stopped", "metric", result.Name)
		}
	}
}

// abandonMetric asks with the metric as it is declared: what its arguments are can't be
// told any more.
func (r *Reconciler) abandonMetric(ctx context.Context, run *v1alpha1.AnalysisRun, result v1alpha1.MetricResult) error {
	for _, metric := range run.Spec.Metrics {
		if metric.Name != result.Name {
			continue
		}
		provider, err := r.Providers(metric.Provider)
		if err != nil {
			return err
		}
		terminator, ok := provider.(analysis.Terminator)
		if !ok {
			return nil
		}
		uid, number := string(run.UID), int(result.Count)+int(result.Error)+1
		return terminator.Terminate(ctx, analysis.Query{
			Metric: metric.Name, Provider: metric.Provider, Namespace: run.Namespace, At: r.Now(), Number: number,
			Run: analysis.RunRef{Name: run.Name, UID: uid}, ID: analysis.MeasurementID(uid, metric.Name, number),
		}, analysis.ProvidersOwn(result.Measurements[len(result.Measurements)-1].Metadata))
	}
	return errNoMetric
}
