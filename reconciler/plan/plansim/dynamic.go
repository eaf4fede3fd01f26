package plansim

import (
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// dynamic says that stable shrinks as the canary grows.
func (c *Cluster) dynamic() bool {
	return c.Routed && c.Spec.Strategy.Canary != nil && c.Spec.Strategy.Canary.DynamicStableScale
}

// carries is the most of the whole that so many pods of stable can take.
func (c *Cluster) carries(replicas, pods int32) int32 {
	if replicas == 0 || pods >= c.enough(replicas) {
		return c.Whole()
	}
	return int32(int64(c.Whole()) * int64(pods) / int64(replicas))
}

// checkWalkHome: law 4, its second line: the weight follows stable's availability
// down. Pods that a deadline on the ReplicaSet lets go aren't counted.
func (c *Cluster) checkWalkHome(in plan.In, p plan.Plan) {
	pods := int32(0)
	for _, rs := range in.ReplicaSets {
		if rs.Hash != p.Status.StableRS || rs.Deleting {
			continue
		}
		pods = min(rs.Available, rs.Desired)
		if rs.ScaleDownAt != nil {
			pods = min(pods, c.floored(in.Replicas, c.share(in.Replicas, c.Whole()-in.Routing.Canary)))
		}
	}
	limit := c.Whole() - c.carries(in.Replicas, pods)
	switch {
	case pods == 0 && in.Replicas > 0 && p.Split != nil && p.Split.Canary != in.Routing.Canary:
		c.violated("4", "aborted with no stable pod available, and the weight was moved to %d", p.Split.Canary)
	case pods == 0 && in.Replicas > 0:
	case in.Routing.Canary > limit && (p.Split == nil || p.Split.Canary > limit || len(p.Split.Routes) > 0):
		c.violated("4", "aborted with %d stable pods to count on, and the weight was not lowered from %d to %d: %+v", pods, in.Routing.Canary, limit, p.Split)
	}
}

// floored is what is left of pods where minPodsPerReplicaSet keeps more.
func (c *Cluster) floored(replicas, pods int32) int32 {
	least := c.Spec.Strategy.Canary.MinPodsPerReplicaSet
	if least == nil || pods == 0 {
		return pods
	}
	return max(pods, min(*least, replicas))
}

// checkLower: law 1 for stable's side where it isn't kept whole.
func (c *Cluster) checkLower(weight int32, stable string) {
	if !c.dynamic() || !c.Calm || weight >= c.route.weight || c.Selects("canary") == stable || c.rests.Replicas == 0 {
		return
	}
	if weight >= c.rests.Routing.Canary && (c.sets[stable] == nil || !c.sets[stable].small) {
		return // an older view than a scaler's and the route's; stable is as large as it ever was
	}
	if pods := c.AvailablePods(stable); c.Whole()-weight > c.carries(c.rests.Replicas, pods) {
		c.violated("1", "the weight was lowered to %d with %d of %d pods of stable %s available", weight, pods, c.rests.Replicas, stable)
	}
}
