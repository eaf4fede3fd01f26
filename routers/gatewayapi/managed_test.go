package gatewayapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/routers"
)

func is(kind routers.MatchKind, value string) routers.TextMatch {
	return routers.TextMatch{Kind: kind, Value: value}
}

func header(name string, kind routers.MatchKind, value string) routers.HeaderMatch {
	return routers.HeaderMatch{Name: name, Value: is(kind, value)}
}

// toCanary is a header route.
func toCanary(name string, match ...routers.HeaderMatch) routers.ManagedRoute {
	return routers.ManagedRoute{Name: name, Header: &routers.HeaderRoute{Match: match}}
}

// mirrored is a mirror of the requests with a method and below a path; empty for any.
func mirrored(name string, percentage int32, method, path string, headers ...routers.HeaderMatch) routers.ManagedRoute {
	match := routers.RequestMatch{Headers: headers}
	if method != "" {
		match.Method = &routers.TextMatch{Kind: routers.MatchExact, Value: method}
	}
	if path != "" {
		match.Path = &routers.TextMatch{Kind: routers.MatchPrefix, Value: path}
	}
	return routers.ManagedRoute{Name: name, Mirror: &routers.MirrorRoute{Percentage: percentage, Match: []routers.RequestMatch{match}}}
}

var tester = header("x-tester", routers.MatchExact, "yes")

func with(canary int32, all ...routers.ManagedRoute) routers.Split {
	s := split(canary)
	s.Routes = all
	return s
}

func must(t *testing.T, route map[string]any, s routers.Split) map[string]any {
	t.Helper()
	out, err := Render(route, webRoutes, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ours are the managed rules of a route.
func ours(route map[string]any) (out []any) {
	for _, rule := range rulesOf(route) {
		if marked(rule, webRoutes) {
			out = append(out, rule)
		}
	}
	return out
}

const rich = `
metadata: {name: web, namespace: shop}
spec:
  rules:
  - name: main
    matches: [{path: {type: PathPrefix, value: /api}, queryParams: [{name: v, type: Exact, value: "2"}], futureMatch: 1}]
    timeouts: {request: 5s}
    retry: {attempts: 3}
    sessionPersistence: {sessionName: s}
    futureField: {keep: [1, 2.5]}
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier: {set: [{name: x-env, value: prod}]}
    backendRefs:
    - {group: "", kind: Service, name: web-stable, port: 80, weight: 60, filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: stable}}]}
    - {group: "", kind: Service, name: web-canary, port: 81, weight: 0, filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: canary}}], futureRef: x}
    - {name: legacy, port: 8080, weight: 40}
`

const richRest = `
  timeouts: {request: 5s}
  retry: {attempts: 3}
  sessionPersistence: {sessionName: s}
  futureField: {keep: [1, 2.5]}
`

const envFilter = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-env, value: prod}]}}"

// A managed rule is its base rule with all that is in it, known or not.
func TestManagedRuleIsACopyOfItsBase(t *testing.T) {
	match := func(more string) string {
		return "{path: {type: PathPrefix, value: /api}, queryParams: [{name: v, type: Exact, value: '2'}], futureMatch: 1, " + more + "}"
	}
	canary := "{group: '', kind: Service, name: web-canary, port: 81, weight: 1, filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: canary}}], futureRef: x}"
	stable := "{group: '', kind: Service, name: web-stable, port: 80, weight: 60, filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: stable}}]}"
	mirror := "{type: RequestMirror, requestMirror: {backendRef: {group: '', kind: Service, name: web-canary, port: 81}, percent: 25}}"
	cases := map[string]struct {
		wanted routers.ManagedRoute
		want   string
	}{
		"exact header": {toCanary("testers", tester),
			"- name: pushback.web.testers.1\n  matches: [" + match("headers: [{name: x-tester, type: Exact, value: 'yes'}]") + "]\n  filters: [" + envFilter + "]\n  backendRefs: [" + canary + "]" + richRest},
		"prefix and regex": {toCanary("testers", header("x-build", routers.MatchPrefix, "v1.2+(a)"), header("x-user", routers.MatchRegex, "a|b")),
			"- name: pushback.web.testers.1\n  matches: [" + match(`headers: [{name: x-build, type: RegularExpression, value: '^v1\.2\+\(a\).*$'}, {name: x-user, type: RegularExpression, value: 'a|b'}]`) +
				"]\n  filters: [" + envFilter + "]\n  backendRefs: [" + canary + "]" + richRest},
		"mirror beside others": {mirrored("shadow", 25, "GET", "/api/v2"),
			"- name: pushback.web.shadow.1\n  matches: [" + strings.Replace(match("method: GET"), "/api", "/api/v2", 1) + "]\n  filters: [" + envFilter + ", " + mirror + "]\n  backendRefs: [" + stable + ", {name: legacy, port: 8080, weight: 40}]" + richRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			route := parse(t, rich)
			out := must(t, route, with(0, tc.wanted))
			want := parse(t, "rules:\n"+tc.want)["rules"]
			if diff := cmp.Diff(want, any(ours(out))); diff != "" {
				t.Errorf("managed rules (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parse(t, rich), route); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
			takeOut(out, webRoutes)
			if diff := cmp.Diff(route["spec"], out["spec"]); diff != "" {
				t.Errorf("the rules that were there were changed:\n%s", diff)
			}
		})
	}
}

const plainRules = "metadata: {name: web, namespace: shop}\nspec: {rules: [{backendRefs: [{name: web-stable, port: 80, weight: 100}, {name: web-canary, port: 80, weight: 0}]}]}"

// A weight never shows in a managed rule, not even in a mirror, whose requests
// are answered by stable alone.
func TestC07_SetWeightNeverTouchesAManagedRoute(t *testing.T) {
	for name, text := range map[string]string{"alone": plainRules, "beside others": rich} {
		t.Run(name, func(t *testing.T) {
			route := parse(t, text)
			all := []routers.ManagedRoute{toCanary("testers", tester), mirrored("shadow", 10, "GET", "")}
			want := ours(must(t, route, with(0, all...)))
			if len(want) != 2 {
				t.Fatalf("%d managed rules", len(want))
			}
			for _, canary := range []int32{20, 50, 100, 0} {
				route = must(t, route, with(canary, all...))
				if diff := cmp.Diff(want, ours(route)); diff != "" {
					t.Errorf("at %d (-want +got):\n%s", canary, diff)
				}
				if seen, err := Read(route, webRoutes); err != nil || seen.Canary != canary || !seen.Uniform || !seen.HasRoutes(all) {
					t.Errorf("at %d: read %+v, %v", canary, seen, err)
				}
			}
		})
	}
}

// A header route while the canary has weight 0 sends it requests: its one
// backend has a weight of 1, and no managed rule is without weight.
func TestC86_ManagedRuleAtWeightZeroCanAnswer(t *testing.T) {
	for _, text := range []string{plainRules, rich, strings.Replace(plainRules, "weight: 100", "weight: 0", 1)} {
		out := must(t, parse(t, text), with(0, toCanary("testers", tester), mirrored("shadow", 0, "", "")))
		for _, rule := range ours(out) {
			if total := sum(mapsIn(rule.(map[string]any)["backendRefs"])); total <= 0 {
				t.Errorf("no weight in %v", rule)
			}
		}
		refs := mapsIn(ours(out)[0].(map[string]any)["backendRefs"])
		if len(refs) != 1 || refs[0]["name"] != "web-canary" || refs[0]["weight"] != int64(1) {
			t.Errorf("backends of the header route: %v", refs)
		}
	}
}

// A commit in the middle of a header route, five times; with a rule of the user's
// that matches a header already.
func TestC26_ManagedRulesDoNotPileUp(t *testing.T) {
	route := load(t, "many-rules.in.yaml")
	before := rulesOf(load(t, "many-rules.in.yaml"))
	for range 5 {
		route = must(t, route, with(0, toCanary("testers", tester)))
		if n := len(ours(route)); n != 3 { // one for each rule that names both
			t.Fatalf("%d managed rules for 3 rules", n)
		}
		route = must(t, route, with(0))
		if diff := cmp.Diff(before, rulesOf(route)); diff != "" {
			t.Fatalf("left behind (-before +after):\n%s", diff)
		}
	}
}

// Of three, the first and then the last is taken away: what is left stays as it was,
// wherever it stands by then, and to take away what isn't there is no change.
func TestC110_ManagedRulesAreRemovedByName(t *testing.T) {
	all := []routers.ManagedRoute{toCanary("a", tester), toCanary("b", header("x-b", routers.MatchExact, "1")), toCanary("c", header("x-c", routers.MatchExact, "1"))}
	before := rulesOf(parse(t, plainRules))
	route := must(t, parse(t, plainRules), with(0, all...))
	kept := ours(route)
	each := len(kept) / len(all)
	route = must(t, route, with(0, all[1:]...))
	route = must(t, route, with(0, all[1]))
	if diff := cmp.Diff(kept[each:2*each], ours(route)); diff != "" || each == 0 {
		t.Errorf("what was kept (-before +after):\n%s", diff)
	}
	for range 2 {
		route = must(t, route, with(0))
		if diff := cmp.Diff(before, rulesOf(route)); diff != "" {
			t.Errorf("the rules of others (-before +after):\n%s", diff)
		}
	}
}

// With a tester's header and a mirror of all GETs, the Gateway API would give a
// tester's GET to the mirror, for a method counts for more than a header. The
// order of managedRoutes counts for more.
func TestEarlierManagedRouteGoesFirst(t *testing.T) {
	testers, shadow := toCanary("testers", tester), mirrored("shadow", 100, "GET", "")
	find := func(all ...routers.ManagedRoute) string {
		table := tableOf(t, must(t, parse(t, plainRules), with(0, all...)))
		i, _ := table.Find(request("GET", "/", "X-Tester", "yes"))
		return table.Rules()[i].Name
	}
	if got := find(testers, shadow); got != "pushback.web.testers.1" {
		t.Errorf("testers first: met %s", got)
	}
	if got := find(shadow, testers); got != "pushback.web.shadow.1" {
		t.Errorf("shadow first: met %s", got)
	}
}

// A rule of somebody else keeps its requests, also those that a managed rule
// would outrank it for.
func TestRuleOfSomebodyElseKeepsItsRequests(t *testing.T) {
	route := parse(t, `
metadata: {name: web, namespace: shop}
spec:
  rules:
  - backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /}, headers: [{name: x-team, value: blue}]}]
    timeouts: {request: 3s}
    backendRefs: [{name: blue, port: 80}]
`)
	out := must(t, route, with(0, mirrored("shadow", 100, "GET", "")))
	table := tableOf(t, out)
	for _, tc := range []struct{ method, team, backend, rule string }{
		{"GET", "blue", "blue", "pushback.web.kept-1"},
		{"POST", "blue", "blue", "rules[3]"},
		{"GET", "red", "web-stable", "pushback.web.shadow.1"},
	} {
		i, _ := table.Find(request(tc.method, "/", "X-Team", tc.team))
		if got := table.Rules()[i]; got.Name != tc.rule || got.Backends[0].Name != tc.backend {
			t.Errorf("%+v: met %s, backend %s", tc, got.Name, got.Backends[0].Name)
		}
	}
	kept := ours(out)[0].(map[string]any)
	if diff := cmp.Diff(map[string]any{"request": "3s"}, kept["timeouts"]); diff != "" {
		t.Errorf("it is no copy of the rule:\n%s", diff)
	}
}

func TestManagedRoutesRefused(t *testing.T) {
	rule := func(more string) string {
		return "{" + more + "backendRefs: [{name: web-stable}, {name: web-canary}]}"
	}
	route := func(rules ...string) string {
		return "metadata: {name: web, namespace: shop}\nspec: {rules: [" + strings.Join(rules, ", ") + "]}"
	}
	paths := func(n int) (rules []string) {
		for i := range n {
			rules = append(rules, rule(fmt.Sprintf("matches: [{path: {value: /%d}}], ", i)))
		}
		return rules
	}
	matches := func(n int, under string) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("{path: {value: %s/%d}}", under, i))
		}
		return "matches: [" + strings.Join(out, ", ") + "], "
	}
	var headers []string
	for i := range 16 {
		headers = append(headers, fmt.Sprintf("{name: h%d, value: x}", i))
	}
	rewrite := "matches: [{path: {value: /api}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}], "
	two := mirrored("shadow", 10, "GET", "")
	two.Mirror.Match = append(two.Mirror.Match, mirrored("", 0, "POST", "").Mirror.Match...)
	prefixMethod := mirrored("shadow", 10, "GE", "")
	prefixMethod.Mirror.Match[0].Method.Kind = routers.MatchPrefix
	cases := map[string]struct {
		route  string
		wanted routers.ManagedRoute
		field  string
		says   string
	}{
		"too many rules":            {route(paths(9)...), toCanary("t", tester), "spec.rules", "18 rules, and an HTTPRoute holds 16"},
		"too many in a rule":        {route(rule(matches(33, ""))), two, "spec.rules[0].matches", "66 matches in a rule, and an HTTPRoute holds 64"},
		"too many in all":           {route(rule(matches(40, "/x")), rule("matches: [{path: {value: /a}}], "), rule(matches(30, "/y"))), toCanary("t", tester), "spec.rules", "matches in all rules, and an HTTPRoute holds 128"},
		"too many headers":          {route(rule("matches: [{headers: [" + strings.Join(headers, ", ") + "]}], ")), toCanary("t", tester), "spec.rules[0].matches.headers", "17 headers in a match"},
		"same header by regex":      {route(rule("matches: [{headers: [{name: X-Tester, type: RegularExpression, value: y.*}]}], ")), toCanary("t", tester), "spec.rules[0].matches", "regular expression"},
		"header twice":              {route(rule("")), toCanary("t", tester, header("X-TESTER", routers.MatchPrefix, "y")), "spec.rules", "twice"},
		"rewritten prefix":          {route(rule(rewrite)), mirrored("shadow", 10, "", "/api/v2"), "spec.rules[0].filters", "leave the path out"},
		"method by prefix":          {route(rule("")), prefixMethod, "spec.rules", "compares methods exactly"},
		"method of nobody":          {route(rule("")), mirrored("shadow", 10, "get", ""), "spec.rules", "compares methods exactly"},
		"relative path":             {route(rule("")), mirrored("shadow", 10, "", "api"), "spec.rules", "does not begin with /"},
		"a Service named twice":     {"metadata: {name: web}\nspec: {rules: [{backendRefs: [{name: web-stable}, {name: web-canary, port: 80}, {name: web-canary, port: 81}]}]}", toCanary("t", tester), "spec.rules[0].backendRefs", "more than once"},
		"no rule names both":        {"metadata: {name: web}\nspec: {rules: [{backendRefs: [{name: web-stable}]}]}", toCanary("t", tester), "spec.rules", "no rule"},
		"two matches are two rules": {route(append(paths(12), rule(rewrite))...), two, "spec.rules", "rules, and"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Render(parse(t, tc.route), webRoutes, with(0, tc.wanted))
			var invalid *routers.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("want an InvalidError, got %v", err)
			}
			if invalid.Field != tc.field || !strings.Contains(invalid.Problem, tc.says) {
				t.Errorf("got %s: %s\nwant %s: %s", invalid.Field, invalid.Problem, tc.field, tc.says)
			}
			if out, err := Render(parse(t, tc.route), webRoutes, split(0)); errors.As(err, &invalid) && !strings.Contains(invalid.Problem, "no rule") || out == nil {
				t.Errorf("an abort is refused too: %v", err)
			}
		})
	}
}

// A rule that rewrites the prefix that it matches may have one match only, so a
// managed route with two matches becomes two rules.
func TestRewrittenPrefixHasOneMatchARule(t *testing.T) {
	two := toCanary("testers", tester)
	route := parse(t, "metadata: {name: web}\nspec: {rules: [{matches: [{path: {type: PathPrefix, value: /api}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}], backendRefs: [{name: web-stable}, {name: web-canary}]}]}")
	rules := ours(must(t, route, with(0, two, mirrored("shadow", 5, "GET", ""))))
	var names []string
	for _, rule := range rules {
		rule := rule.(map[string]any)
		names = append(names, rule["name"].(string))
		if n := len(rule["matches"].([]any)); n != 1 {
			t.Errorf("%s has %d matches", rule["name"], n)
		}
	}
	if diff := cmp.Diff([]string{"pushback.web.testers.1", "pushback.web.testers.2", "pushback.web.shadow.1"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two Rollouts share a route, each with a rule of its own.
func TestTwoRolloutsShareARoute(t *testing.T) {
	route := parse(t, "metadata: {name: web}\nspec: {rules: [{name: a, backendRefs: [{name: web-stable}, {name: web-canary}]}, {name: b, matches: [{path: {type: PathPrefix, value: /b}}], backendRefs: [{name: api-stable}, {name: api-canary}]}]}")
	api := Selection{Rollout: "api", Namespace: "shop", Stable: "api-stable", Canary: "api-canary"}
	s := with(0, toCanary("testers", tester))
	one := must(t, route, s)
	both, err := Render(one, api, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, sel := range []Selection{webRoutes, api} {
		if seen, err := Read(both, sel); err != nil || !seen.HasRoutes(s.Routes) {
			t.Errorf("%s: %+v, %v", sel.Rollout, seen, err)
		}
	}
	back, err := Render(both, api, split(0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one["metadata"], back["metadata"]); diff != "" {
		t.Errorf("the other's annotation (-before +after):\n%s", diff)
	}
	if seen, _ := Read(back, webRoutes); !seen.HasRoutes(s.Routes) {
		t.Errorf("the other's routes: %+v", seen)
	}
}
