package plan_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// setCanaryScale sizes the canary apart from its traffic, until it is to match it
// again; it shrinks then, but never below what its traffic needs.
func TestSetCanaryScale(t *testing.T) {
	c := cluster(withRouter(scaleTo(5), pause(10), setWeight(25), pause(10), matchWeight, pause(10), setWeight(75), pause(10), scaleTo(1), pause(10)))
	stableAt(t, c, "v1")
	push(c, "v2")
	for _, want := range []struct {
		index, weight, pods int32
	}{{1, 0, 5}, {3, 25, 5}, {5, 25, 1}, {7, 75, 3}, {9, 75, 3}} {
		mustReach(t, c, 120, "the pause", pausedAt("v2", want.index))
		if c.Weight() != want.weight || c.Pods("v2") != want.pods || c.Pods("v1") != 4 {
			t.Fatalf("at step %d weight %d with %d pods, stable %d; want %d with %d, and 4", want.index, c.Weight(), c.Pods("v2"), c.Pods("v1"), want.weight, want.pods)
		}
	}
	mustReach(t, c, 120, "Healthy", healthyOn("v2"))
}

// The user's word (law 1): a pinned canary gets a weight that it would be too small for.
func TestSetCanaryScaleBelowTheShare(t *testing.T) {
	c := paused(t, withRouter(scaleTo(1), setWeight(75), pause(0)), 2)
	if c.Weight() != 75 || c.Pods("v2") != 1 {
		t.Errorf("weight %d with %d pods, want 75 with 1", c.Weight(), c.Pods("v2"))
	}
	c.Scale(8)
	c.Run(20, nil)
	if c.Weight() != 75 || c.Pods("v2") != 1 || c.Pods("v1") != 8 {
		t.Errorf("after a scaler's word weight %d with %d pods and %d of stable, want 75 with 1 and 8", c.Weight(), c.Pods("v2"), c.Pods("v1"))
	}
	c.Send(v1alpha1.PromoteAnnotation, "on")
	mustReach(t, c, 60, "Healthy", healthyOn("v2"))
	noViolations(t, c)
}

// A canary that is over-scaled and has no traffic is none of a scaler's business.
func TestC77_APinnedCanaryWithoutTrafficIsNotCounted(t *testing.T) {
	c := paused(t, withRouter(scaleTo(6), pause(0)), 1)
	if c.Status.HPAReplicas != 4 || c.Status.Selector != "app=web,pushback.dev/template-hash=v1" || c.Pods("v2") != 6 {
		t.Errorf("a scaler sees %d pods by %q, want the 4 of stable", c.Status.HPAReplicas, c.Status.Selector)
	}
}

// Enough pods are enough: one that never becomes available holds nothing up.
func TestReplicaProgressThreshold(t *testing.T) {
	for name, threshold := range map[string]*v1alpha1.ReplicaProgressThreshold{
		"percent": {Type: v1alpha1.ThresholdPercent, Value: 75},
		"pods":    {Type: v1alpha1.ThresholdPods, Value: 3},
		"none":    nil,
	} {
		for _, routed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				strategy := withoutRouter(setWeight(100), pause(5))
				strategy.MaxUnavailable = ptr(intstr.FromInt32(1)) // the bounds hold all the same
				if routed {
					strategy = withRouter(setWeight(100), pause(5))
				}
				strategy.ReplicaProgressThreshold = threshold
				c := cluster(strategy)
				c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: time.Second, Limit: 3}
				stableAt(t, c, "v1")
				push(c, "v2")
				if threshold == nil {
					c.Run(60, nil)
					if c.Status.StableRS != "v1" || c.Weight() != 0 {
						t.Fatalf("weight %d, stable %s with 3 of 4 pods", c.Weight(), c.Status.StableRS)
					}
					return
				}
				mustReach(t, c, 60, "v2 stable", func(c *plansim.Cluster) bool { return c.Status.StableRS == "v2" })
			})
		}
	}
}

func TestMinPodsPerReplicaSet(t *testing.T) {
	strategy := withRouter(setWeight(1), pause(0))
	strategy.MinPodsPerReplicaSet = ptr(int32(2))
	c := paused(t, strategy, 1)
	if c.Pods("v2") != 2 {
		t.Errorf("%d pods at weight 1, want 2", c.Pods("v2"))
	}
	c.Send(v1alpha1.AbortAnnotation, "stop")
	mustReach(t, c, 120, "the end of its pods", func(c *plansim.Cluster) bool { return c.Pods("v2") == 0 && c.Weight() == 0 }) // C25's variant
}

// Delays longer than any resync are kept to the second, counted from the weight
// that was seen, and nothing is written meanwhile.
func TestLongDelaysAreKept(t *testing.T) {
	const day = 24 * 60 * 60
	for name, tc := range map[string]struct {
		set  func(*v1alpha1.CanaryStrategy)
		ends func(*testing.T, *plansim.Cluster)
		hash string
	}{
		"abortScaleDownDelaySeconds": {
			set: func(s *v1alpha1.CanaryStrategy) { s.AbortScaleDownDelaySeconds = ptr(int32(day)) },
			ends: func(t *testing.T, c *plansim.Cluster) {
				c.Send(v1alpha1.AbortAnnotation, "stop")
				mustReach(t, c, 60, "weight 0", func(c *plansim.Cluster) bool { return c.Weight() == 0 && c.DataPlane() == 0 })
			},
			hash: "v2",
		},
		"scaleDownDelaySeconds": {
			set: func(s *v1alpha1.CanaryStrategy) { s.ScaleDownDelaySeconds = ptr(int32(day)) },
			ends: func(t *testing.T, c *plansim.Cluster) {
				c.Send(v1alpha1.PromoteFullAnnotation, "all")
				mustReach(t, c, 60, "v2 stable", func(c *plansim.Cluster) bool { return c.Selects("stable") == "v2" })
			},
			hash: "v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(setWeight(50), pause(0))
			tc.set(&strategy)
			c := paused(t, strategy, 1)
			c.RevertAfter = 0
			pods := c.Pods(tc.hash)
			tc.ends(t, c)
			from := c.Now
			c.Run(300, nil)
			writes := c.Writes
			c.Tick(day - 400)
			c.Pass()
			c.Run(60, nil)
			if c.Pods(tc.hash) != pods || c.Writes != writes {
				t.Fatalf("%d of %d pods and %d writes before the day is over", c.Pods(tc.hash), pods, c.Writes-writes)
			}
			mustReach(t, c, 600, "the end of its pods", func(c *plansim.Cluster) bool { return c.Desired(tc.hash) == 0 })
			if late := c.Now.Sub(from) - day*time.Second; late < -2*time.Second || late > 5*time.Second {
				t.Errorf("its pods went %s after the day", late)
			}
		})
	}
}
