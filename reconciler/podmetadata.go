package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// executePodMetadata gives the pods that run what their ReplicaSet's template has
// of their role, in place. Each pass looks at all of them, in the cache, so that
// one that was started from an older template gets it too.
func (r *Reconciler) executePodMetadata(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Metadata {
		set, ok := seen.sets[want.Hash]
		if !ok {
			continue
		}
		has := readEphemeral(set.Annotations)
		if has.empty() {
			continue // no pod of it has anything of ours
		}
		if err := r.dressPods(ctx, set, has); err != nil {
			return err
		}
		if err := r.forgetLeft(ctx, set, has); err != nil {
			return err
		}
	}
	return nil
}

// dressPods patches the pods of a ReplicaSet that differ from what it was read with.
func (r *Reconciler) dressPods(ctx context.Context, set *appsv1.ReplicaSet, has ephemeral) error {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.Client.List(ctx, pods, client.InNamespace(set.Namespace),
		client.MatchingLabels{v1alpha1.TemplateHashLabel: set.Labels[v1alpha1.TemplateHashLabel]}); err != nil {
		return fmt.Errorf("listing the pods of ReplicaSet %s: %w", set.Name, err)
	}
	found := int32(0)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !metav1.IsControlledBy(pod, set) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		found++
		if err := r.dressPod(ctx, pod, set, has); err != nil {
			return err
		}
	}
	if found < set.Status.Replicas {
		return &staleError{what: "a pod of ReplicaSet " + set.Name}
	}
	return nil
}

func (r *Reconciler) dressPod(ctx context.Context, pod *metav1.PartialObjectMetadata, set *appsv1.ReplicaSet, has ephemeral) error {
	template := set.Spec.Template
	labels, annotations := has.Labels.missing(pod.Labels, template.Labels), has.Annotations.missing(pod.Annotations, template.Annotations)
	if len(labels)+len(annotations) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "labels": labels, "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("changing the metadata of pod %s: %w", pod.Name, err)
	}
	err = r.Client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsInvalid(err) { // what the API server says of another uid
		return &staleError{what: "the pod of the name " + pod.Name}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the metadata of pod %s: %w", pod.Name, err)
	}
	return nil
}

// forgetLeft ends the memory of keys that no pod has any more: all that run were
// looked at, and those to come are made from the template as it is.
func (r *Reconciler) forgetLeft(ctx context.Context, set *appsv1.ReplicaSet, has ephemeral) error {
	nothing := len(has.Labels.Left)+len(has.Annotations.Left) == 0
	if nothing || set.Status.ObservedGeneration < set.Generation || !set.DeletionTimestamp.IsZero() {
		return nil
	}
	has.Labels.Left, has.Annotations.Left = nil, nil
	next := set.DeepCopy()
	if err := has.annotate(next.Annotations); err != nil {
		return err
	}
	return r.patchLocked(ctx, set, next)
}
