package plansim

import (
	"slices"

	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// hasRoutes says that requests may reach the canary Service by a managed route.
func (c *Cluster) hasRoutes() bool { return len(c.route.routes) > 0 || len(c.DataPlaneRoutes()) > 0 }

// added are the routes that weren't there before, or otherwise.
func added(before, after []routers.ManagedRoute) []routers.ManagedRoute {
	var out []routers.ManagedRoute
	for _, route := range after {
		same := func(r routers.ManagedRoute) bool {
			return routers.SameRoutes([]routers.ManagedRoute{r}, []routers.ManagedRoute{route})
		}
		if !slices.ContainsFunc(before, same) {
			out = append(out, route)
		}
	}
	return out
}

// checkRoutes: law 1 for managed routes. One is added only for the version in
// progress, when the status that asks for it is persisted, the canary Service
// selects that version alone and a pod of it is available.
func (c *Cluster) checkRoutes(in plan.In, split routers.Split) {
	next := added(c.route.routes, split.Routes)
	if len(next) == 0 {
		return
	}
	hash := c.Selects("canary")
	if !onItsWay(in.Status) || in.Status.StableRS == "" || hash != in.Status.CurrentPodHash {
		c.violated("1", "%s leads to %q, and the version in progress is %q", routeNames(next), hash, in.Status.CurrentPodHash)
	}
	if c.Calm && c.AvailablePods(hash) == 0 {
		c.violated("1", "%s leads to %q, which has no pod", routeNames(next), hash)
	}
	for _, route := range next {
		if !c.reached(in, route.Name) {
			c.violated("7", "%s is there before its step is reached", route.Name)
		}
	}
}

// reached says that a persisted step has asked for a managed route of this name.
func (c *Cluster) reached(in plan.In, name string) bool {
	for i, step := range in.Spec.Strategy.Canary.Steps {
		if int32(i) > at(in.Status) {
			break
		}
		if h := step.SetHeaderRoute; h != nil && h.Name == name && len(h.Match) > 0 {
			return true
		}
		if m := step.SetMirrorRoute; m != nil && m.Name == name && len(m.Match) > 0 {
			return true
		}
	}
	return false
}
