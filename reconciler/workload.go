package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// workloadIndex finds Rollouts by the workload that they name.
const workloadIndex = ".spec.workloadRef"

// watchWorkloads looks at the metadata of all that a Rollout may name: a change
// of the spec or of the status changes its version.
func (r *Reconciler) watchWorkloads(mgr ctrl.Manager, to *builder.Builder) error {
	if r.Workloads == nil {
		r.Workloads = mgr.GetCache()
	}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Rollout{}, workloadIndex, func(object client.Object) []string {
		rollout, ok := object.(*v1alpha1.Rollout)
		if !ok || rollout.Spec.WorkloadRef == nil {
			return nil
		}
		return []string{workloadKey(rollout.Spec.WorkloadRef.Kind, rollout.Spec.WorkloadRef.Name)}
	})
	if err != nil {
		return fmt.Errorf("indexing Rollouts by their workload: %w", err)
	}
	for kind, gvk := range workloadKinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(gvk)
		to.WatchesRawSource(source.Kind(r.Workloads, object, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, live *metav1.PartialObjectMetadata) []reconcile.Request {
				return r.rolloutsOf(ctx, kind, live)
			})))
	}
	return nil
}

// rolloutsOf are the Rollouts that name a workload, and the one that has scaled it down.
func (r *Reconciler) rolloutsOf(ctx context.Context, kind string, live *metav1.PartialObjectMetadata) []reconcile.Request {
	var out []reconcile.Request
	add := func(name string) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: live.Namespace, Name: name}})
	}
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(live.Namespace), client.MatchingFields{workloadIndex: workloadKey(kind, live.Name)}); err == nil {
		for i := range list.Items {
			add(list.Items[i].Name)
		}
	}
	if name := live.Labels[v1alpha1.RolloutNameLabel]; name != "" && live.Annotations[v1alpha1.WorkloadAnnotation] != "" {
		add(name)
	}
	return out
}

// workloadReader reads the metadata of workloads from the cache that is watched.
func (r *Reconciler) workloadReader() client.Reader {
	if r.Workloads == nil {
		return r.Live
	}
	return r.Workloads
}

// executeWorkloads sizes the workloads. A size goes down over the pods of the
// Rollout's ReplicaSets, so that those must be as they were read.
func (r *Reconciler) executeWorkloads(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Workloads {
		live, ok := seen.workloads[workloadKey(want.Kind, want.Name)]
		if !ok {
			return &staleError{what: want.Kind + " " + want.Name}
		}
		now, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
		if int64(want.Replicas) < now {
			if err := r.confirmSets(ctx, seen); err != nil {
				return err
			}
		}
		body, err := renderWorkload(seen.rollout, live, want)
		if err != nil {
			return err
		}
		err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(v1alpha1.FieldManagerRollout), client.ForceOwnership)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("sizing %s %s: %w", want.Kind, want.Name, err)
		}
	}
	return nil
}

// renderWorkload is the size of a workload, with the note of whose it is: what
// is not in it any more, server-side apply takes off. It holds for what was read.
func renderWorkload(rollout *v1alpha1.Rollout, live *unstructured.Unstructured, want plan.WorkloadWant) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(want.Replicas)}}}
	out.SetGroupVersionKind(workloadKinds[want.Kind])
	out.SetNamespace(live.GetNamespace())
	out.SetName(live.GetName())
	out.SetUID(live.GetUID())
	out.SetResourceVersion(live.GetResourceVersion())
	if want.Hold == nil {
		return out, nil
	}
	note, err := json.Marshal(v1alpha1.WorkloadHold{Rollout: rollout.Name, Replicas: want.Hold.Original, Set: want.Hold.Set})
	if err != nil {
		return nil, fmt.Errorf("noting the size of %s %s: %w", want.Kind, want.Name, err)
	}
	out.SetAnnotations(map[string]string{v1alpha1.WorkloadAnnotation: string(note)})
	out.SetLabels(map[string]string{v1alpha1.RolloutNameLabel: rollout.Name})
	return out, nil
}

// executeFinalizers puts the finalizers on the Rollout or takes them off. That of
// workloads goes only when no workload has a note of this Rollout, as the API server says.
func (r *Reconciler) executeFinalizers(ctx context.Context, seen *observed, decided plan.Plan) error {
	next := seen.rollout.DeepCopy()
	switch decided.Finalizer {
	case plan.FinalizerAdd:
		controllerutil.AddFinalizer(next, v1alpha1.WorkloadFinalizer)
	case plan.FinalizerRemove:
		held, err := heldWorkloads(ctx, r.Live, seen.rollout)
		if err != nil {
			return err
		}
		for _, item := range held {
			if item.DeletionTimestamp.IsZero() {
				return &staleError{what: "the note on " + item.Kind + " " + item.Name}
			}
		}
		controllerutil.RemoveFinalizer(next, v1alpha1.WorkloadFinalizer)
	}
	switch decided.TrafficFinalizer {
	case plan.FinalizerAdd:
		controllerutil.AddFinalizer(next, v1alpha1.TrafficFinalizer)
	case plan.FinalizerRemove:
		controllerutil.RemoveFinalizer(next, v1alpha1.TrafficFinalizer)
	}
	if slices.Equal(next.Finalizers, seen.rollout.Finalizers) {
		return nil
	}
	patch := client.MergeFromWithOptions(seen.rollout, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManagerRollout)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the finalizer: %w", err)
	}
	return nil
}
