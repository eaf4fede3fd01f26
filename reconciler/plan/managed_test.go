package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

func TestManagedRoutes(t *testing.T) {
	exact := func(value string) *v1alpha1.StringMatch { return &v1alpha1.StringMatch{Exact: value} }
	header := func(name string, values ...string) v1alpha1.CanaryStep {
		step := v1alpha1.CanaryStep{SetHeaderRoute: &v1alpha1.SetHeaderRoute{Name: name}}
		for _, value := range values {
			step.SetHeaderRoute.Match = append(step.SetHeaderRoute.Match, v1alpha1.HeaderRoutingMatch{HeaderName: "x", HeaderValue: exact(value)})
		}
		return step
	}
	mirror := func(name string, percentage *int32, match ...v1alpha1.RouteMatch) v1alpha1.CanaryStep {
		return v1alpha1.CanaryStep{SetMirrorRoute: &v1alpha1.SetMirrorRoute{Name: name, Percentage: percentage, Match: match}}
	}
	weight := func(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }
	toCanary := func(name, value string) routers.ManagedRoute {
		return routers.ManagedRoute{Name: name, Header: &routers.HeaderRoute{Match: []routers.HeaderMatch{{Name: "x", Value: routers.TextMatch{Kind: routers.MatchExact, Value: value}}}}}
	}
	mirrored := func(name string, percentage int32, match ...routers.RequestMatch) routers.ManagedRoute {
		return routers.ManagedRoute{Name: name, Mirror: &routers.MirrorRoute{Percentage: percentage, Match: match}}
	}
	rich := v1alpha1.RouteMatch{
		Method: exact("GET"), Path: &v1alpha1.StringMatch{Prefix: "/a"},
		Headers: map[string]v1alpha1.StringMatch{"z": {Regex: "1|2"}, "a": {Prefix: "b"}},
	}
	richWant := routers.RequestMatch{
		Method: &routers.TextMatch{Kind: routers.MatchExact, Value: "GET"}, Path: &routers.TextMatch{Kind: routers.MatchPrefix, Value: "/a"},
		Headers: []routers.HeaderMatch{
			{Name: "a", Value: routers.TextMatch{Kind: routers.MatchPrefix, Value: "b"}},
			{Name: "z", Value: routers.TextMatch{Kind: routers.MatchRegex, Value: "1|2"}},
		},
	}
	cases := map[string]struct {
		steps []v1alpha1.CanaryStep
		index int32
		want  []routers.ManagedRoute
	}{
		"no steps":                              {nil, 0, nil},
		"a step that isn't reached":             {[]v1alpha1.CanaryStep{weight(1), header("one", "a")}, 0, nil},
		"at its step":                           {[]v1alpha1.CanaryStep{weight(1), header("one", "a")}, 1, []routers.ManagedRoute{toCanary("one", "a")}},
		"steps later":                           {[]v1alpha1.CanaryStep{header("one", "a"), weight(20), weight(50)}, 2, []routers.ManagedRoute{toCanary("one", "a")}},
		"after the last step":                   {[]v1alpha1.CanaryStep{header("one", "a"), mirror("two", nil, rich), weight(20)}, 3, []routers.ManagedRoute{toCanary("one", "a")}},
		"before the first step":                 {[]v1alpha1.CanaryStep{header("one", "a")}, -1, nil},
		"a later one replaces":                  {[]v1alpha1.CanaryStep{header("one", "a"), header("one", "b")}, 1, []routers.ManagedRoute{toCanary("one", "b")}},
		"a later one of the other kind":         {[]v1alpha1.CanaryStep{header("one", "a"), mirror("one", new(int32(5)), v1alpha1.RouteMatch{})}, 1, []routers.ManagedRoute{mirrored("one", 5, routers.RequestMatch{})}},
		"no match removes":                      {[]v1alpha1.CanaryStep{header("one", "a"), header("two", "b"), header("one"), weight(1)}, 3, []routers.ManagedRoute{toCanary("two", "b")}},
		"no match removes a mirror":             {[]v1alpha1.CanaryStep{mirror("one", nil, v1alpha1.RouteMatch{}), mirror("one", nil), weight(1)}, 1, nil},
		"removed and back":                      {[]v1alpha1.CanaryStep{header("one", "a"), header("one"), header("one", "b"), weight(1)}, 2, []routers.ManagedRoute{toCanary("one", "b")}},
		"in the order of managedRoutes":         {[]v1alpha1.CanaryStep{mirror("two", nil, rich), header("one", "a"), weight(1)}, 2, []routers.ManagedRoute{toCanary("one", "a"), mirrored("two", 100, richWant)}},
		"percentage 0 is a mirror all the same": {[]v1alpha1.CanaryStep{mirror("one", new(int32(0)), v1alpha1.RouteMatch{}), weight(1)}, 1, []routers.ManagedRoute{mirrored("one", 0, routers.RequestMatch{})}},
		"a name that isn't managed":             {[]v1alpha1.CanaryStep{header("three", "a"), weight(1)}, 1, nil},
	}
	tr := &v1alpha1.RolloutTrafficRouting{ManagedRoutes: []v1alpha1.MangedRoutes{{Name: "one"}, {Name: "two"}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := managedRoutes(tc.steps, tc.index, tr)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := (routers.Split{Stable: 100, Routes: got}).Check(); err != nil {
				t.Errorf("no router could carry them out: %v", err)
			}
			if other := managedRoutes(tc.steps, tc.index, nil); other != nil {
				t.Errorf("without a router: %v", other)
			}
		})
	}
}
