package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// A pause that is over is told as a completed step alone, and the way home of a
// promoted version's traffic by the switch of the Service alone.
func TestNothingIsToldTwice(t *testing.T) {
	c := cluster(withRouter(setWeight(20), pause(5)))
	told := map[string]int{}
	run := func(version string) {
		t.Helper()
		c.Commit(version, "main@sha1:"+version, version)
		for range 200 {
			c.Tick(1)
			for _, e := range c.Pass().Events {
				told[e.Reason]++
			}
			if c.Status.StableRS == version && c.Status.Phase == v1alpha1.RolloutPhaseHealthy && c.Weight() == 0 {
				return
			}
		}
		t.Fatalf("%s did not become stable: %s", version, c.Status.Message)
	}
	run("v1")
	clear(told)
	run("v2")
	want := map[string]int{
		v1alpha1.ReasonStepCompleted: 2, v1alpha1.ReasonPaused: 1, v1alpha1.ReasonResumed: 0,
		v1alpha1.ReasonTrafficWeightUpdated: 2, v1alpha1.ReasonRolloutCompleted: 1,
	}
	got := map[string]int{}
	for reason := range want {
		got[reason] = told[reason]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
