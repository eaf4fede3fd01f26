package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// BenchmarkDecide prints what one decision costs in the middle of a canary.
func BenchmarkDecide(b *testing.B) {
	c := cluster(withRouter(setWeight(25), pause(0), setWeight(50)))
	c.Commit("v1", "main@sha1:1", "one")
	if !c.Run(120, func(c *plansim.Cluster) bool { return c.Status.StableRS == "v1" }) {
		b.Fatal("v1 did not become stable")
	}
	c.Commit("v2", "main@sha1:2", "two")
	if !c.Run(120, func(c *plansim.Cluster) bool { return c.Weight() == 25 }) {
		b.Fatal("v2 did not get its traffic")
	}
	in, _ := c.Observe()
	b.ReportAllocs()
	for b.Loop() {
		plan.Decide(in)
	}
}
