package experiment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ownerIndex finds what an Experiment has made by the Experiment's uid.
const ownerIndex = ".metadata.controller.experiment"

// SetupWithManager registers the controller, its indexes and its watches. It wants
// get, list and watch on experiments, analysistemplates and clusteranalysistemplates;
// patch on experiments/status and update on experiments/finalizers; get, list, watch,
// create and patch on replicasets and analysisruns; get, list, watch, create and delete
// on services; create and patch on events.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	owned := []client.Object{&appsv1.ReplicaSet{}, &corev1.Service{}, &v1alpha1.AnalysisRun{}}
	builder := ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Experiment{})
	for _, object := range owned {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, ownerIndex, ownerOf); err != nil {
			return fmt.Errorf("indexing %T by Experiment: %w", object, err)
		}
		builder = builder.Owns(object)
	}
	return builder.
		Watches(&v1alpha1.AnalysisTemplate{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		Watches(&v1alpha1.ClusterAnalysisTemplate{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		WithOptions(options).Named("experiment").Complete(r)
}

func ownerOf(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != v1alpha1.ExperimentKind {
		return nil
	}
	return []string{string(owner.UID)}
}

// waiting are the Experiments that a template matters to: those that may still begin.
func (r *Reconciler) waiting(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.ExperimentList
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace())); err != nil {
		return nil // the cache is not there yet; each Experiment gets its first pass anyway
	}
	var out []reconcile.Request
	for i := range list.Items {
		if len(list.Items[i].Status.TemplateStatuses) == 0 {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
