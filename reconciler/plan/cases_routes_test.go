package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func routeNames(c *plansim.Cluster) []string {
	var out []string
	for _, route := range c.Routes() {
		out = append(out, route.Name)
	}
	return out
}

// testersAndShadow is paused with both kinds of managed routes at weight 0.
func testersAndShadow(t *testing.T) *plansim.Cluster {
	t.Helper()
	strategy := withRouter(mirrorRoute("shadow", "a"), headerRoute("testers", "yes"), pause(0), setWeight(50), pause(0))
	strategy.TrafficRouting = managed("testers", "shadow")
	return paused(t, strategy, 2)
}

// A managed route stays as it is while weights move beside it.
func TestC07_WeightsLeaveManagedRoutesAlone(t *testing.T) {
	c := testersAndShadow(t)
	before := slices.Clone(c.Routes())
	if diff := cmp.Diff([]string{"testers", "shadow"}, routeNames(c)); diff != "" {
		t.Fatalf("at weight 0 (-want +got):\n%s", diff)
	}
	c.Send(v1alpha1.PromoteAnnotation, "on")
	mustReach(t, c, 60, "weight 50", pausedAt("v2", 4))
	if diff := cmp.Diff(before, c.Routes()); diff != "" || c.Weight() != 50 {
		t.Errorf("at weight %d (-before +after):\n%s", c.Weight(), diff)
	}
}

// A new commit takes the managed routes away before its version gets any, however
// often it happens; and there is each route once.
func TestC26_ANewCommitRemovesManagedRoutesFirst(t *testing.T) {
	c := testersAndShadow(t)
	for i, hash := range []string{"v3", "v4", "v3", "v4", "v2"} {
		push(c, hash)
		gone := false
		mustReach(t, c, 120, "the pause of "+hash, func(c *plansim.Cluster) bool {
			gone = gone || len(c.Routes()) == 0
			return pausedAt(hash, 2)(c)
		})
		if diff := cmp.Diff([]string{"testers", "shadow"}, routeNames(c)); diff != "" || !gone {
			t.Fatalf("round %d, gone in between %v (-want +got):\n%s", i, gone, diff)
		}
		if c.Selects("canary") != hash {
			t.Fatalf("round %d: the routes lead to %s", i, c.Selects("canary"))
		}
	}
	c.Send(v1alpha1.PromoteFullAnnotation, "all")
	mustReach(t, c, 120, "Healthy", healthyOn("v2"))
	c.Run(60, nil)
	if len(c.Routes()) != 0 {
		t.Errorf("%v left in the end", routeNames(c))
	}
}

// Law 1: at weight 0 a managed route still needs a pod.
func TestC86_AManagedRouteAtWeightZeroHasAPod(t *testing.T) {
	c := cluster(v1alpha1.CanaryStrategy{Steps: []v1alpha1.CanaryStep{headerRoute("testers", "yes"), pause(0)}, TrafficRouting: managed("testers")})
	c.Behaviours["v2"] = plansim.Behaviour{Never: true}
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Run(60, nil)
	if len(c.Routes()) != 0 || c.Pods("v2") != 1 || !atStep("v2", 0)(c) {
		t.Fatalf("routes %v with %d pods that aren't available at step %d", routeNames(c), c.Pods("v2"), *c.Status.CurrentStepIndex)
	}
	c.Behaviours["v2"] = plansim.Behaviour{}
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
	if diff := cmp.Diff([]string{"testers"}, routeNames(c)); diff != "" || c.Weight() != 0 || c.Pods("v2") != 1 {
		t.Errorf("weight %d, %d pods, routes (-want +got):\n%s", c.Weight(), c.Pods("v2"), diff)
	}
}

// Law 2: pods stay while a managed route leads to them; law 4: an abort takes it
// away in its first write.
func TestLaw2_AManagedRouteIsTraffic(t *testing.T) {
	c := testersAndShadow(t)
	c.RevertAfter = 0
	c.RefuseWeights = true
	c.Send(v1alpha1.AbortAnnotation, "stop")
	p := c.Pass()
	if p.Split == nil || len(p.Split.Routes) != 0 || p.Split.Canary != 0 {
		t.Fatalf("the abort writes %+v", p.Split)
	}
	c.Run(300, nil)
	if c.Pods("v2") != 1 || c.Selects("canary") != "v2" {
		t.Fatalf("%d pods of v2 and the canary Service on %s while routes lead to it", c.Pods("v2"), c.Selects("canary"))
	}
	c.RefuseWeights = false
	mustReach(t, c, 60, "the end of v2's pods", func(c *plansim.Cluster) bool { return c.Pods("v2") == 0 })
	if len(c.Routes()) != 0 || c.Selects("canary") != "v1" {
		t.Errorf("routes %v, canary Service on %s", routeNames(c), c.Selects("canary"))
	}
}

func TestManagedRoutesComeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*plansim.Cluster)
		want    []string
	}{
		"an edit of the rule":            {func(c *plansim.Cluster) { c.EditRoutes() }, []string{"testers", "shadow"}},
		"an edit under a person's pause": {func(c *plansim.Cluster) { c.Send(v1alpha1.PauseAnnotation, "p"); c.Run(5, nil); c.EditRoutes() }, []string{"testers", "shadow"}},
		"the status is lost":             {func(c *plansim.Cluster) { c.LoseStatus(); mustReach(t, c, 60, "the pause", pausedAt("v2", 2)) }, []string{"testers", "shadow"}},
		"a scaler asks for nothing":      {func(c *plansim.Cluster) { c.Scale(0); c.Run(30, nil) }, nil},
		"and for something again":        {func(c *plansim.Cluster) { c.Scale(0); c.Run(30, nil); c.Scale(3) }, []string{"testers", "shadow"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := testersAndShadow(t)
			tc.happens(c)
			c.Run(30, nil)
			noViolations(t, c)
			in, _ := c.Observe()
			if diff := cmp.Diff(tc.want, routeNames(c)); diff != "" || in.Routing.RoutesDiffer {
				t.Errorf("edited %v, routes (-want +got):\n%s\n%s", in.Routing.RoutesDiffer, diff, transcript(c))
			}
		})
	}
}

// An edit of maxTrafficWeight makes every weight another share: the steps begin
// anew, and what the version has is rewritten as the same share of the new whole.
func TestMaxTrafficWeightEdited(t *testing.T) {
	strategy := withRouter(setWeight(50), pause(0))
	c := paused(t, strategy, 1)
	in, _ := c.Observe()
	edited := in.Spec.Strategy.Canary.DeepCopy()
	edited.TrafficRouting = managed()
	edited.TrafficRouting.MaxTrafficWeight = ptr(int32(1000))
	in.Spec.Strategy.Canary = edited
	in.Routing.Canary, in.Routing.Stable, in.Routing.Max = 500, 500, 1000 // as the router reads it now
	p := plan.Decide(in)
	if p.Status.Attempt != in.Status.Attempt+1 || *p.Status.CurrentStepIndex != 0 {
		t.Errorf("attempt %d at step %d", p.Status.Attempt, *p.Status.CurrentStepIndex)
	}
	if p.Split == nil || p.Split.Canary != 50 || p.Split.Stable != 950 || p.Split.Max != 1000 {
		t.Errorf("split %+v, want 50 of 1000", p.Split)
	}
	if w := p.Status.Canary.Weights; w.Canary.Weight != 50 || w.Stable.Weight != 950 || w.Since != nil {
		t.Errorf("remembers %+v", w)
	}
}

// The clock of a weight starts again when a managed route is written beside it: the
// pods that the route led to are not free before the router has had its time.
func TestARemovedRouteKeepsThePodsForAWhile(t *testing.T) {
	strategy := withRouter(headerRoute("testers", "yes"), headerRoute("testers", ""), scaleTo(0), pause(0))
	strategy.TrafficRouting = managed("testers")
	c := cluster(strategy)
	c.Verifies = false
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 60, "the route", func(c *plansim.Cluster) bool { return len(c.Routes()) == 1 })
	mustReach(t, c, 60, "no route", func(c *plansim.Cluster) bool { return len(c.Routes()) == 0 })
	removed := c.Now
	mustReach(t, c, 120, "no pod", func(c *plansim.Cluster) bool { return c.Desired("v2") == 0 })
	if kept := c.Now.Sub(removed); kept < 30*time.Second {
		t.Errorf("the pods went %s after the route, want scaleDownDelaySeconds where the router can't verify", kept)
	}
	if len(c.Violations) > 0 {
		t.Error(c.Violations)
	}
}

// The same managed route, left from the version before, is not the new one's: its
// step is done when the route leads to it.
func TestARouteToAnotherVersionIsNoStep(t *testing.T) {
	strategy := withRouter(headerRoute("testers", "yes"), pause(0))
	strategy.TrafficRouting = managed("testers")
	c := paused(t, strategy, 1)
	push(c, "v3")
	mustReach(t, c, 60, "the pause", pausedAt("v3", 1))
	push(c, "v2") // whose pods are still there
	c.RefuseWeights = true
	for range 20 {
		c.Pass()
		if c.Status.CurrentPodHash == "v2" && *c.Status.CurrentStepIndex > 0 && c.Selects("canary") != "v2" {
			t.Fatalf("at step %s, and the route leads to %s\n%s", c.Status.Step, c.Selects("canary"), transcript(c))
		}
		c.Tick(1)
	}
	c.RefuseWeights = false
	mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
}
