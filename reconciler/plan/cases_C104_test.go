package plan_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// ups are the sizes that a version is scaled up to, in order, with what was
// available of it then.
type ups struct {
	sizes     []int32
	available []int32
}

// watchUps runs until done and notes how hash grows.
func watchUps(t *testing.T, c *plansim.Cluster, hash, what string, done func(*plansim.Cluster) bool) ups {
	t.Helper()
	var seen ups
	last := c.Desired(hash)
	mustReach(t, c, 600, what, func(c *plansim.Cluster) bool {
		if now := c.Desired(hash); now > last {
			seen.sizes = append(seen.sizes, now)
			seen.available = append(seen.available, c.AvailablePods(hash))
			last = now
		}
		return done(c)
	})
	return seen
}

// A maxSurge that is set with a router bounds how many pods start at a time; the
// weight and the step's clock wait for all of them, and promotion goes the same way.
func TestC104_ScaleUpIsBatchedByMaxSurge(t *testing.T) {
	for name, tc := range map[string]struct {
		surge     *intstr.IntOrString
		step, end []int32
	}{
		"a tenth":          {ptr(intstr.FromString("10%")), []int32{10, 20, 30, 40, 50}, []int32{60, 70, 80, 90, 100}},
		"a number":         {ptr(intstr.FromInt32(20)), []int32{20, 40, 50}, []int32{70, 90, 100}},
		"none is one":      {ptr(intstr.FromInt32(0)), upTo(1, 50), upTo(51, 100)},
		"more than needed": {ptr(intstr.FromString("100%")), []int32{50}, []int32{100}},
		"not set":          {nil, []int32{50}, []int32{100}},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := withRouter(setWeight(50), pause(20))
			strategy.MaxSurge = tc.surge
			c := cluster(strategy)
			c.Scale(100)
			stableAt(t, c, "v1")
			push(c, "v2")
			var whole time.Time
			step := watchUps(t, c, "v2", "the pause", func(c *plansim.Cluster) bool {
				if c.AvailablePods("v2") >= 50 && whole.IsZero() {
					whole = c.Now
				}
				if c.Weight() > 0 && whole.IsZero() {
					t.Fatalf("weight %d with %d of 50 pods\n%s", c.Weight(), c.AvailablePods("v2"), transcript(c))
				}
				return pausedAt("v2", 1)(c)
			})
			same(t, "at the step", step.sizes, tc.step)
			if started := c.Status.StepStartedAt; started == nil || started.Time.Before(whole) {
				t.Errorf("the pause began at %v, and the pods were there at %v", started, whole)
			}
			end := watchUps(t, c, "v2", "v2 stable", healthyOn("v2"))
			same(t, "at promotion", end.sizes, tc.end)
			for _, ups := range []ups{step, end} {
				for i := range ups.sizes[1:] {
					if ups.available[i+1] < ups.sizes[i] {
						t.Errorf("went on to %d pods when %d of %d were available", ups.sizes[i+1], ups.available[i+1], ups.sizes[i])
					}
				}
			}
		})
	}
}

func upTo(from, to int32) []int32 {
	var out []int32
	for n := from; n <= to; n++ {
		out = append(out, n)
	}
	return out
}

func same(t *testing.T, what string, got, want []int32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s it grew by %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s it grew by %v, want %v", what, got, want)
		}
	}
}

// A batch that doesn't become available ends in the deadline, not in more pods.
func TestC104_ABatchThatFailsIsTheLast(t *testing.T) {
	strategy := withRouter(setWeight(50), pause(0))
	strategy.MaxSurge = ptr(intstr.FromString("10%"))
	c := cluster(strategy)
	c.Scale(100)
	c.RevertAfter = 0
	c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
	c.Behaviours["v2"] = plansim.Behaviour{ReadyAfter: time.Second, Limit: 14}
	stableAt(t, c, "v1")
	push(c, "v2")
	seen := watchUps(t, c, "v2", "the abort", phase(v1alpha1.RolloutPhaseDegraded))
	same(t, "before it", seen.sizes, []int32{10, 20})
	if c.Status.AbortReason != v1alpha1.AbortDeadline || c.Weight() != 0 {
		t.Errorf("aborted for %q with weight %d, want %q and 0", c.Status.AbortReason, c.Weight(), v1alpha1.AbortDeadline)
	}
}

// Traffic that a version has already is not made to wait for batches.
func TestC104_AScalerIsFollowedAtOnce(t *testing.T) {
	strategy := withRouter(setWeight(50), pause(0), setWeight(80), pause(0))
	strategy.MaxSurge = ptr(intstr.FromInt32(1))
	c := paused(t, strategy, 1)
	c.Scale(12)
	c.Pass()
	if got := c.Desired("v2"); got != 6 {
		t.Errorf("v2 is to have %d pods with half of the traffic of 12, want 6", got)
	}
	if got := c.Desired("v1"); got != 12 {
		t.Errorf("stable is to have %d pods, want 12", got)
	}
}
