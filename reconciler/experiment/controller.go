package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/experiment/plan"
)

// Reconciler drives Experiments.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server: the Experiment itself, so that a decision never
	// rests on an old status, and what the cache lacks.
	Live client.Reader
	// Events of Experiments.
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
}

// conflictDelay is how long a pass waits after it lost a race: long enough for the
// cache to catch up, short enough not to be noticed.
const conflictDelay = 200 * time.Millisecond

// Reconcile makes one pass: observe, decide, execute.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	experiment := &v1alpha1.Experiment{}
	if err := r.Live.Get(ctx, req.NamespacedName, experiment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen, err := r.observe(ctx, experiment)
	if err != nil {
		return outcome(ctx, fmt.Errorf("observing Experiment %s: %w", req.NamespacedName, err))
	}
	decided := plan.Decide(seen.in)
	if err := r.execute(ctx, seen, decided); err != nil {
		return outcome(ctx, fmt.Errorf("executing the plan of Experiment %s: %w", req.NamespacedName, err))
	}
	return ctrl.Result{RequeueAfter: decided.WakeAfter}, nil
}

// outcome maps an error once: a lost race is a silent requeue, all else backs off.
func outcome(ctx context.Context, err error) (ctrl.Result, error) {
	var stale *staleError
	if errors.As(err, &stale) || apierrors.IsConflict(err) {
		log.FromContext(ctx).V(1).Info("Lost a race, reading again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// staleError says that a read is behind what was written.
type staleError struct{ what string }

func (e *staleError) Error() string { return e.what + " is not what was read any more" }
