package analysisrun

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// How long a probe waits for the next: as long as the run has been over, so that a
// short outage is noticed soon and a long one costs little, within these bounds.
const (
	shortestProbe = 10 * time.Second
	longestProbe  = 5 * time.Minute
)

// probeWanted gives the time from which a finished run's providers are to be tried
// again; ok is false when they are not to be. Only a Rollout waits for that: a run that
// belongs to none any more is left alone, whatever its annotation says.
func probeWanted(run *v1alpha1.AnalysisRun) (from time.Time, ok bool) {
	text := run.Annotations[v1alpha1.ProbeAnnotation]
	if text == "" || run.Status.Phase != v1alpha1.AnalysisPhaseError || metav1.GetControllerOf(run) == nil {
		return time.Time{}, false
	}
	from, err := time.Parse(time.RFC3339, text)
	return from, err == nil
}

// finish does what is left to do for a finished run: to try its providers again while
// its Rollout waits for them, which also keeps it, and to delete it when its time is over.
func (r *Reconciler) finish(ctx context.Context, run *v1alpha1.AnalysisRun) (ctrl.Result, error) {
	from, wanted := probeWanted(run)
	switch {
	case !wanted:
		return r.expire(ctx, run)
	case run.Status.AnsweredAt != nil:
		return ctrl.Result{}, nil // taking the annotation off is the Rollout's news
	}
	if wait := from.Sub(r.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return r.probe(ctx, run)
}

// probe asks once more what could not be measured, and writes down that all of it was
// answered, once. While it isn't, nothing is written: when to ask next follows from
// when the run ended, so that no count need be kept.
func (r *Reconciler) probe(ctx context.Context, run *v1alpha1.AnalysisRun) (ctrl.Result, error) {
	prepared, err := analysis.Prepare(run.Spec)
	if err != nil {
		return ctrl.Result{}, nil // the run's own message says so; it never becomes usable
	}
	tasks := prepared.Probes(run.Status)
	if len(tasks) == 0 {
		return ctrl.Result{}, nil
	}
	measured := r.measure(ctx, run, prepared, tasks)
	r.drop(ctx, run, prepared, measured)
	if err := ctx.Err(); err != nil {
		return ctrl.Result{}, fmt.Errorf("trying the providers of AnalysisRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	now := r.Now()
	if !analysis.Answered(run.Status, measured) {
		return ctrl.Result{RequeueAfter: untilNextProbe(run, now)}, nil
	}
	status := *run.Status.DeepCopy()
	at := metav1.NewTime(now.Truncate(time.Second))
	status.AnsweredAt = &at
	if err := r.persist(ctx, run, status); err != nil {
		return r.lost(ctx, err)
	}
	return ctrl.Result{}, nil
}

// drop stops what probes have begun at providers that take their time: that they took
// it on was the answer, and nobody waits for the value.
func (r *Reconciler) drop(ctx context.Context, run *v1alpha1.AnalysisRun, prepared analysis.Prepared, measured []analysis.Measured) {
	var stops []analysis.Task
	for _, x := range measured {
		if x.Phase == v1alpha1.AnalysisPhaseRunning {
			stop := x.Task
			stop.Action, stop.Prior = analysis.Stop, v1alpha1.Measurement{Metadata: x.Handle}
			stops = append(stops, stop)
		}
	}
	if len(stops) > 0 {
		// Also when we are being stopped, or it would be left to itself.
		r.measure(context.WithoutCancel(ctx), run, prepared, stops)
	}
}

func untilNextProbe(run *v1alpha1.AnalysisRun, now time.Time) time.Duration {
	over := shortestProbe
	if run.Status.CompletedAt != nil {
		over = now.Sub(run.Status.CompletedAt.Time)
	}
	return min(max(over, shortestProbe), longestProbe)
}
