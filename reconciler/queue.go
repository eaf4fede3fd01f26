package reconciler

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// gather is how long an event waits for others of the same Rollout. What a pass
// writes comes back as events, one for each write and one for each pod that moves:
// one pass takes them in together.
const gather = 100 * time.Millisecond

// gatherQueue makes the controller's queue: events wait for each other, urgent
// ones for nothing.
func gatherQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return gathering{priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })}
}

type gathering struct {
	priorityqueue.PriorityQueue[reconcile.Request]
}

// Add is the plain way in.
func (q gathering) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

// AddWithOpts lets what is due at once wait, unless it is urgent. The queue takes
// the earliest time of all that is said of an item, so that no stream of events
// puts a pass off.
func (q gathering) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	if o.After == 0 && !o.RateLimited && (o.Priority == nil || *o.Priority < urgent) {
		o.After = gather
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}
