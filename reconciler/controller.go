package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/metrics"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// Reconciler drives Rollouts.
type Reconciler struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server: the Rollout itself, so that a decision never
	// rests on an old status.
	Live client.Reader
	// Events of Rollouts.
	Events events.EventRecorder
	// RouterFor makes the router that a Rollout names, for one pass; nil and no error when
	// it names none.
	RouterFor func(*v1alpha1.RolloutTrafficRouting) (routers.Router, error)
	// Workloads is the cache that is watched for what spec.workloadRef may name; nil for
	// the manager's. Only metadata is kept in it.
	Workloads cache.Cache
	// Metrics takes in what becomes of Rollouts; nil takes in nothing.
	Metrics *metrics.Recorder
	// Now is the clock.
	Now func() time.Time

	// writes tell when a status was written last.
	writes lastWrites
	// retreats tell of which aborts the traffic was taken back already.
	retreats retreats
}

// Reconcile makes one pass: observe, decide, execute.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rollout := &v1alpha1.Rollout{}
	err := r.Live.Get(ctx, req.NamespacedName, rollout)
	if apierrors.IsNotFound(err) {
		r.Metrics.Forget(req.NamespacedName)
		r.writes.forget(req.NamespacedName)
		r.retreats.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	seen, err := r.observe(ctx, rollout)
	if err != nil {
		return outcome(ctx, fmt.Errorf("observing Rollout %s: %w", req.NamespacedName, err))
	}
	decided := plan.Decide(seen.in)
	if back, is := retreatOf(seen.in, decided); is && r.retreats.first(req.NamespacedName, retreat{rollout.UID, decided.Status.Attempt}) {
		decided = back
	}
	if err := r.execute(ctx, seen, decided); err != nil {
		return outcome(ctx, fmt.Errorf("executing the plan of Rollout %s: %w", req.NamespacedName, err))
	}
	wake := decided.WakeAfter
	if seen.putOff && len(decided.Services) == 0 {
		wake = looksEvery // not as soon as after a write, and no wake-up but that one is earlier
	}
	// Whatever hurry there was is over.
	return ctrl.Result{RequeueAfter: wake, Priority: new(int)}, nil
}

// conflictDelay is how long a pass waits after it lost a race: long enough for
// the cache to catch up, short enough not to be noticed.
const conflictDelay = 200 * time.Millisecond

// outcome maps an error once: a conflict is a silent requeue (somebody else was
// first, and the next pass reads what they wrote); all else backs off.
func outcome(ctx context.Context, err error) (ctrl.Result, error) {
	if isConflict(err) {
		log.FromContext(ctx).V(1).Info("Lost a race, reading again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, err
}

// isConflict says that a write was refused because what it followed from has
// changed: an old resourceVersion, or an object that is there already or no more.
func isConflict(err error) bool {
	var stale *staleError
	return errors.As(err, &stale) || apierrors.IsConflict(err)
}

// staleError says that a cached read is behind what was written.
type staleError struct{ what string }

func (e *staleError) Error() string { return e.what + " is not in the cache yet" }
