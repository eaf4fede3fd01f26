package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// A Rollout at rest costs nothing: no write, no event, and no pass of its own accord.
func TestC118_ARolloutAtRestCostsNothing(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"with a router":    withRouter(setWeight(50), pause(1)),
		"without a router": withoutRouter(setWeight(50), pause(1)),
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(strategy)
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 240, "v2 stable", healthyOn("v2"))
			c.Run(240, nil)
			in, _ := c.Observe()
			p := plan.Decide(in)
			if p.Split != nil || p.Release || p.Revert != nil || p.WakeAfter != 0 ||
				len(p.Services)+len(p.ReplicaSets)+len(p.Prune)+len(p.Runs)+len(p.Terminate)+len(p.PruneRuns)+len(p.Events) > 0 {
				t.Errorf("the plan at rest is %+v", p)
			}
			if !equality.Semantic.DeepEqual(p.Status, in.Status) {
				t.Error("the status at rest is written anew")
			}
		})
	}
}
