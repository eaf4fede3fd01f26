package reconciler

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// servicesIndex finds Rollouts by the Services that their traffic goes through, or
// went through and is not given back yet.
const servicesIndex = ".spec.services"

func indexServices(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.Rollout{}, servicesIndex, func(object client.Object) []string {
		rollout, ok := object.(*v1alpha1.Rollout)
		if !ok {
			return nil
		}
		return append(servicesOf(trafficOf(rollout.Spec)), servicesOf(rollout.Status.Routed)...)
	})
	if err != nil {
		return fmt.Errorf("indexing Rollouts by Service: %w", err)
	}
	return nil
}

func servicesOf(through *v1alpha1.RoutedThrough) []string {
	if through == nil {
		return nil
	}
	var out []string
	for _, name := range []string{through.StableService, through.CanaryService} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// rivalsFor are the other Rollouts whose traffic goes through a Service too.
func (r *Reconciler) rivalsFor(ctx context.Context, own *v1alpha1.Rollout, service string) ([]v1alpha1.Rollout, error) {
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(own.Namespace), client.MatchingFields{servicesIndex: service}); err != nil {
		return nil, fmt.Errorf("listing Rollouts: %w", err)
	}
	var out []v1alpha1.Rollout
	for _, other := range list.Items {
		if other.UID != own.UID {
			out = append(out, other)
		}
	}
	return out, nil
}

// holds says that a Rollout has taken a Service over and not given it back.
func holds(rollout *v1alpha1.Rollout, service string) bool {
	for _, name := range servicesOf(rollout.Status.Routed) {
		if name == service {
			return true
		}
	}
	return false
}

// yields says that own leaves a Service to other: to the one of the two that has
// taken it over, and otherwise to the older one.
//
//	own has it   other has it   own yields
//	no           yes            yes
//	yes          no             no
//	both, or none               if other is older
func yields(own, other *v1alpha1.Rollout, service string) bool {
	if mine, theirs := holds(own, service), holds(other, service); mine != theirs {
		return theirs
	}
	if own.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return other.Name < own.Name
	}
	return other.CreationTimestamp.Before(&own.CreationTimestamp)
}

// observeOwners makes a Rollout wait for the Services that are another's (law 9):
// two that write one selector would take it from each other for ever, under traffic.
func (r *Reconciler) observeOwners(ctx context.Context, seen *observed) error {
	services := servicesOf(seen.in.Traffic)
	if seen.in.Leaving != nil {
		services = servicesOf(seen.rollout.Status.Routed)
	}
	for _, service := range services {
		rivals, err := r.rivalsFor(ctx, seen.rollout, service)
		if err != nil {
			return err
		}
		for i := range rivals {
			if !yields(seen.rollout, &rivals[i], service) {
				continue
			}
			if seen.in.Leaving != nil {
				if holds(&rivals[i], service) {
					seen.in.Leaving.Keep = append(seen.in.Leaving.Keep, service)
				}
				continue
			}
			seen.in.Yields = true
			seen.in.Missing = append(seen.in.Missing, fmt.Sprintf(
				"Service %s for itself: Rollout %s routes through it too; name another Service, or delete one of the two", service, rivals[i].Name))
		}
	}
	return nil
}
