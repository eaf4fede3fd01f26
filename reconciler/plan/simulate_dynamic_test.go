package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// TestDynamicLaws holds the laws where stable shrinks as the canary grows: time is
// longer and events are fewer than in TestLaws, for stable to have become small
// when they come.
func TestDynamicLaws(t *testing.T) {
	for name, may := range map[string]trouble{
		"calm":       {badRuns: true, persons: true},
		"crashes":    {crashes: true, badRuns: true, persons: true, router: true},
		"stale":      {crashes: true, stale: true, badRuns: true, persons: true},
		"races":      {badRuns: true, persons: true, git: true, races: true},
		"everything": everything,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawDynamicWorld(t, may)
				w.liveSlowly(t, may, rapid.IntRange(5, 30).Draw(t, "rounds"))
				w.calm()
				w.settle(t)
				w.mustBeAtRest(t)
			})
		})
	}
}

func drawDynamicWorld(t *rapid.T, may trouble) *world {
	strategy := drawStrategy(t, true)
	strategy.DynamicStableScale, strategy.ScaleDownDelaySeconds = true, nil
	w := furnish(t, may, plansim.New(start, strategy, rapid.Int32Range(1, 7).Draw(t, "replicas")))
	w.Verifies = rapid.IntRange(0, 3).Draw(t, "verifiesMostly") > 0
	return w
}

// liveSlowly begins in the middle of a canary.
func (w *world) liveSlowly(t *rapid.T, may trouble, rounds int) {
	w.Commit("v1", w.nextCommit(), "The first commit")
	for range 40 {
		w.Pass()
		w.Tick(1)
	}
	w.Commit("v2", w.nextCommit(), "The second commit")
	for range rounds {
		if rapid.IntRange(0, 5).Draw(t, "happens") == 0 {
			w.event(t, may)
		}
		if may.stale {
			for _, kind := range []string{"sets", "route", "services", "runs", "reverts"} {
				w.Lag[kind] = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lag")
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "passes") {
			w.Pass()
		}
		w.Tick(rapid.IntRange(0, 8).Draw(t, "seconds"))
		w.verify(t)
	}
}
