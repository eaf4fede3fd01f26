package routers

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestGatewayAPI(t *testing.T) {
	plugin := func(settings string) *v1alpha1.RolloutTrafficRouting {
		return &v1alpha1.RolloutTrafficRouting{Plugins: map[string]runtime.RawExtension{GatewayAPIPlugin: {Raw: []byte(settings)}}}
	}
	ours := func(g v1alpha1.GatewayAPITrafficRouting) *v1alpha1.RolloutTrafficRouting {
		return &v1alpha1.RolloutTrafficRouting{GatewayAPI: &g}
	}
	routes := func(names ...string) *v1alpha1.GatewayAPITrafficRouting {
		out := &v1alpha1.GatewayAPITrafficRouting{}
		for _, name := range names {
			out.HTTPRoutes = append(out.HTTPRoutes, v1alpha1.GatewayAPIRoute{Name: name})
		}
		return out
	}
	both := plugin(`{"httpRoute":"a"}`)
	both.GatewayAPI = &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "a"}
	cases := map[string]struct {
		in    *v1alpha1.RolloutTrafficRouting
		want  *v1alpha1.GatewayAPITrafficRouting
		field string
	}{
		"no routing":            {in: nil},
		"another router":        {in: &v1alpha1.RolloutTrafficRouting{SMI: &v1alpha1.SMITrafficRouting{}}},
		"another plugin":        {in: &v1alpha1.RolloutTrafficRouting{Plugins: map[string]runtime.RawExtension{"acme/x": {}}}},
		"one route":             {in: ours(v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "a"}), want: routes("a")},
		"one and several":       {in: ours(v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "a", HTTPRoutes: routes("b", "c").HTTPRoutes}), want: routes("a", "b", "c")},
		"plugin, one route":     {in: plugin(`{"httpRoute":"a"}`), want: routes("a")},
		"plugin, several":       {in: plugin(`{"httpRoutes":[{"name":"a"},{"name":"b"}]}`), want: routes("a", "b")},
		"both":                  {in: both, field: "gatewayAPI"},
		"none named":            {in: ours(v1alpha1.GatewayAPITrafficRouting{}), field: "gatewayAPI"},
		"one named twice":       {in: ours(v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "a", HTTPRoutes: routes("b", "a").HTTPRoutes}), field: "gatewayAPI.httpRoutes[1].name"},
		"nameless":              {in: ours(*routes("a", "")), field: "gatewayAPI.httpRoutes[1].name"},
		"nameless rule":         {in: ours(v1alpha1.GatewayAPITrafficRouting{HTTPRoutes: []v1alpha1.GatewayAPIRoute{{Name: "a", RuleNames: []string{""}}}}), field: "gatewayAPI.httpRoutes[0].ruleNames[0]"},
		"rule named twice":      {in: ours(v1alpha1.GatewayAPITrafficRouting{HTTPRoutes: []v1alpha1.GatewayAPIRoute{{Name: "a", RuleNames: []string{"x", "x"}}}}), field: "gatewayAPI.httpRoutes[0].ruleNames[1]"},
		"plugin, unknown field": {in: plugin(`{"httpRoute":"a","grpcRoute":"b"}`), field: "plugins[argoproj-labs/gatewayAPI]"},
		"plugin, header routes": {in: plugin(`{"httpRoutes":[{"name":"a","useHeaderRoutes":true},{"name":"b"}]}`),
			want: &v1alpha1.GatewayAPITrafficRouting{HTTPRoutes: []v1alpha1.GatewayAPIRoute{{Name: "a", UseHeaderRoutes: true}, {Name: "b"}}}},
		"plugin, header routes of one": {in: plugin(`{"httpRoute":"a","useHeaderRoutes":true}`), field: "plugins[argoproj-labs/gatewayAPI]"},
		"plugin, no object":            {in: plugin(`"a"`), field: "plugins[argoproj-labs/gatewayAPI]"},
		"plugin, nothing":              {in: plugin(``), field: "plugins[argoproj-labs/gatewayAPI]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := GatewayAPI(tc.in)
			var config *ConfigError
			if errors.As(err, &config) != (tc.field != "") || (err != nil) != (tc.field != "") {
				t.Fatalf("error %v", err)
			}
			if config != nil && config.Field != tc.field {
				t.Errorf("field %q, want %q", config.Field, tc.field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceClaim(t *testing.T) {
	const hash = `"pushback.dev/template-hash"`
	cases := map[string]struct{ declared, live, want string }{
		"the live hash is carried over":     {`{"spec":{"selector":{"app":"web"},"ports":[1]}}`, `{"spec":{"selector":{"app":"old",` + hash + `:"abc"}}}`, `{"spec":{"selector":{"app":"web",` + hash + `:"abc"},"ports":[1]}}`},
		"no live hash":                      {`{"spec":{"selector":{"app":"web"}}}`, `{"spec":{"selector":{"app":"web"}}}`, `{"spec":{"selector":{"app":"web"}}}`},
		"no live Service":                   {`{"spec":{"selector":{"app":"web"}}}`, `null`, `{"spec":{"selector":{"app":"web"}}}`},
		"a hash in Git is dropped":          {`{"spec":{"selector":{"app":"web",` + hash + `:"old"}}}`, `null`, `{"spec":{"selector":{"app":"web"}}}`},
		"a hash in Git gives way":           {`{"spec":{"selector":{"app":"web",` + hash + `:"old"}}}`, `{"spec":{"selector":{` + hash + `:"abc"}}}`, `{"spec":{"selector":{"app":"web",` + hash + `:"abc"}}}`},
		"a Service without selector stays":  {`{"spec":{"ports":[]}}`, `{"spec":{"selector":{` + hash + `:"abc"}}}`, `{"spec":{"ports":[]}}`},
		"a Service without a spec stays":    {`{"kind":"Service"}`, `null`, `{"kind":"Service"}`},
		"an empty selector is not extended": {`{"spec":{"selector":{}}}`, `{"spec":{"selector":{` + hash + `:"abc"}}}`, `{"spec":{"selector":{}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := func(text string) (out map[string]any) {
				if err := json.Unmarshal([]byte(text), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			declared, live := read(tc.declared), read(tc.live)
			got, err := ServiceClaim("shop", "web-stable").Overlay(declared, live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(tc.want), got); diff != "" {
				t.Errorf("overlay (-want +got):\n%s", diff)
			}
			if !cmp.Equal(declared, read(tc.declared)) || !cmp.Equal(live, read(tc.live)) {
				t.Error("an argument was changed")
			}
		})
	}
}
