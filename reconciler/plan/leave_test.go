package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func gone(c *plansim.Cluster) bool { return c.Gone }

// A Rollout that is deleted leaves its traffic on the stable version, with Services
// that select no version and no pod of another one.
func TestC112_ADeletedRolloutLeavesNothingBehind(t *testing.T) {
	cases := map[string]func(t *testing.T) *plansim.Cluster{
		"at rest": func(t *testing.T) *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), pause(0)))
			stableAt(t, c, "v1")
			return c
		},
		"in the middle of a canary": func(t *testing.T) *plansim.Cluster { return paused(t, withRouter(setWeight(25), pause(0)), 1) },
		"with a managed route":      func(t *testing.T) *plansim.Cluster { return testersAndShadow(t) },
		"with a small stable":       func(t *testing.T) *plansim.Cluster { return paused(t, dynamicScale(setWeight(75), pause(0)), 1) },
		"with ping-pong": func(t *testing.T) *plansim.Cluster {
			return paused(t, plansim.WithPingPong(withRouter(setWeight(50), pause(0))), 1)
		},
		"blue-green, before the switch": func(t *testing.T) *plansim.Cluster {
			c := blueGreen(byHand)
			stableAt(t, c, "v1")
			push(c, "v2")
			mustReach(t, c, 60, "the pause", phase(v1alpha1.RolloutPhasePaused))
			return c
		},
	}
	for name, begin := range cases {
		t.Run(name, func(t *testing.T) {
			c := begin(t)
			stable := c.Status.StableRS
			c.Run(60, nil)
			c.Delete()
			mustReach(t, c, 180, "gone", gone)
			if len(c.Violations) > 0 {
				t.Errorf("broke %v\n%s", c.Violations, transcript(c))
			}
			if c.AvailablePods(stable) != 4 {
				t.Errorf("%d pods of stable are left\n%s", c.AvailablePods(stable), transcript(c))
			}
		})
	}
}

// Where stable has no pod, the Services select whatever serves, and the pods that do stay.
func TestC112_ADeletedRolloutWhoseStableIsBroken(t *testing.T) {
	c := paused(t, withRouter(setWeight(25), pause(0)), 1)
	c.BreakPods("v1", 4)
	c.Run(5, nil)
	c.Delete()
	mustReach(t, c, 120, "gone", gone)
	if c.AvailablePods("v2") != 1 || c.Selects("stable") != "" || c.Selects("canary") != "" {
		t.Errorf("%d pods of v2, Services select %q and %q", c.AvailablePods("v2"), c.Selects("stable"), c.Selects("canary"))
	}
}

// A Rollout can be deleted at any moment, and a controller stop at any.
func TestDeletionEnds(t *testing.T) {
	for _, kind := range []string{"canary", "blue-green"} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				may := trouble{crashes: true, stale: true, badRuns: true, persons: true, router: true}
				var w *world
				if kind == "canary" {
					w = drawWorld(t, may, true)
				} else {
					w = drawBlueGreenWorld(t, may)
				}
				w.live(t, may, rapid.IntRange(3, 25).Draw(t, "rounds"))
				w.Delete()
				for range rapid.IntRange(0, 10).Draw(t, "passes") {
					w.Pass()
					w.Tick(rapid.IntRange(0, 3).Draw(t, "seconds"))
				}
				w.calm()
				if !w.Run(600, gone) {
					t.Fatalf("it is not gone\n%s", transcript(w.Cluster))
				}
				w.verify(t)
			})
		})
	}
}

// While traffic is given back, a person is heard or told why not.
func TestVerbsWhileTrafficIsGivenBack(t *testing.T) {
	c := paused(t, withRouter(setWeight(25), pause(0)), 1)
	in := observe(c)
	in.Leaving = &plan.Leaving{Objects: "HTTPRoute web"}
	in.Verbs = map[string]string{v1alpha1.PromoteAnnotation: "v2/1/go"}
	if p := plan.Decide(in); p.Status.Verbs["promote"].Token != "go" || p.Status.Verbs["promote"].Refused == "" {
		t.Errorf("promote is answered with %+v", p.Status.Verbs)
	}
	in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/1/stop"}
	if p := plan.Decide(in); !p.Status.Abort || p.Status.Verbs["abort"].Refused != "" || p.Split == nil || p.Split.Canary != 0 {
		t.Errorf("abort is answered with %+v, and the split is %+v", p.Status.Verbs, p.Split)
	}
}
