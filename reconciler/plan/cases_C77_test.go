package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// A scaler multiplies what it sees by the pods it is told of: the number and the
// selector must speak of the same pods, and pods without traffic are none of them.
func TestC77_AScalerCountsThePodsWithTraffic(t *testing.T) {
	const stableOnly, both = "app=web,pushback.dev/template-hash=v1", "app=web,pushback.dev/template-hash in (v1,v2)"
	strategy := withRouter(setWeight(0), pause(0), setWeight(20), pause(0))
	c := paused(t, strategy, 1)
	if c.Status.HPAReplicas != 4 || c.Status.Selector != stableOnly {
		t.Errorf("without traffic: %d pods by %q", c.Status.HPAReplicas, c.Status.Selector)
	}
	c.Send(v1alpha1.PromoteAnnotation, "on")
	mustReach(t, c, 60, "the second pause", pausedAt("v2", 3))
	if want := c.Pods("v1") + c.Pods("v2"); c.Status.HPAReplicas != want || c.Status.Selector != both {
		t.Errorf("with traffic: %d pods by %q, want %d", c.Status.HPAReplicas, c.Status.Selector, want)
	}
	c.Send(v1alpha1.AbortAnnotation, "stop")
	mustReach(t, c, 60, "weight 0", func(c *simCluster) bool { return c.Weight() == 0 && c.DataPlane() == 0 })
	c.Run(5, nil)
	if c.Pods("v2") == 0 || c.Status.HPAReplicas != 4 || c.Status.Selector != stableOnly {
		t.Errorf("with idle pods left (%d): %d pods by %q", c.Pods("v2"), c.Status.HPAReplicas, c.Status.Selector)
	}
}
