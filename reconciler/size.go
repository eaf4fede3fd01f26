package reconciler

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// sizeOf is how many pods the Rollout is to have. Whoever drops spec.replicas, to
// leave it to a scaler, doesn't ask for one pod: the last size holds. A Rollout
// that never had one gets 1, as a Deployment does.
func sizeOf(rollout *v1alpha1.Rollout) int32 {
	switch {
	case rollout.Spec.Replicas != nil:
		return *rollout.Spec.Replicas
	case rollout.Status.DesiredReplicas != nil:
		return *rollout.Status.DesiredReplicas
	}
	return 1
}

// executeSize puts a size that is missing into spec.replicas: without one the scale
// subresource answers with an error, and no scaler could ever set it.
func (r *Reconciler) executeSize(ctx context.Context, seen *observed, _ plan.Plan) error {
	if seen.rollout.Spec.Replicas != nil || seen.in.Deleting {
		return nil
	}
	next := seen.rollout.DeepCopy()
	next.Spec.Replicas = &seen.in.Replicas
	patch := client.MergeFromWithOptions(seen.rollout, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManagerRollout)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing spec.replicas: %w", err)
	}
	seen.rollout.ResourceVersion = next.ResourceVersion // what is written after it follows from it
	return nil
}
