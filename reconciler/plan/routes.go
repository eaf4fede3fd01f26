package plan

import (
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// wantRoutes are the managed routes that a status asks for: those of its step
// while a version is in progress, and none before its first pod was confirmed,
// where nothing else serves, and where nothing is to serve.
func wantRoutes(in In, st v1alpha1.RolloutStatus) []routers.ManagedRoute {
	if !routed(in) || !inProgress(st) || st.StableRS == "" || st.PromoteFull || confirmationPending(st) || in.Replicas == 0 {
		return nil
	}
	return managedRoutes(steps(in), index(st), canary(in).TrafficRouting)
}

// nextRoutes are the managed routes that may be there now, beside the weight that
// is seen. One that is wanted and there stays. To add or change one is a raise: it
// follows from the persisted status only, and needs all that the weight needs.
// What isn't wanted is left out at once.
func nextRoutes(in In, st v1alpha1.RolloutStatus, seen int32) []routers.ManagedRoute {
	before := persistedRoutes(in, st)
	open := raiseGate(in, st, seen) == ""
	live := in.Routing.Routes
	var out []routers.ManagedRoute
	for _, route := range wantRoutes(in, st) {
		was, there := routeNamed(live, route.Name)
		switch {
		case there && sameRoute(was, route) && (open || !in.Routing.RoutesDiffer):
			out = append(out, route)
		case open && !frozen(in, st) && slices.ContainsFunc(before, func(r routers.ManagedRoute) bool { return sameRoute(r, route) }):
			out = append(out, route)
		case there && !in.Routing.RoutesDiffer && slices.ContainsFunc(before, func(r routers.ManagedRoute) bool { return sameRoute(r, was) }):
			out = append(out, was) // until the status that changes it is persisted
		}
	}
	return out
}

// persistedRoutes are those that the persisted status asks for, if it speaks of
// the same attempt.
func persistedRoutes(in In, st v1alpha1.RolloutStatus) []routers.ManagedRoute {
	if in.Status.CurrentPodHash != st.CurrentPodHash || in.Status.Attempt != st.Attempt {
		return nil
	}
	return wantRoutes(in, in.Status)
}

func routeNamed(routes []routers.ManagedRoute, name string) (routers.ManagedRoute, bool) {
	i := slices.IndexFunc(routes, func(r routers.ManagedRoute) bool { return r.Name == name })
	if i < 0 {
		return routers.ManagedRoute{}, false
	}
	return routes[i], true
}

func sameRoute(a, b routers.ManagedRoute) bool {
	return routers.SameRoutes([]routers.ManagedRoute{a}, []routers.ManagedRoute{b})
}

// routesInOrder says that the live managed routes are those that a status asks
// for, or that there are none, as until the canary Service has come to its version.
func routesInOrder(in In, st v1alpha1.RolloutStatus) bool {
	return in.Routing.NoRoutes() || in.Routing.HasRoutes(wantRoutes(in, st))
}

// routesDoubted says that the persisted status asked for managed routes that st
// doesn't ask for: they may be there and not be seen yet. With steps that were
// edited since it can't be told which.
func routesDoubted(in In, st v1alpha1.RolloutStatus) bool {
	was := in.Status
	switch {
	case !inProgress(was):
		return false
	case inProgress(st) && was.CurrentPodHash == st.CurrentPodHash && was.Attempt == st.Attempt && index(was) == index(st):
		return false
	case was.CurrentStepHash != stepHash(in, index(was)):
		return true
	}
	return len(wantRoutes(in, was)) > 0
}
