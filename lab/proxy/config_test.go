package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

func TestParseConfigRefuses(t *testing.T) {
	tests := map[string]struct{ text, says string }{
		"not json":       {`backends`, "invalid character"},
		"unknown field":  {`{"backend":[]}`, `"backend"`},
		"trailing":       {`{"backends":[{"url":"http://a"}]} x`, "after the JSON"},
		"nothing":        {`{}`, "no routes"},
		"both":           {`{"routes":[{"backends":[{"url":"http://a"}]}],"backends":[{"url":"http://a"}]}`, "both"},
		"no backends":    {`{"routes":[{"path":"/a"}]}`, "routes[0].backends: no backend"},
		"all 0":          {`{"backends":[{"url":"http://a","weight":0}]}`, "backends: no backend"},
		"negative":       {`{"backends":[{"url":"http://a","weight":-1},{"url":"http://b","weight":2}]}`, "0 or more"},
		"https":          {`{"backends":[{"url":"https://a"}]}`, "http://host:port"},
		"no url":         {`{"backends":[{"weight":1}]}`, "backends[0].url"},
		"path in url":    {`{"backends":[{"url":"http://a/b"}]}`, "http://host:port"},
		"relative route": {`{"routes":[{"path":"a","backends":[{"url":"http://a"}]}]}`, "must begin with /"},
		"fraction":       {`{"backends":[{"url":"http://a","weight":0.5}]}`, "weight"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig([]byte(tc.text))
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an ErrConfig with %q", err, tc.says)
			}
		})
	}
}

func TestAdminChangesTheSplit(t *testing.T) {
	stable, canary := version(t, "v1"), version(t, "v2")
	_, server := gatewayWith(t)
	config := func(stableWeight, canaryWeight int) string {
		return fmt.Sprintf(`{"backends":[{"name":"stable","url":"http://%s","weight":%d},{"name":"canary","url":"http://%s","weight":%d}]}`,
			stable, stableWeight, canary, canaryWeight)
	}
	count := func(header ...string) map[string]int {
		counts := map[string]int{}
		for range 20 {
			counts[get(t, server.URL, header...).version]++
		}
		return counts
	}
	if got := do(t, "POST", server.URL+"/admin/config", config(75, 25)); got.code != 200 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	if diff := cmp.Diff(map[string]int{"v1": 15, "v2": 5}, count()); diff != "" {
		t.Errorf("75/25 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"v2": 20}, count("X-Canary", "always")); diff != "" {
		t.Errorf("X-Canary: always (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"v1": 15, "v2": 5}, count("X-Canary", "never")); diff != "" {
		t.Errorf("X-Canary: never (-want +got):\n%s", diff)
	}
	if got := do(t, "PUT", server.URL+"/admin/config", config(1, 0)); got.code != 200 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	if got := do(t, "POST", server.URL+"/admin/config", config(-1, 0)); got.code != 400 {
		t.Errorf("a bad configuration: %d %s", got.code, got.body)
	}
	if diff := cmp.Diff(map[string]int{"v1": 20}, count()); diff != "" {
		t.Errorf("1/0 after a refused one (-want +got):\n%s", diff)
	}
	var shown state
	if err := json.Unmarshal([]byte(get(t, server.URL+"/admin/config").body), &shown); err != nil {
		t.Fatal(err)
	}
	want := state{Rules: []rule{{Name: "/", Matches: []string{"/*"}, Backends: []backend{
		{Name: "stable", Weight: 1, Endpoints: []string{stable}},
		{Name: "canary", Canary: true, Endpoints: []string{canary}},
	}}}}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("GET (-want +got):\n%s", diff)
	}
}

func TestAdminRefusesWhereAnHTTPRouteRules(t *testing.T) {
	g := NewGateway(nil, nil)
	if err := g.Serve(table.New(nil, nil)); err != nil {
		t.Fatal(err)
	}
	server := newAdminServer(t, g, "shop/web")
	got := do(t, "POST", server+"/admin/config", `{"backends":[{"url":"http://a"}]}`)
	if got.code != 409 || !strings.Contains(got.body, "shop/web") {
		t.Errorf("got %d %q", got.code, got.body)
	}
	if got := get(t, server+"/admin/config"); got.code != 200 || !strings.Contains(got.body, `"httpRoute": "shop/web"`) {
		t.Errorf("got %d %q", got.code, got.body)
	}
}
