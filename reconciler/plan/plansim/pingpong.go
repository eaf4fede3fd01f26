package plansim

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// orient gives the Services of pingPong the roles that the status says, as the
// controller's shell does before it observes. Nothing of the cluster changes by it.
func (c *Cluster) orient(sets []plan.ReplicaSet) {
	canary := c.Spec.Strategy.Canary
	if canary == nil || canary.PingPong == nil {
		return
	}
	hashes := map[string]string{}
	for _, s := range c.services {
		hashes[s.Name] = s.Hash
	}
	to := plan.StableSide(c.Status, sets, hashes[canary.PingPong.PingService], hashes[canary.PingPong.PongService])
	if to != c.side {
		c.side = to
		c.swapRoles()
	}
	placed := plan.PlaceServices(*canary, to)
	canary.StableService, canary.CanaryService = placed.StableService, placed.CanaryService
}

// swapRoles calls the stable side canary and the other way round, in what is there
// and in what the caches hold of it.
func (c *Cluster) swapRoles() {
	c.services[0], c.services[1] = c.services[1], c.services[0]
	c.route.weight, c.route.stable, c.route.before = c.route.stable, c.route.weight, c.Whole()-c.route.before
	for i, was := range c.history["services"] {
		both := was.([2]*plan.Service)
		c.history["services"][i] = [2]*plan.Service{both[1], both[0]}
	}
	for i, was := range c.history["route"] {
		seen := was.(routeSeen)
		seen.Stable, seen.Canary = seen.Canary, seen.Stable
		c.history["route"][i] = seen
	}
}

// turnedSplit is a split in today's roles: it names Services, and whoever decided
// it may have read a status from before the roles were turned.
func (c *Cluster) turnedSplit(in plan.In, split *routers.Split) *routers.Split {
	if canary := in.Spec.Strategy.Canary; canary == nil || canary.PingPong == nil || canary.StableService == c.services[0].Name {
		return split
	}
	turned := *split
	turned.Stable, turned.Canary = split.Canary, split.Stable
	return &turned
}

// pingPong is a strategy's Services that alternate.
var pingPong = &v1alpha1.PingPongSpec{PingService: "web-ping", PongService: "web-pong"}

// WithPingPong returns the strategy with Services that alternate.
func WithPingPong(s v1alpha1.CanaryStrategy) v1alpha1.CanaryStrategy {
	s.PingPong = pingPong.DeepCopy()
	return s
}
