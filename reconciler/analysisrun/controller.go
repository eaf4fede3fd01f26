package analysisrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/persist"
)

const (
	// conflictDelay is how long a pass waits after it lost a race, so that the next
	// one reads what the other wrote.
	conflictDelay = 200 * time.Millisecond
	// shortestWait keeps a run that is always due from spinning.
	shortestWait = 100 * time.Millisecond
	// passes is how often one reconcile measures: once, and once more to stop what a
	// bad metric leaves under way.
	passes = 2
)

// Reconciler drives AnalysisRuns.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server: the run itself where the cache isn't known to have
	// it as it is, so that no measurement rests on an old status, and Secrets, one by one
	// where they are named, never watched.
	Live client.Reader
	// Providers gives the provider that a metric names. An error is a measurement's Error.
	Providers func(v1alpha1.MetricProvider) (analysis.Provider, error)
	// Events of runs, one for each change of the phase.
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// MeasureTimeout bounds one call of a provider, whatever its own timeout is.
	MeasureTimeout time.Duration

	// written are the runs as this controller left them.
	written lastWritten
}

// Reconcile measures what is due, persists what came of it and waits for what is next.
// A finished run is left alone, but for its deletion by ttlStrategy, and for the question
// whether its providers answer again while a Rollout waits for that (see probe.go).
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := &v1alpha1.AnalysisRun{}
	if err := r.Client.Get(ctx, req.NamespacedName, run); err != nil {
		r.written.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, probed := probeWanted(run); run.Status.Phase.Completed() && !probed {
		return r.expire(ctx, run)
	}
	if !r.written.is(run) {
		if err := r.Live.Get(ctx, req.NamespacedName, run); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !run.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if run.Status.Phase.Completed() {
		return r.finish(ctx, run)
	}
	prepared, err := analysis.Prepare(run.Spec)
	if err != nil {
		return r.refuse(ctx, run, err)
	}
	return r.advance(ctx, run, prepared)
}

// refuse ends a run whose spec can't be used.
func (r *Reconciler) refuse(ctx context.Context, run *v1alpha1.AnalysisRun, cause error) (ctrl.Result, error) {
	r.abandon(ctx, run)
	now := r.Now()
	status := analysis.Refuse(run.Status, cause, now)
	setConditions(&status, run.Generation, true, now)
	if err := r.persist(ctx, run, status); err != nil {
		return r.lost(ctx, err)
	}
	return r.expire(ctx, run)
}

// advance makes the measurements that are due and persists them in one write.
func (r *Reconciler) advance(ctx context.Context, run *v1alpha1.AnalysisRun, prepared analysis.Prepared) (ctrl.Result, error) {
	now := r.Now()
	status := prepared.Fold(run.Status, nil, now)
	for range passes {
		tasks := prepared.Due(status, now)
		if len(tasks) == 0 {
			break
		}
		measured := r.measure(ctx, run, prepared, tasks)
		if err := ctx.Err(); err != nil {
			// We are being stopped: what the providers said then says nothing about them.
			return ctrl.Result{}, fmt.Errorf("measuring for AnalysisRun %s/%s: %w", run.Namespace, run.Name, err)
		}
		now = r.Now()
		status = prepared.Fold(status, measured, now)
	}
	setConditions(&status, run.Generation, false, now)
	if err := r.persist(ctx, run, status); err != nil {
		return r.lost(ctx, err)
	}
	if status.Phase.Completed() {
		return r.expire(ctx, run)
	}
	if after, ok := prepared.Wake(status, now); ok {
		return ctrl.Result{RequeueAfter: max(after, shortestWait)}, nil
	}
	return ctrl.Result{}, nil
}

// persist writes the status if it differs, with the resourceVersion that was read, and
// tells of a new phase once that is stored.
func (r *Reconciler) persist(ctx context.Context, run *v1alpha1.AnalysisRun, status v1alpha1.AnalysisRunStatus) error {
	if equality.Semantic.DeepEqual(run.Status, status) {
		return nil
	}
	before := run.DeepCopy()
	run.Status = status
	if err := persist.Status(ctx, r.Client, before, run, v1alpha1.FieldManagerRollout); err != nil {
		r.written.forget(client.ObjectKeyFromObject(run))
		return fmt.Errorf("writing the status of AnalysisRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	r.written.note(run)
	if before.Status.Phase != status.Phase {
		r.tell(run)
	}
	return nil
}

// lost maps an error of a write: a run that is gone needs nothing, and a conflict is a
// silent requeue.
func (r *Reconciler) lost(ctx context.Context, err error) (ctrl.Result, error) {
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		log.FromContext(ctx).V(1).Info("Lost a race, reading again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// reasons of the events of each phase.
var reasons = map[v1alpha1.AnalysisPhase]string{
	v1alpha1.AnalysisPhaseRunning:      v1alpha1.ReasonAnalysisRunRunning,
	v1alpha1.AnalysisPhaseSuccessful:   v1alpha1.ReasonAnalysisRunSuccessful,
	v1alpha1.AnalysisPhaseFailed:       v1alpha1.ReasonAnalysisRunFailed,
	v1alpha1.AnalysisPhaseError:        v1alpha1.ReasonAnalysisRunError,
	v1alpha1.AnalysisPhaseInconclusive: v1alpha1.ReasonAnalysisRunInconclusive,
}

func (r *Reconciler) tell(run *v1alpha1.AnalysisRun) {
	kind := corev1.EventTypeNormal
	switch run.Status.Phase {
	case v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseError, v1alpha1.AnalysisPhaseInconclusive:
		kind = corev1.EventTypeWarning
	}
	text := analysis.Detail(run.Status)
	if text == "" {
		text = "The analysis is " + string(run.Status.Phase)
	}
	r.Events.Eventf(run, nil, kind, reasons[run.Status.Phase], "Analyse", "%s", text)
}

// expire deletes a finished run when its time is over, and waits for that until then.
func (r *Reconciler) expire(ctx context.Context, run *v1alpha1.AnalysisRun) (ctrl.Result, error) {
	at, ok := expiry(run)
	if !ok || !run.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if wait := at.Sub(r.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	err := r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion})
	if err != nil {
		return r.lost(ctx, fmt.Errorf("deleting AnalysisRun %s/%s after its ttl: %w", run.Namespace, run.Name, err))
	}
	return ctrl.Result{}, nil
}

// expiry is when a finished run is deleted; ok is false for never. The field for how it
// ended wins over secondsAfterCompletion.
func expiry(run *v1alpha1.AnalysisRun) (at time.Time, ok bool) {
	ttl := run.Spec.TTLStrategy
	if ttl == nil || run.Status.CompletedAt == nil {
		return time.Time{}, false
	}
	seconds := ttl.SecondsAfterFailure
	if run.Status.Phase == v1alpha1.AnalysisPhaseSuccessful {
		seconds = ttl.SecondsAfterSuccess
	}
	if seconds == nil {
		seconds = ttl.SecondsAfterCompletion
	}
	if seconds == nil {
		return time.Time{}, false
	}
	return run.Status.CompletedAt.Add(time.Duration(*seconds) * time.Second), true
}

// errNoProvider says that a provider is not built into this controller.
var errNoProvider = errors.New("the provider is not available in this controller")

// ByName chooses a provider by the single field of a metric's provider that is set.
func ByName(providers map[string]analysis.Provider) func(v1alpha1.MetricProvider) (analysis.Provider, error) {
	return func(p v1alpha1.MetricProvider) (analysis.Provider, error) {
		name, err := analysis.ProviderName(p)
		if err != nil {
			return nil, err
		}
		provider, ok := providers[name]
		if !ok {
			return nil, fmt.Errorf("provider %s: %w", name, errNoProvider)
		}
		return provider, nil
	}
}
