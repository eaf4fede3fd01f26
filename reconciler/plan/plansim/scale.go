package plansim

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// needs are the pods that must be available before the version in progress gets
// a weight: those of an explicit setCanaryScale, which is the user's word, else its
// share; and of these as many as replicaProgressThreshold says.
func (c *Cluster) needs(weight int32) int32 {
	pods := c.share(c.rests.Replicas, weight)
	if set := c.scaleWord(); set != nil {
		switch {
		case set.Replicas != nil:
			pods = min(pods, *set.Replicas)
		case set.Weight != nil:
			pods = min(pods, c.share(c.rests.Replicas, *set.Weight))
		}
	}
	if weight > 0 {
		pods = max(pods, min(1, c.rests.Replicas))
	}
	return c.enough(pods)
}

func (c *Cluster) scaleWord() *v1alpha1.SetCanaryScale {
	steps := c.rests.Spec.Strategy.Canary.Steps
	i := at(c.rests.Status)
	if int(i) >= len(steps) {
		return nil
	}
	for ; i >= 0; i-- {
		if set := steps[i].SetCanaryScale; set != nil {
			return set
		}
	}
	return nil
}

func (c *Cluster) enough(pods int32) int32 {
	t := c.rests.Spec.Strategy.Canary.ReplicaProgressThreshold
	switch {
	case t == nil || pods == 0:
		return pods
	case t.Type == v1alpha1.ThresholdPods:
		return min(t.Value, pods)
	}
	return (pods*t.Value + 99) / 100
}
