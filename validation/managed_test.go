package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestManagedRoutes(t *testing.T) {
	exact := func(value string) *v1alpha1.StringMatch { return &v1alpha1.StringMatch{Exact: value} }
	headerStep := func(name string, match ...v1alpha1.HeaderRoutingMatch) v1alpha1.CanaryStep {
		return v1alpha1.CanaryStep{SetHeaderRoute: &v1alpha1.SetHeaderRoute{Name: name, Match: match}}
	}
	mirrorStep := func(percentage int32, match ...v1alpha1.RouteMatch) v1alpha1.CanaryStep {
		return v1alpha1.CanaryStep{SetMirrorRoute: &v1alpha1.SetMirrorRoute{Name: "shadow", Percentage: &percentage, Match: match}}
	}
	routing := func(max *int32, names ...string) *v1alpha1.RolloutTrafficRouting {
		tr := &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}, MaxTrafficWeight: max}
		for _, name := range names {
			tr.ManagedRoutes = append(tr.ManagedRoutes, v1alpha1.MangedRoutes{Name: name})
		}
		return tr
	}
	both := routing(nil, "testers", "shadow")
	setWeight := func(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }
	const step, tr = "spec.strategy.canary.steps[0].", "spec.strategy.canary.trafficRouting."
	cases := map[string]struct {
		routing *v1alpha1.RolloutTrafficRouting
		step    v1alpha1.CanaryStep
		want    []string // fields
	}{
		"header route":         {both, headerStep("testers", v1alpha1.HeaderRoutingMatch{HeaderName: "X-Tester", HeaderValue: exact("yes")}), nil},
		"removed header route": {both, headerStep("testers"), nil},
		"mirror":               {both, mirrorStep(0, v1alpha1.RouteMatch{Method: exact("GET"), Path: &v1alpha1.StringMatch{Prefix: "/a"}, Headers: map[string]v1alpha1.StringMatch{"x": {Regex: "a|b"}}}), nil},
		"mirror of everything": {both, mirrorStep(100, v1alpha1.RouteMatch{}), nil},
		"no router":            {nil, headerStep("testers"), []string{step + "setHeaderRoute"}},
		"a router that can't": {&v1alpha1.RolloutTrafficRouting{Nginx: &v1alpha1.NginxTrafficRouting{}, ManagedRoutes: both.ManagedRoutes}, mirrorStep(1, v1alpha1.RouteMatch{}),
			[]string{step + "setMirrorRoute"}},
		"not managed":      {routing(nil, "testers"), mirrorStep(1, v1alpha1.RouteMatch{}), []string{step + "setMirrorRoute.name"}},
		"managed twice":    {routing(nil, "a", "a", ""), setWeight(1), []string{tr + "managedRoutes[1].name", tr + "managedRoutes[2].name"}},
		"percentage over":  {both, mirrorStep(101, v1alpha1.RouteMatch{}), []string{step + "setMirrorRoute.percentage"}},
		"percentage under": {both, mirrorStep(-1, v1alpha1.RouteMatch{}), []string{step + "setMirrorRoute.percentage"}},
		"no value":         {both, headerStep("testers", v1alpha1.HeaderRoutingMatch{HeaderName: "x"}), []string{step + "setHeaderRoute.match[0].headerValue"}},
		"an empty value":   {both, headerStep("testers", v1alpha1.HeaderRoutingMatch{HeaderName: "x", HeaderValue: exact("")}), []string{step + "setHeaderRoute.match[0].headerValue"}},
		"two kinds":        {both, headerStep("testers", v1alpha1.HeaderRoutingMatch{HeaderName: "x", HeaderValue: &v1alpha1.StringMatch{Exact: "a", Regex: "b"}}), []string{step + "setHeaderRoute.match[0].headerValue"}},
		"a header twice": {both, headerStep("testers", v1alpha1.HeaderRoutingMatch{HeaderName: "x", HeaderValue: exact("1")}, v1alpha1.HeaderRoutingMatch{HeaderName: "X", HeaderValue: exact("2")}),
			[]string{step + "setHeaderRoute.match[1].headerName"}},
		"no header":            {both, headerStep("testers", v1alpha1.HeaderRoutingMatch{HeaderName: "a b", HeaderValue: exact("1")}), []string{step + "setHeaderRoute.match[0].headerName"}},
		"method by prefix":     {both, mirrorStep(1, v1alpha1.RouteMatch{Method: &v1alpha1.StringMatch{Prefix: "P"}}), []string{step + "setMirrorRoute.match[0].method"}},
		"method in small":      {both, mirrorStep(1, v1alpha1.RouteMatch{Method: exact("get")}), []string{step + "setMirrorRoute.match[0].method"}},
		"relative path":        {both, mirrorStep(1, v1alpha1.RouteMatch{Path: exact("a")}), []string{step + "setMirrorRoute.match[0].path.exact"}},
		"mirror header":        {both, mirrorStep(1, v1alpha1.RouteMatch{Headers: map[string]v1alpha1.StringMatch{"x": {}}}), []string{step + "setMirrorRoute.match[0].headers[x]"}},
		"maxTrafficWeight":     {routing(new(int32(1000))), setWeight(1000), nil},
		"more than the whole":  {routing(new(int32(1000))), setWeight(1001), []string{step + "setWeight"}},
		"maxTrafficWeight 0":   {routing(new(int32(0))), setWeight(0), []string{tr + "maxTrafficWeight"}},
		"maxTrafficWeight big": {routing(new(int32(1_000_001))), setWeight(0), []string{tr + "maxTrafficWeight"}},
		"a whole that the router hasn't": {&v1alpha1.RolloutTrafficRouting{SMI: &v1alpha1.SMITrafficRouting{}, MaxTrafficWeight: new(int32(10))}, setWeight(1),
			[]string{tr + "maxTrafficWeight"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range ManagedRoutes(v1alpha1.CanaryStrategy{TrafficRouting: tc.routing, Steps: []v1alpha1.CanaryStep{tc.step}}) {
				got = append(got, p.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
