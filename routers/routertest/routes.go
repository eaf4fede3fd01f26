package routertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/routers"
)

func text(kind routers.MatchKind, value string) routers.TextMatch {
	return routers.TextMatch{Kind: kind, Value: value}
}

// testers is a header route by every kind of comparison.
func testers(value string) routers.ManagedRoute {
	return routers.ManagedRoute{Name: "testers", Header: &routers.HeaderRoute{Match: []routers.HeaderMatch{
		{Name: "x-tester", Value: text(routers.MatchExact, value)},
		{Name: "x-build", Value: text(routers.MatchPrefix, "v1.2+")},
		{Name: "user-agent", Value: text(routers.MatchRegex, ".*Firefox.*")},
	}}}
}

func shadow(percentage int32) routers.ManagedRoute {
	method := text(routers.MatchExact, "GET")
	return routers.ManagedRoute{Name: "Shadow of GET", Mirror: &routers.MirrorRoute{Percentage: percentage, Match: []routers.RequestMatch{{
		Method: &method, Headers: []routers.HeaderMatch{{Name: "x-shadow", Value: text(routers.MatchExact, "yes")}},
	}}}}
}

// routes are managed routes that the router can carry out.
func (tr *trial) routes() []routers.ManagedRoute {
	var out []routers.ManagedRoute
	if slices.Contains(tr.Can, routers.HeaderRoutes) {
		out = append(out, testers("yes"))
	}
	if slices.Contains(tr.Can, routers.MirrorRoutes) {
		out = append(out, shadow(25))
	}
	return out
}

// managed returns some routes, or skips the test of a router that knows none.
func (tr *trial) managed() []routers.ManagedRoute {
	tr.t.Helper()
	all := tr.routes()
	if len(all) == 0 {
		tr.t.Skip("this router has no managed routes")
	}
	return all
}

func (tr *trial) applyRoutes(canary int32, all []routers.ManagedRoute) {
	tr.t.Helper()
	s := split(canary)
	s.Routes = all
	if err := tr.router.Apply(tr.t.Context(), tr.target, s); err != nil {
		tr.t.Fatalf("applying %d with managed routes: %v", canary, err)
	}
}

func (tr *trial) expectRoutes(canary int32, all []routers.ManagedRoute) {
	tr.t.Helper()
	tr.expect(canary)
	seen, err := tr.router.Observe(tr.t.Context(), tr.target)
	if err != nil {
		tr.t.Fatal(err)
	}
	if !seen.HasRoutes(all) {
		tr.t.Fatalf("they differ %v (-want +seen):\n%s", seen.RoutesDiffer, cmp.Diff(all, seen.Routes))
	}
}

// foreignAll is what of all objects isn't the router's weights and selectors.
func (tr *trial) foreignAll() map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, object := range tr.declared {
		out[object.GetKind()+" "+object.GetName()] = tr.foreign(tr.live(object).Object)
	}
	return out
}

func managedRoutesAreASet(t *testing.T, tr *trial) {
	all := tr.managed()
	without := tr.foreignAll()
	var first map[string]map[string]any
	for range 5 { // each is a commit in the middle of the one before
		tr.applyRoutes(0, all)
		tr.expectRoutes(0, all)
		before := tr.versions()
		tr.applyRoutes(0, all)
		tr.unchanged(before)
		if first == nil {
			first = tr.foreignAll()
		}
		if diff := cmp.Diff(first, tr.foreignAll()); diff != "" {
			t.Fatalf("another round left more (-first +this):\n%s", diff)
		}
		tr.applyRoutes(20, all[:1])
		tr.expectRoutes(20, all[:1])
	}
	tr.applyRoutes(0, nil)
	tr.expectRoutes(0, nil)
	if diff := cmp.Diff(without, tr.foreignAll()); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
}

func managedRouteIsReplaced(_ *testing.T, tr *trial) {
	if !slices.Contains(tr.Can, routers.HeaderRoutes) {
		tr.t.Skip("this router has no header routes")
	}
	for _, value := range []string{"yes", "no"} {
		all := []routers.ManagedRoute{testers(value)}
		tr.applyRoutes(0, all)
		tr.expectRoutes(0, all)
	}
}

func weightsLeaveManagedRoutes(t *testing.T, tr *trial) {
	all := tr.managed()
	tr.applyRoutes(0, all)
	want := tr.foreignAll()
	for _, canary := range walk {
		tr.applyRoutes(canary, all)
		tr.expectRoutes(canary, all)
		if diff := cmp.Diff(want, tr.foreignAll()); diff != "" {
			t.Errorf("a weight of %d touched more than weights (-before +after):\n%s", canary, diff)
		}
	}
}

func releaseRemovesManagedRoutes(t *testing.T, tr *trial) {
	all := tr.managed()
	want := tr.foreignAll()
	tr.applyRoutes(50, all)
	if err := tr.router.Release(t.Context(), tr.target); err != nil {
		t.Fatalf("releasing: %v", err)
	}
	tr.expectRoutes(0, nil)
	if diff := cmp.Diff(want, tr.foreignAll()); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
}

// A sync of an edited object keeps the edit and the managed routes, which follow
// it: nothing is left to be written.
func overlayKeepsManagedRoutes(t *testing.T, tr *trial) {
	all := tr.managed()
	tr.applyRoutes(25, all)
	for _, object := range tr.declared {
		declared := object.DeepCopy().Object
		if object == tr.declared[0] {
			tr.Edit(declared)
		}
		live := tr.live(object)
		merged := tr.overlay(declared, live.Object)
		if diff := cmp.Diff(merged, tr.overlay(merged, live.Object)); diff != "" {
			t.Errorf("%s: a second overlay differs:\n%s", object.GetName(), diff)
		}
		tr.replaceKeeping(live, merged)
	}
	tr.expectRoutes(25, all)
	before := tr.versions()
	tr.applyRoutes(25, all)
	tr.unchanged(before)

	tr.applyRoutes(25, nil)
	want := tr.declared[0].DeepCopy().Object
	tr.Edit(want)
	tr.Strip(want)
	got := tr.live(tr.declared[0]).Object
	tr.Strip(got)
	if diff := cmp.Diff(want["spec"], got["spec"]); diff != "" {
		t.Errorf("the edit was lost or something was left (-want +got):\n%s", diff)
	}
}

// What an edit of the live object does to managed routes is seen, and put right.
func editOfALiveObjectIsPutRight(t *testing.T, tr *trial) {
	all := tr.managed()
	tr.applyRoutes(25, all)
	live := tr.live(tr.declared[0])
	tr.Edit(live.Object)
	if err := tr.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	seen, err := tr.router.Observe(t.Context(), tr.target)
	if err != nil {
		t.Fatal(err)
	}
	if !seen.RoutesDiffer {
		t.Fatal("a copy of a rule that has changed since is taken for right")
	}
	tr.applyRoutes(25, all)
	tr.expectRoutes(25, all)
}

// A router says by a typed error what it can't do, and does nothing then.
func lacksAreNamed(t *testing.T, tr *trial) {
	with := func(route routers.ManagedRoute) routers.Split {
		return routers.Split{Stable: 75, Canary: 25, Routes: []routers.ManagedRoute{route}}
	}
	needing := map[routers.Capability]routers.Split{
		routers.HeaderRoutes: with(testers("yes")),
		routers.MirrorRoutes: with(shadow(25)),
		routers.AnyMaxWeight: {Stable: 875, Canary: 125, Max: 1000},
	}
	tr.apply(0)
	for capability, s := range needing {
		if slices.Contains(tr.Can, capability) {
			continue
		}
		before := tr.versions()
		var lack *routers.UnsupportedError
		if err := tr.router.Apply(t.Context(), tr.target, s); !errors.As(err, &lack) || lack.Capability != capability || lack.Router == "" {
			t.Errorf("%s: want an UnsupportedError that names it and the router, got %v", capability, err)
		}
		tr.unchanged(before)
	}
}

func weightsOfAnotherWhole(t *testing.T, tr *trial) {
	if !slices.Contains(tr.Can, routers.AnyMaxWeight) {
		t.Skip("this router has a whole of 100")
	}
	whole := int32(1000)
	tr.target.Routing.MaxTrafficWeight = &whole
	for _, canary := range []int32{0, 250, 500, 750, 1000, 0} {
		if err := tr.router.Apply(t.Context(), tr.target, routers.Split{Stable: whole - canary, Canary: canary, Max: whole}); err != nil {
			t.Fatal(err)
		}
		seen, err := tr.router.Observe(t.Context(), tr.target)
		if err != nil || seen.Canary != canary || seen.Stable != whole-canary || seen.Max != whole || !seen.Uniform {
			t.Fatalf("asked for %d of %d, saw %+v, %v", canary, whole, seen, err)
		}
	}
	if err := tr.router.Apply(t.Context(), tr.target, routers.Split{Stable: 500, Canary: 500, Max: whole}); err != nil {
		t.Fatal(err)
	}
	if err := tr.router.Release(t.Context(), tr.target); err != nil {
		t.Fatal(err)
	}
	if seen, err := tr.router.Observe(t.Context(), tr.target); err != nil || seen.Canary != 0 || !seen.Uniform {
		t.Errorf("after the release: %+v, %v", seen, err)
	}
}
