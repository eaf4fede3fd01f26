package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// A size that comes with a new version is the stable version's after it, and what
// the next canary is measured by.
func TestC106_ASizeThatComesWithANewVersionStays(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"with a router":    withRouter(setWeight(50), pause(1)),
		"without a router": withoutRouter(setWeight(50), pause(1)),
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(strategy)
			c.Scale(2)
			stableAt(t, c, "v1")
			c.Scale(4)
			push(c, "v2")
			mustReach(t, c, 240, "v2 stable", healthyOn("v2"))
			if got := c.Desired("v2"); got != 4 {
				t.Errorf("v2 is stable with %d pods, want 4\n%s", got, transcript(c))
			}
			push(c, "v3")
			mustReach(t, c, 60, "the step of v3", atStep("v3", 1))
			if got := c.Desired("v3"); got != 2 {
				t.Errorf("the canary has %d pods at 50 %% of 4, want 2", got)
			}
		})
	}
}
