package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestC23_AScalerGrowsStableAloneAfterAnAbort(t *testing.T) {
	strategy := withRouter(setWeight(50), pause(0))
	strategy.AbortScaleDownDelaySeconds = ptr(int32(0)) // the aborted pods stay
	c := paused(t, strategy, 1)
	c.RevertAfter = 0
	c.Send(v1alpha1.AbortAnnotation, "stop")
	mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	before, selected := c.Pods("v2"), c.Selects("canary")
	c.Scale(8)
	for range 90 {
		c.Run(1, nil)
		if c.Desired("v2") > before || c.Selects("canary") != selected || c.Weight() != 0 {
			t.Fatalf("%d pods of the aborted version, canary Service on %s, weight %d\n%s", c.Desired("v2"), c.Selects("canary"), c.Weight(), transcript(c))
		}
	}
	noViolations(t, c)
	if c.Pods("v1") != 8 || c.Status.Phase != v1alpha1.RolloutPhaseDegraded {
		t.Errorf("%d pods of stable, phase %s; want 8 and Degraded", c.Pods("v1"), c.Status.Phase)
	}
}
