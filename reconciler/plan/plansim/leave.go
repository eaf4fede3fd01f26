package plansim

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// Delete asks for the Rollout's end. It is gone when no finalizer holds it.
func (c *Cluster) Delete() {
	c.note("person", "deletes the Rollout")
	c.Deleting = true
	c.version++
	c.Gone = !c.trafficFinalizer
}

// observeTraffic says what the spec routes through, and what is to be given up, as
// the controller's shell does.
func (c *Cluster) observeTraffic(in *plan.In) {
	in.TrafficFinalizer = c.trafficFinalizer
	if !c.Routed {
		return
	}
	through := &v1alpha1.RoutedThrough{}
	for i, into := range []*string{&through.StableService, &through.CanaryService} {
		if s := c.services[i]; s != nil {
			*into = s.Name
		}
	}
	if canary := c.Spec.Strategy.Canary; canary != nil {
		through.TrafficRouting, through.DynamicStableScale = canary.TrafficRouting, canary.DynamicStableScale
		if both := canary.PingPong; both != nil {
			through.StableService, through.CanaryService = both.PingService, both.PongService
		}
	}
	in.Traffic = through
	if !c.Deleting || c.Status.Routed == nil && !c.trafficFinalizer {
		return
	}
	in.Leaving = &plan.Leaving{Objects: "HTTPRoute web and its Services"}
	in.Active, in.Preview = nil, nil
	live := func(s *plan.Service) *plan.Service {
		if s == nil {
			return nil
		}
		return c.withEndpoints(&plan.Service{Name: s.Name, Hash: s.Hash})
	}
	in.Stable, in.Canary = live(c.services[0]), live(c.services[1])
	if c.blueGreen() {
		in.Spec.Strategy = v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{}}
	}
}

func (c *Cluster) executeFinalizers(p plan.Plan, read Read) bool {
	if p.TrafficFinalizer == "" {
		return true
	}
	if c.stops("finalizer") || c.version != read.rollout && c.version != read.rollout+1 {
		return false // a lost race; its own status is one version newer
	}
	c.Writes++
	c.version++
	c.trafficFinalizer = p.TrafficFinalizer == plan.FinalizerAdd
	if c.Deleting && !c.trafficFinalizer {
		c.checkGone()
		c.note("person", "the Rollout is gone")
		c.Gone = true
	}
	return true
}

// checkGone: what is left behind serves, and nothing of us is in it (C112).
func (c *Cluster) checkGone() {
	if !c.blueGreen() && (c.route.weight != 0 || len(c.route.routes) > 0) {
		c.violated("C112", "the Rollout is gone, and its canary has %d%s and %s", c.route.weight, c.unit(), routeNames(c.route.routes))
	}
	for _, s := range c.services {
		if s != nil && s.Hash != "" {
			c.violated("C112", "the Rollout is gone, and Service %s selects %s", s.Name, s.Hash)
		}
	}
}

// checkUnhash: a Service without a hash selects every version's pods.
func (c *Cluster) checkUnhash(service string) {
	if !c.Deleting {
		c.violated("C67", "Service %s was made to select every version", service)
	}
	stable := c.Status.StableRS
	if !c.Calm || c.AvailablePods(stable) == 0 {
		return
	}
	for hash, s := range c.sets {
		if hash != stable && s.Desired > 0 {
			c.violated("C112", "Service %s was made to select the pods of %s too", service, hash)
		}
	}
}
