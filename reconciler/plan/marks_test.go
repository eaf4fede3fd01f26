package plan_test

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// The mark of a version that was stable is taken off with the first other thing that
// is written to its ReplicaSet. Meanwhile a lost status doesn't bring it back.
func TestTheOldMarkGoesWithTheDeadline(t *testing.T) {
	c := cluster(withRouter(setWeight(50)))
	c.Commit("v1", "main@sha1:1", "one")
	if !c.Run(120, func(c *plansim.Cluster) bool { return c.Status.StableRS == "v1" && c.Role("v1") == v1alpha1.RoleStable }) {
		t.Fatal("v1 did not become stable")
	}
	c.Commit("v2", "main@sha1:2", "two")
	if !c.Run(120, func(c *plansim.Cluster) bool { return c.Status.StableRS == "v2" && c.Role("v2") == v1alpha1.RoleStable }) {
		t.Fatal("v2 did not become stable")
	}
	if got := c.Role("v1"); got != v1alpha1.RoleStable {
		t.Errorf("v1 was written to for its mark %q alone", got)
	}
	attempt := c.Status.Attempt
	c.Status = v1alpha1.RolloutStatus{}
	c.Pass()
	if c.Status.StableRS != "v2" || c.Status.CurrentPodHash != "v2" {
		t.Errorf("after a lost status %q is stable, want v2 (attempt %d then, %d now)", c.Status.StableRS, attempt, c.Status.Attempt)
	}
	if !c.Run(240, func(c *plansim.Cluster) bool { return c.Role("v1") == "" }) {
		t.Error("v1 kept the mark of the stable version")
	}
	if got := c.Role("v2"); got != v1alpha1.RoleStable {
		t.Errorf("v2 has the mark %q", got)
	}
}
