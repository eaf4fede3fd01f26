package reconciler

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// ownerIndex finds ReplicaSets, AnalysisRuns and Experiments by the uid of their
// controller: a Rollout, or an Experiment of one.
const ownerIndex = ".metadata.controller"

// SetupWithManager registers the controller, its indexes and its watches.
// routeKinds are the routing objects to watch; those that the cluster doesn't
// serve are left out, and a Rollout that needs one says so and looks again.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options, routeKinds ...schema.GroupVersionKind) error {
	for _, owned := range []client.Object{&appsv1.ReplicaSet{}, &v1alpha1.AnalysisRun{}, &v1alpha1.Experiment{}} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), owned, ownerIndex, ownerOf); err != nil {
			return fmt.Errorf("indexing %T by owner: %w", owned, err)
		}
	}
	if err := indexServices(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Rollout{}, claimIndex, r.claimed); err != nil {
		return fmt.Errorf("indexing Rollouts by what they route through: %w", err)
	}
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.Rollout{}, handler.OnlyControllerOwner())
	watches := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Rollout{}).
		Owns(&appsv1.ReplicaSet{}).
		Watches(&v1alpha1.Rollout{}, overtaking{&handler.EnqueueRequestForObject{}, ordersAbort}, builder.WithPredicates(aborts)).
		Watches(&v1alpha1.AnalysisRun{}, overtaking{owned, condemns}, builder.WithPredicates(runNews)).
		Watches(&v1alpha1.Experiment{}, overtaking{owned, condemns}).
		Watches(&v1alpha1.AnalysisRun{}, overtaking{handler.EnqueueRequestsFromMapFunc(rolloutOfRun), condemns}, builder.WithPredicates(runNews)).
		Watches(&v1alpha1.Revert{}, handler.EnqueueRequestsFromMapFunc(rolloutOfRevert)).
		Watches(&v1alpha1.AnalysisTemplate{}, handler.EnqueueRequestsFromMapFunc(r.rolloutsWaiting)).
		Watches(&v1alpha1.ClusterAnalysisTemplate{}, handler.EnqueueRequestsFromMapFunc(r.rolloutsWaiting)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.rolloutsRouting))
	if err := r.watchWorkloads(mgr, watches); err != nil {
		return err
	}
	for _, kind := range routeKinds {
		if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			if meta.IsNoMatchError(err) {
				mgr.GetLogger().Info("Not watching a routing kind that the cluster does not serve", "kind", kind.String())
				continue
			}
			return fmt.Errorf("looking for %s: %w", kind, err)
		}
		route := &metav1.PartialObjectMetadata{}
		route.SetGroupVersionKind(kind)
		watches = watches.WatchesMetadata(route, handler.EnqueueRequestsFromMapFunc(r.rolloutsRouting))
	}
	if options.NewQueue == nil {
		options.NewQueue = gatherQueue
	}
	return watches.WithOptions(options).Named("rollout").Complete(r)
}

func ownerOf(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != v1alpha1.RolloutKind && owner.Kind != v1alpha1.ExperimentKind {
		return nil
	}
	return []string{string(owner.UID)}
}

func rolloutOfRevert(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.RolloutNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// claimIndex finds Rollouts by the names of the Services and routing objects that
// their routers claim.
const claimIndex = ".claims"

func (r *Reconciler) claimed(object client.Object) []string {
	rollout, ok := object.(*v1alpha1.Rollout)
	if !ok {
		return nil
	}
	var names []string
	for _, claim := range r.claims(rollout) {
		if claim.Namespace == rollout.Namespace { // the index is by namespace
			names = append(names, claim.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rolloutsRouting are the Rollouts that a Service or a routing object belongs to.
func (r *Reconciler) rolloutsRouting(ctx context.Context, object client.Object) []reconcile.Request {
	return r.rollouts(ctx, object.GetNamespace(), func(*v1alpha1.Rollout) bool { return true }, client.MatchingFields{claimIndex: object.GetName()})
}

// claims are the fields of other objects that a Rollout's traffic rests on, or rested
// on until the spec was changed.
func (r *Reconciler) claims(rollout *v1alpha1.Rollout) []routers.Claim {
	key := client.ObjectKeyFromObject(rollout)
	return append(r.claimsThrough(key, trafficOf(rollout.Spec)), r.claimsThrough(key, rollout.Status.Routed)...)
}

// rolloutsWaiting are the Rollouts that are not at rest: a template that appears
// or changes matters to them alone.
func (r *Reconciler) rolloutsWaiting(ctx context.Context, object client.Object) []reconcile.Request {
	return r.rollouts(ctx, object.GetNamespace(), func(rollout *v1alpha1.Rollout) bool {
		return rollout.Status.Phase != v1alpha1.RolloutPhaseHealthy
	})
}

func (r *Reconciler) rollouts(ctx context.Context, namespace string, match func(*v1alpha1.Rollout) bool, more ...client.ListOption) []reconcile.Request {
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, append(more, client.InNamespace(namespace))...); err != nil {
		return nil // the cache is not there yet; each Rollout gets its first pass anyway
	}
	var out []reconcile.Request
	for i := range list.Items {
		if match(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
