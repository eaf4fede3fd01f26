package reconciler

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// urgent is the priority of a pass that is to take traffic back: it overtakes
// everything else that is queued, which has 0 or less (law 4).
const urgent = 100

// overtaking is a handler whose requests are urgent where an update says that
// traffic is to be taken back.
type overtaking struct {
	handler.EventHandler
	// takesBack compares an object as it was with what it has become.
	takesBack func(old, now client.Object) bool
}

// Update hands the event on, with a queue that is in a hurry if the event is.
func (o overtaking) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	queue, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if ok && e.ObjectOld != nil && e.ObjectNew != nil && o.takesBack(e.ObjectOld, e.ObjectNew) {
		q = hurrying{queue}
	}
	o.EventHandler.Update(ctx, e, q)
}

// hurrying is a queue that takes everything in as urgent.
type hurrying struct {
	priorityqueue.PriorityQueue[reconcile.Request]
}

// Add is the plain way in.
func (q hurrying) Add(item reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

// AddWithOpts leaves all but the priority as it is.
func (q hurrying) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	priority := urgent
	o.Priority = &priority
	q.PriorityQueue.AddWithOpts(o, items...)
}

// condemns says that a run or an Experiment has just ended badly.
func condemns(old, now client.Object) bool {
	before, after := endedBadly(old), endedBadly(now)
	return after && !before
}

func endedBadly(object client.Object) bool {
	var phase v1alpha1.AnalysisPhase
	switch o := object.(type) {
	case *v1alpha1.AnalysisRun:
		phase = o.Status.Phase
	case *v1alpha1.Experiment:
		phase = o.Status.Phase
	}
	return phase == v1alpha1.AnalysisPhaseFailed || phase == v1alpha1.AnalysisPhaseError
}

// ordersAbort says that a person has just asked for an abort.
func ordersAbort(old, now client.Object) bool {
	for _, key := range []string{v1alpha1.AbortAnnotation, v1alpha1.AbortKeepGitAnnotation} {
		if value := now.GetAnnotations()[key]; value != "" && value != old.GetAnnotations()[key] {
			return true
		}
	}
	return false
}

// aborts lets through what asks for an abort, and nothing else.
var aborts = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil && ordersAbort(e.ObjectOld, e.ObjectNew)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// runNews lets through what is new of a run to its Rollout: not each measurement of
// one that goes on.
var runNews = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	old, okOld := e.ObjectOld.(*v1alpha1.AnalysisRun)
	now, okNow := e.ObjectNew.(*v1alpha1.AnalysisRun)
	if !okOld || !okNow {
		return true
	}
	return !equality.Semantic.DeepEqual(old.ObjectMeta.Labels, now.ObjectMeta.Labels) ||
		!equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences) ||
		!old.DeletionTimestamp.Equal(now.DeletionTimestamp) || !reflect.DeepEqual(observeRun(old), observeRun(now))
}}
