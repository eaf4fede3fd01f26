package reconciler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// observeSides gives the Services of pingPong the roles that they have now. What
// follows reads them from the observed spec, and never from the Rollout's.
func (r *Reconciler) observeSides(ctx context.Context, seen *observed) error {
	canary := seen.rollout.Spec.Strategy.Canary
	if canary == nil || canary.PingPong == nil {
		return nil
	}
	ping, pong := "", ""
	if seen.in.Status.Canary.StablePingPong == "" { // a new Rollout, or one whose status was lost
		var err error
		if ping, err = r.selectedHash(ctx, seen, canary.PingPong.PingService); err != nil {
			return err
		}
		if pong, err = r.selectedHash(ctx, seen, canary.PingPong.PongService); err != nil {
			return err
		}
	}
	placed := plan.PlaceServices(*canary, plan.StableSide(seen.in.Status, seen.in.ReplicaSets, ping, pong))
	seen.in.Spec.Strategy.Canary = &placed
	return nil
}

// selectedHash is the template hash that a Service selects; empty when it selects
// none, or isn't there, which is said elsewhere.
func (r *Reconciler) selectedHash(ctx context.Context, seen *observed, name string) (string, error) {
	key := types.NamespacedName{Namespace: seen.rollout.Namespace, Name: name}
	service := &corev1.Service{}
	if err := r.Live.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Service %s: %w", key, err)
	}
	return service.Spec.Selector[v1alpha1.TemplateHashLabel], nil
}
