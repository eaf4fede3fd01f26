package routers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var yes = TextMatch{Kind: MatchExact, Value: "yes"}

func toCanary(name string) ManagedRoute {
	return ManagedRoute{Name: name, Header: &HeaderRoute{Match: []HeaderMatch{{Name: "x", Value: yes}}}}
}

func mirrored(name string, percentage int32, match ...RequestMatch) ManagedRoute {
	return ManagedRoute{Name: name, Mirror: &MirrorRoute{Percentage: percentage, Match: match}}
}

func TestSplitCheck(t *testing.T) {
	with := func(routes ...ManagedRoute) Split { return Split{Stable: 100, Routes: routes} }
	cases := map[string]struct {
		split Split
		good  bool
	}{
		"weights":               {Split{Stable: 80, Canary: 20}, true},
		"of a thousand":         {Split{Stable: 999, Canary: 1, Max: 1000}, true},
		"not the whole":         {Split{Stable: 80, Canary: 21}, false},
		"not that whole":        {Split{Stable: 80, Canary: 20, Max: 1000}, false},
		"an extra Service":      {Split{Stable: 80, Canary: 20, Extras: []Extra{{Service: "x", Weight: 80}}}, true},
		"more than stable has":  {Split{Stable: 80, Canary: 20, Extras: []Extra{{Service: "x", Weight: 81}}}, false},
		"an extra twice":        {Split{Stable: 100, Extras: []Extra{{Service: "x", Weight: 1}, {Service: "x", Weight: 1}}}, false},
		"an extra of nothing":   {Split{Stable: 100, Extras: []Extra{{Service: "x"}}}, false},
		"negative":              {Split{Stable: 101, Canary: -1}, false},
		"both kinds of routes":  {with(toCanary("a"), mirrored("b", 0, RequestMatch{})), true},
		"nameless":              {with(toCanary("")), false},
		"twice":                 {with(toCanary("a"), mirrored("a", 0, RequestMatch{})), false},
		"neither kind":          {with(ManagedRoute{Name: "a"}), false},
		"both kinds at once":    {with(ManagedRoute{Name: "a", Header: toCanary("a").Header, Mirror: mirrored("a", 0, RequestMatch{}).Mirror}), false},
		"no header":             {with(ManagedRoute{Name: "a", Header: &HeaderRoute{}}), false},
		"a header without name": {with(ManagedRoute{Name: "a", Header: &HeaderRoute{Match: []HeaderMatch{{Value: yes}}}}), false},
		"an empty value":        {with(ManagedRoute{Name: "a", Header: &HeaderRoute{Match: []HeaderMatch{{Name: "x", Value: TextMatch{Kind: MatchRegex}}}}}), false},
		"no kind of value":      {with(mirrored("a", 0, RequestMatch{Path: &TextMatch{Value: "/"}})), false},
		"a bad mirror header":   {with(mirrored("a", 0, RequestMatch{Headers: []HeaderMatch{{Name: "x"}}})), false},
		"no match":              {with(mirrored("a", 0)), false},
		"percentage":            {with(mirrored("a", 101, RequestMatch{})), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.split.Check(); (err == nil) != tc.good {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	all := Split{Stable: 900, Canary: 100, Max: 1000, Routes: []ManagedRoute{toCanary("a"), mirrored("b", 1, RequestMatch{})}, Extras: []Extra{{Service: "x", Weight: 5}}}
	if diff := cmp.Diff(GatewayAPICan, all.Needs()); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	if err := Refuse("x", all, GatewayAPICan...); err != nil {
		t.Errorf("it can do all: %v", err)
	}
	var lack *UnsupportedError
	if err := Refuse("x", all, HeaderRoutes, AnyMaxWeight); !errors.As(err, &lack) || lack.Capability != MirrorRoutes || lack.Router != "x" {
		t.Errorf("got %v", err)
	}
	if err := Refuse("x", Split{Stable: 100, Max: 100}); err != nil {
		t.Errorf("two weights need nothing: %v", err)
	}
}

func TestSupportsAndWhole(t *testing.T) {
	gateway := &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}, MaxTrafficWeight: new(int32(1000))}
	if !Supports(gateway, MirrorRoutes) || Supports(&v1alpha1.RolloutTrafficRouting{SMI: &v1alpha1.SMITrafficRouting{}}, HeaderRoutes) || Supports(nil, HeaderRoutes) {
		t.Error("the wrong routers have capabilities")
	}
	if Whole(gateway) != 1000 || Whole(nil) != 100 || Whole(&v1alpha1.RolloutTrafficRouting{}) != 100 {
		t.Error("the wrong whole")
	}
}

func TestHasRoutes(t *testing.T) {
	a, b := toCanary("a"), toCanary("b")
	cases := map[string]struct {
		seen   Observed
		wanted []ManagedRoute
		want   bool
	}{
		"none":         {Observed{}, nil, true},
		"none, empty":  {Observed{}, []ManagedRoute{}, true},
		"these":        {Observed{Routes: []ManagedRoute{a, b}}, []ManagedRoute{a, b}, true},
		"other order":  {Observed{Routes: []ManagedRoute{b, a}}, []ManagedRoute{a, b}, false},
		"one missing":  {Observed{Routes: []ManagedRoute{a}}, []ManagedRoute{a, b}, false},
		"one left":     {Observed{Routes: []ManagedRoute{a}}, nil, false},
		"they differ":  {Observed{Routes: []ManagedRoute{a}, RoutesDiffer: true}, []ManagedRoute{a}, false},
		"stray rules":  {Observed{RoutesDiffer: true}, nil, false},
		"another kind": {Observed{Routes: []ManagedRoute{mirrored("a", 1, RequestMatch{})}}, []ManagedRoute{a}, false},
		"a percentage": {Observed{Routes: []ManagedRoute{mirrored("a", 1, RequestMatch{})}}, []ManagedRoute{mirrored("a", 2, RequestMatch{})}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.HasRoutes(tc.wanted); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
