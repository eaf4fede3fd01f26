package plan_test

import (
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// A rollout began when its template was taken up: what happens on its way doesn't
// move that, and another template, or the same one tried again, begins anew.
func TestStartOfARollout(t *testing.T) {
	c := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, c, "v1")
	first := startOf(t, c)
	push(c, "v2")
	begun := c.Now
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
	if got := startOf(t, c); !got.After(first) || got.Sub(begun) > 5*time.Second {
		t.Errorf("v2 was pushed at %s and started at %s", begun, got)
	}
	second, attempt := startOf(t, c), c.Status.Attempt
	c.Edit("edits the steps", func(s *v1alpha1.RolloutSpec) {
		s.Strategy.Canary.Steps = []v1alpha1.CanaryStep{setWeight(25), pause(0)}
	})
	c.Run(30, nil)
	if c.Status.Attempt == attempt {
		t.Fatal("the edited steps made no new attempt, so this shows nothing")
	}
	if got := startOf(t, c); !got.Equal(second) {
		t.Errorf("edited steps moved the start from %s to %s", second, got)
	}
	push(c, "v3")
	mustReach(t, c, 60, "v3", func(c *plansim.Cluster) bool { return c.Status.CurrentPodHash == "v3" })
	third := startOf(t, c)
	if !third.After(second) {
		t.Errorf("v3 starts at %s, as v2 did", third)
	}
	mustReach(t, c, 60, "the pause", pausedAt("v3", 1))
	c.Send(v1alpha1.AbortAnnotation, "no")
	mustReach(t, c, 30, "the abort", func(c *plansim.Cluster) bool { return c.Status.Abort })
	if got := startOf(t, c); !got.Equal(third) {
		t.Errorf("the abort moved the start from %s to %s", third, got)
	}
}

func startOf(t *testing.T, c *plansim.Cluster) time.Time {
	t.Helper()
	if c.Status.StartedAt == nil {
		t.Fatal("the status doesn't say when the rollout began")
	}
	return c.Status.StartedAt.Time
}
