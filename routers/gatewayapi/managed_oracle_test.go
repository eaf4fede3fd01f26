package gatewayapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/httproute"
	"github.com/pushback-dev/pushback/lab/proxy/table"
	"github.com/pushback-dev/pushback/routers"
)

// tableOf compiles a route as the lab's gateway does, by the precedence of the
// Gateway API and without a line of this package.
func tableOf(t interface{ Fatal(...any) }, route map[string]any) *table.Table {
	text, err := json.Marshal(route)
	if err != nil {
		t.Fatal(err)
	}
	var typed gatewayv1.HTTPRoute
	if err := json.Unmarshal(text, &typed); err != nil {
		t.Fatal(err)
	}
	return httproute.Compile(&typed, httproute.Objects{}).Table
}

// drawn are the random parts of the property below.
type drawn struct{ *rapid.T }

func (d drawn) path(label string) string {
	return rapid.SampledFrom([]string{"", "/", "/a", "/a/b", "=/a", "=/a/b"}).Draw(d.T, label)
}

func (d drawn) headers(label string, most int) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"1", "2"}), 0, most).Draw(d.T, label)
}

// match of a rule.
func (d drawn) match() map[string]any {
	match := map[string]any{}
	if path := d.path("path"); path != "" {
		value, isExact := strings.CutPrefix(path, "=")
		match["path"] = map[string]any{"type": map[bool]string{true: exact, false: pathPrefix}[isExact], "value": value}
	}
	if rapid.IntRange(0, 2).Draw(d.T, "method") == 0 {
		match["method"] = "GET"
	}
	var headers []any
	for name, value := range d.headers("headers", 2) {
		headers = append(headers, map[string]any{"name": name, "value": value})
	}
	if headers != nil {
		match["headers"] = headers
	}
	if rapid.IntRange(0, 3).Draw(d.T, "query") == 0 {
		match["queryParams"] = []any{map[string]any{"name": "q", "value": "1"}}
	}
	return match
}

func (d drawn) managed(name string) routers.ManagedRoute {
	headers := func(least int) (out []routers.HeaderMatch) {
		for key, value := range d.headers("managed headers", 2) {
			out = append(out, routers.HeaderMatch{Name: key, Value: routers.TextMatch{Kind: routers.MatchExact, Value: value}})
		}
		if len(out) < least {
			out = append(out, routers.HeaderMatch{Name: "x", Value: routers.TextMatch{Kind: routers.MatchExact, Value: "1"}})
		}
		return out
	}
	if rapid.Bool().Draw(d.T, "header route") {
		return routers.ManagedRoute{Name: name, Header: &routers.HeaderRoute{Match: headers(1)}}
	}
	out := routers.ManagedRoute{Name: name, Mirror: &routers.MirrorRoute{Percentage: 10}}
	for range rapid.IntRange(1, 2).Draw(d.T, "mirror matches") {
		var match routers.RequestMatch
		if path := d.path("managed path"); path != "" {
			value, isExact := strings.CutPrefix(path, "=")
			match.Path = &routers.TextMatch{Kind: map[bool]routers.MatchKind{true: routers.MatchExact, false: routers.MatchPrefix}[isExact], Value: value}
		}
		if rapid.Bool().Draw(d.T, "managed method") {
			match.Method = &routers.TextMatch{Kind: routers.MatchExact, Value: "GET"}
		}
		match.Headers = headers(0)
		out.Mirror.Match = append(out.Mirror.Match, match)
	}
	return out
}

func (d drawn) request() table.Request {
	request := table.Request{
		Method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(d.T, "request method"),
		Path:   rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/c"}).Draw(d.T, "request path"),
		Header: map[string][]string{}, Query: map[string][]string{},
	}
	for name, value := range d.headers("request headers", 3) {
		request.Header[name] = []string{value}
	}
	if rapid.Bool().Draw(d.T, "request query") {
		request.Query["q"] = []string{"1"}
	}
	return request
}

// meets says whether a request meets a managed route, by a reading of its own.
func meets(r routers.ManagedRoute, request table.Request) bool {
	headers := func(list []routers.HeaderMatch) bool {
		for _, h := range list {
			if strings.Join(request.Header[h.Name], ",") != h.Value.Value {
				return false
			}
		}
		return true
	}
	if r.Header != nil {
		return headers(r.Header.Match)
	}
	for _, m := range r.Mirror.Match {
		path := m.Path == nil || m.Path.Value == request.Path ||
			m.Path.Kind == routers.MatchPrefix && strings.HasPrefix(request.Path+"/", strings.TrimSuffix(m.Path.Value, "/")+"/")
		if path && (m.Method == nil || m.Method.Value == request.Method) && headers(m.Headers) {
			return true
		}
	}
	return false
}

// Whatever rules there are and whatever is managed, in any order: a request goes
// where the first managed route that it meets says, if the rule that it met
// before names both Services, with the filters of that rule; and every other
// request meets the rule that it met before.
func TestPropertyManagedRoutesTakeTheirRequestsAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{t}
		var rules []any
		for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
			refs := []any{map[string]any{"name": "web-stable", "port": int64(80)}, map[string]any{"name": "web-canary", "port": int64(80), "weight": int64(0)}}
			if i > 0 && rapid.Bool().Draw(t, "of somebody else") {
				refs = []any{map[string]any{"name": "legacy", "port": int64(80)}}
			}
			var matches []any
			for range rapid.IntRange(1, 2).Draw(t, "matches") {
				matches = append(matches, d.match())
			}
			rules = append(rules, map[string]any{"matches": matches, "backendRefs": refs, "timeouts": map[string]any{"request": fmt.Sprintf("%ds", i+1)}})
		}
		route := map[string]any{"spec": map[string]any{"rules": rules}}
		var wanted []routers.ManagedRoute
		for i := range rapid.IntRange(1, 3).Draw(t, "managed") {
			wanted = append(wanted, d.managed(fmt.Sprint("r", i)))
		}
		before := tableOf(t, route)
		out, err := Render(route, webRoutes, routers.Split{Stable: 100, Routes: wanted})
		if err != nil {
			if !strings.Contains(err.Error(), "an HTTPRoute holds") {
				t.Fatal(err)
			}
			t.Skip("more than a route holds")
		}
		after := tableOf(t, out)
		for range 8 {
			request := d.request()
			old, found := before.Find(request)
			new, stillFound := after.Find(request)
			if found != stillFound {
				t.Fatalf("%+v: found before %v, after %v", request, found, stillFound)
			}
			if !found {
				continue
			}
			want, got := before.Rules()[old], after.Rules()[new]
			if want.Timeout != got.Timeout {
				t.Fatalf("%+v was served by rule %d, is by %s\n%s", request, old, got.Name, dump(t, out))
			}
			action := ""
			for _, r := range wanted {
				if action == "" && meets(r, request) && len(want.Backends) == 2 {
					action = r.Name
				}
			}
			if at := strings.Contains(got.Name, ".kept-"); action == "" && !at && strings.HasPrefix(got.Name, "pushback.") || action != "" && !strings.HasPrefix(got.Name, "pushback.web."+action+".") {
				// Two header routes do the same.
				other := strings.Split(got.Name, ".")
				if action != "" && len(other) == 4 && isHeader(wanted, action) && isHeader(wanted, other[2]) {
					continue
				}
				t.Fatalf("%+v of rule %d met %s, want managed route %q\n%s", request, old, got.Name, action, dump(t, out))
			}
		}
	})
}

func isHeader(all []routers.ManagedRoute, name string) bool {
	for _, r := range all {
		if r.Name == name {
			return r.Header != nil
		}
	}
	return false
}

// dump writes a route's rules, one match a line.
func dump(t interface{ Fatal(...any) }, route map[string]any) string {
	var out strings.Builder
	for _, rule := range tableOf(t, route).Rules() {
		fmt.Fprintf(&out, "%s (%s, %d backends)\n", rule.Name, rule.Timeout, len(rule.Backends))
		for _, match := range rule.Matches {
			fmt.Fprintf(&out, "    %s\n", match)
		}
	}
	return out.String()
}

// What is added is the same whatever was added before, and taking it away leaves
// the route as it was.
func TestPropertyManagedRoutesAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{t}
		route := load(panicker{}, "many-rules.in.yaml")
		first := routers.Split{Stable: 100, Routes: []routers.ManagedRoute{d.managed("a"), d.managed("b")}}
		next := routers.Split{Stable: 80, Canary: 20, Routes: []routers.ManagedRoute{d.managed("b")}}
		render := func(route map[string]any, s routers.Split) map[string]any {
			out, err := Render(route, webRoutes, s)
			if err != nil && !strings.Contains(err.Error(), "an HTTPRoute holds") && !strings.Contains(err.Error(), "replaces the prefix") {
				t.Fatal(err)
			}
			if err != nil {
				t.Skip("can't be carried out")
			}
			return out
		}
		with := render(route, first)
		if diff := cmp.Diff(render(route, next), render(with, next)); diff != "" {
			t.Fatalf("what was there before shows (-without +with):\n%s", diff)
		}
		plain := routers.Split{Stable: 100}
		if diff := cmp.Diff(render(render(route, split(20)), plain), render(render(with, next), plain)); diff != "" {
			t.Fatalf("left behind (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(route, render(with, plain)); diff != "" {
			t.Fatalf("something else was changed (-before +after):\n%s", diff)
		}
		seen, err := Read(with, webRoutes)
		if err != nil || !seen.HasRoutes(first.Routes) || seen.Canary != 0 {
			t.Fatalf("read %+v, %v", seen, err)
		}
	})
}

var webRoutes = Selection{Rollout: "web", Namespace: "shop", Stable: "web-stable", Canary: "web-canary"}

func request(method, path, header, value string) table.Request {
	return table.Request{Method: method, Path: path, Header: map[string][]string{header: {value}}}
}
