package reconciler

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// trafficOf is what a spec routes through; nil for a canary without a router.
func trafficOf(spec v1alpha1.RolloutSpec) *v1alpha1.RoutedThrough {
	if bg := spec.Strategy.BlueGreen; bg != nil {
		return &v1alpha1.RoutedThrough{StableService: bg.ActiveService, CanaryService: bg.PreviewService}
	}
	canary := spec.Strategy.Canary
	if canary == nil || canary.TrafficRouting == nil {
		return nil
	}
	placed := plan.PlaceServices(*canary, "")
	return &v1alpha1.RoutedThrough{
		StableService: placed.StableService, CanaryService: placed.CanaryService,
		TrafficRouting: canary.TrafficRouting, DynamicStableScale: canary.DynamicStableScale,
	}
}

// claimsThrough are the fields of other objects that traffic rests on.
func (r *Reconciler) claimsThrough(rollout types.NamespacedName, through *v1alpha1.RoutedThrough) []routers.Claim {
	if through == nil {
		return nil
	}
	target := routers.Target{
		Rollout: rollout, Routing: through.TrafficRouting,
		StableService: through.StableService, CanaryService: through.CanaryService,
	}
	if target.Routing == nil {
		return routers.ServiceClaims(target)
	}
	router, err := r.RouterFor(target.Routing)
	if err != nil || router == nil {
		return nil
	}
	return router.Claims(target)
}

// observeTraffic compares what is routed through with what the spec says. An
// object that the spec names no more, or any when the Rollout is deleted, is given
// back first; what follows observes the old objects then. A spec that can't be used
// gives nothing back.
func (r *Reconciler) observeTraffic(_ context.Context, seen *observed) error {
	seen.in.TrafficFinalizer = controllerutil.ContainsFinalizer(seen.rollout, v1alpha1.TrafficFinalizer)
	wanted, was := trafficOf(seen.rollout.Spec), seen.rollout.Status.Routed
	if len(seen.in.Invalid) > 0 {
		wanted = was
		keepStrategy(seen, was)
	}
	seen.in.Traffic = wanted
	if seen.in.Deleting {
		wanted = nil
		if was == nil && seen.in.TrafficFinalizer {
			was = trafficOf(seen.rollout.Spec) // a status that was lost
		}
	}
	key := client.ObjectKeyFromObject(seen.rollout)
	kept := r.claimsThrough(key, wanted)
	var given []string
	for _, claim := range r.claimsThrough(key, was) {
		if !slices.ContainsFunc(kept, func(k routers.Claim) bool { return k.Kind == claim.Kind && k.Name == claim.Name }) ||
			!covers(wanted, was, claim.Name) {
			given = append(given, claim.Kind+" "+claim.Name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	leaving := &plan.Leaving{Objects: strings.Join(given, ", ")}
	for _, claim := range kept {
		if claim.Kind == "Service" {
			leaving.Keep = append(leaving.Keep, claim.Name)
		}
	}
	seen.in.Leaving = leaving
	canary := v1alpha1.CanaryStrategy{
		StableService: was.StableService, CanaryService: was.CanaryService,
		TrafficRouting: was.TrafficRouting, DynamicStableScale: was.DynamicStableScale,
	}
	if seen.in.Status.Canary.StablePingPong == v1alpha1.PingPongPong {
		canary.StableService, canary.CanaryService = canary.CanaryService, canary.StableService
	}
	seen.in.Spec.Strategy = v1alpha1.RolloutStrategy{Canary: &canary}
	return nil
}

// keepStrategy goes on with what was routed through before a spec that can't be
// used: an abort still has to reach it (law 4).
func keepStrategy(seen *observed, was *v1alpha1.RoutedThrough) {
	switch spec := seen.rollout.Spec.Strategy; {
	case was == nil:
	case was.TrafficRouting == nil:
		bg := v1alpha1.BlueGreenStrategy{}
		if spec.BlueGreen != nil {
			bg = *spec.BlueGreen
		}
		bg.ActiveService, bg.PreviewService = was.StableService, was.CanaryService
		seen.in.Spec.Strategy = v1alpha1.RolloutStrategy{BlueGreen: &bg}
	default:
		canary := v1alpha1.CanaryStrategy{}
		if spec.Canary != nil {
			canary = *spec.Canary
		}
		canary.StableService, canary.CanaryService = was.StableService, was.CanaryService
		canary.TrafficRouting, canary.DynamicStableScale = was.TrafficRouting, was.DynamicStableScale
		canary.PingPong = nil
		side := seen.in.Status.Canary.StablePingPong
		if side != "" {
			canary.PingPong = &v1alpha1.PingPongSpec{PingService: was.StableService, PongService: was.CanaryService}
		}
		placed := plan.PlaceServices(canary, side)
		seen.in.Spec.Strategy = v1alpha1.RolloutStrategy{Canary: &placed}
	}
}

// covers says that all rules of a route that were routed through still are.
func covers(now, was *v1alpha1.RoutedThrough, route string) bool {
	if now == nil || was.TrafficRouting == nil {
		return true // told by the objects
	}
	before, after := rulesOf(was, route), rulesOf(now, route)
	if len(after) == 0 || len(before) == 0 {
		return len(after) == 0 // no name selects every rule
	}
	return !slices.ContainsFunc(before, func(rule string) bool { return !slices.Contains(after, rule) })
}

// rulesOf are the names of the rules of a route; none for all, and for no such route.
func rulesOf(through *v1alpha1.RoutedThrough, route string) []string {
	settings, err := routers.GatewayAPI(through.TrafficRouting)
	if err != nil || settings == nil {
		return nil
	}
	for _, r := range settings.HTTPRoutes {
		if r.Name == route {
			return r.RuleNames
		}
	}
	return nil
}

// unroutable says that there is no routing to be read any more: whatever the error
// says is missing or can't be used holds nothing that could be given back.
func unroutable(err error) bool {
	var missing *routers.NotFoundError
	var invalid *routers.InvalidError
	var config *routers.ConfigError
	return errors.As(err, &missing) || errors.As(err, &invalid) || errors.As(err, &config)
}

// observeLeavingServices reads the Services of both sides live.
func (r *Reconciler) observeLeavingServices(ctx context.Context, seen *observed) error {
	canary := seen.in.Spec.Strategy.Canary
	missing := seen.in.Missing
	defer func() { seen.in.Missing = missing }() // what is gone needs nothing
	var err error
	if canary.StableService != "" {
		if seen.in.Stable, err = r.observeService(ctx, seen, r.Live, canary.StableService); err != nil {
			return err
		}
	}
	if canary.CanaryService != "" {
		seen.in.Canary, err = r.observeService(ctx, seen, r.Live, canary.CanaryService)
	}
	return err
}
