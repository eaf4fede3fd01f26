package validation

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// scale checks what sizes the sides of a canary.
func (c *collector) scale(canary v1alpha1.CanaryStrategy) {
	if n := canary.MinPodsPerReplicaSet; n != nil {
		field := canaryField + ".minPodsPerReplicaSet"
		switch {
		case *n < 1:
			c.add(field, "it is %d and must be 1 or more", *n)
		case canary.TrafficRouting == nil:
			c.add(field, "it has a meaning with trafficRouting only: without a router the pods are the weight")
		}
	}
	if t := canary.ReplicaProgressThreshold; t != nil {
		c.threshold(canaryField+".replicaProgressThreshold", *t)
	}
	for i, step := range canary.Steps {
		if step.SetCanaryScale != nil {
			c.canaryScale(stepField(i)+".setCanaryScale", *step.SetCanaryScale, canary.TrafficRouting)
		}
	}
}

func (c *collector) threshold(field string, t v1alpha1.ReplicaProgressThreshold) {
	switch t.Type {
	case v1alpha1.ThresholdPercent, v1alpha1.ThresholdPercentage:
		if t.Value < 1 || t.Value > 100 {
			c.add(field+".value", "it is %d and must be 1 to 100 percent", t.Value)
		}
	case v1alpha1.ThresholdPods:
		if t.Value < 1 {
			c.add(field+".value", "it is %d and must be 1 pod or more", t.Value)
		}
	default:
		c.add(field+".type", "%q is neither Percent nor Pods", t.Type)
	}
}

func (c *collector) canaryScale(field string, set v1alpha1.SetCanaryScale, tr *v1alpha1.RolloutTrafficRouting) {
	if tr == nil {
		c.add(field, "it has a meaning with trafficRouting only: without a router the pods are the weight")
		return
	}
	kinds := 0
	for _, is := range []bool{set.Weight != nil, set.Replicas != nil, set.MatchTrafficWeight} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		c.add(field, "set exactly one of weight, replicas and matchTrafficWeight")
	}
	if w, whole := set.Weight, routers.Whole(tr); w != nil && (*w < 0 || *w > whole) {
		c.add(field+".weight", "it is %d and must be 0 to %d", *w, whole)
	}
	c.notNegative(field+".replicas", set.Replicas)
}
