package gatewayapi

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/routers"
)

// sectionName is what the CRD asks of the name of a rule.
var sectionName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Whatever Rollouts and managed routes are called, the names of rules are legal,
// and no Rollout takes a rule for its own that isn't.
func TestPropertyRuleNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?`), rapid.String().Filter(func(s string) bool { return s != "" }))
		rollouts := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?`), 2, 2, rapid.ID).Draw(t, "rollouts")
		routes := rapid.SliceOfNDistinct(name, 2, 2, rapid.ID).Draw(t, "routes")
		rule := map[string]any{"name": ruleName(rollouts[0], routes[0], 1)}
		for _, text := range []string{rule["name"].(string), keptName(rollouts[0], 1)} {
			if !sectionName.MatchString(text) || len(text) > 253 {
				t.Fatalf("%q is no name of a rule", text)
			}
		}
		if ruleName(rollouts[0], routes[0], 1) == ruleName(rollouts[0], routes[1], 1) {
			t.Fatalf("two routes share the name %s", rule["name"])
		}
		if !marked(rule, Selection{Rollout: rollouts[0]}) || marked(rule, Selection{Rollout: rollouts[1]}) {
			t.Fatalf("%s isn't told by its Rollout", rule["name"])
		}
	})
}

func TestReadManagedRoutes(t *testing.T) {
	all := []routers.ManagedRoute{toCanary("testers", tester), mirrored("shadow", 10, "GET", "")}
	rule := func(route map[string]any, i int) map[string]any { return rulesOf(route)[i] }
	cases := map[string]struct {
		change func(route map[string]any)
		routes int
		differ bool
	}{
		"as they were applied": {func(map[string]any) {}, 2, false},
		"one is edited":        {func(r map[string]any) { rule(r, 0)["timeouts"] = map[string]any{"request": "1s"} }, 2, true},
		"one was given weights": {func(r map[string]any) {
			mapsIn(rule(r, 0)["backendRefs"])[0]["weight"] = int64(0)
		}, 2, true},
		"the base rule is edited": {func(r map[string]any) { rule(r, 2)["timeouts"] = map[string]any{"request": "1s"} }, 2, true},
		"one is gone":             {func(r map[string]any) { drop(r, 0) }, 2, true},
		"another is there": {func(r map[string]any) {
			spec := r["spec"].(map[string]any)
			spec["rules"] = append(spec["rules"].([]any), map[string]any{"name": "pushback.web.old.1"})
		}, 2, true},
		"the annotation is gone": {func(r map[string]any) { delete(r["metadata"].(map[string]any), "annotations") }, 0, true},
		"the annotation is broken": {func(r map[string]any) {
			annotationsOf(r)[RoutesAnnotation] = "[1]"
		}, 0, true},
		"the annotation alone": {func(r map[string]any) { takeOut(r, webRoutes) }, 2, true},
		"another's rules": {func(r map[string]any) {
			spec := r["spec"].(map[string]any)
			spec["rules"] = append(spec["rules"].([]any), map[string]any{"name": "pushback.web-2.old.1"})
			takeOut(r, webRoutes)
			delete(r["metadata"].(map[string]any), "annotations")
		}, 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			route := must(t, parse(t, plainRules), with(20, all...))
			tc.change(route)
			seen, err := Read(route, webRoutes)
			if err != nil || len(seen.Routes) != tc.routes || seen.RoutesDiffer != tc.differ || seen.Canary != 20 || !seen.Uniform {
				t.Fatalf("read %+v, %v", seen, err)
			}
			if seen.HasRoutes(all) == tc.differ && tc.routes == 2 {
				t.Errorf("HasRoutes says %v", seen.HasRoutes(all))
			}
			healed := must(t, route, with(20, all...))
			if seen, err := Read(healed, webRoutes); err != nil || !seen.HasRoutes(all) {
				t.Errorf("after a write: %+v, %v", seen, err)
			}
			if seen, err := Read(must(t, route, split(0)), webRoutes); err != nil || !seen.NoRoutes() {
				t.Errorf("after an abort: %+v, %v", seen, err)
			}
		})
	}
}

func drop(route map[string]any, i int) {
	spec := route["spec"].(map[string]any)
	rules := spec["rules"].([]any)
	spec["rules"] = append(rules[:i:i], rules[i+1:]...)
}

func TestOverlayOfManagedRoutes(t *testing.T) {
	live := func() map[string]any {
		return must(t, parse(t, plainRules), with(20, toCanary("testers", tester)))
	}
	const head = "metadata: {name: web, namespace: shop}\nspec: {rules: ["
	base := "backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80}]}"
	cases := map[string]struct {
		declared string
		live     map[string]any
		// want lists the rules by name, and the timeout of the managed ones.
		want    []string
		timeout any
	}{
		"the base rule is edited": {head + "{timeouts: {request: 7s}, " + base + "]}", live(), []string{"pushback.web.testers.1", ""}, "7s"},
		"a base rule is added":    {head + "{" + base + ", {name: b, matches: [{path: {value: /b}}], " + base + "]}", live(), []string{"pushback.web.testers.1", "", "pushback.web.testers.2", "b"}, nil},
		"the base rule is gone":   {head + "{name: x, backendRefs: [{name: web-stable, port: 80}]}]}", live(), []string{"x"}, nil},
		"no live route":           {head + "{" + base + "]}", nil, []string{""}, nil},
		"nothing managed":         {head + "{" + base + "]}", parse(t, plainRules), []string{""}, nil},
		"Git declares old ones, exported from a cluster": {
			"metadata: {name: web, annotations: {" + RoutesAnnotation + `: '{"web":[{"name":"old"}]}'}}` + "\nspec: {rules: [{name: pushback.web.old.1, backendRefs: [{name: web-canary}]}, {" + base + "]}",
			live(), []string{"pushback.web.testers.1", ""}, nil},
		"what was exported doesn't come to a new route": {
			"metadata: {name: web, annotations: {" + RoutesAnnotation + `: '{"web":[{"name":"old"}]}'}}` + "\nspec: {rules: [{name: pushback.web.old.1, backendRefs: [{name: web-canary}]}, {" + base + "]}",
			nil, []string{""}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := Overlay(parse(t, tc.declared), tc.live, webRoutes)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, rule := range rulesOf(out) {
				names = append(names, textOr(rule, "name", ""))
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			for _, rule := range ours(out) {
				timeouts, _ := rule.(map[string]any)["timeouts"].(map[string]any)
				if timeouts["request"] != tc.timeout {
					t.Errorf("timeout %v, want %v", timeouts["request"], tc.timeout)
				}
			}
			if metadata := out["metadata"].(map[string]any); metadata["annotations"] != nil {
				t.Errorf("the annotation is declared, and isn't Git's: %v", metadata["annotations"])
			}
		})
	}
}

// Git's rules and those of the managed routes are too many together: the object
// is left as it is, and the error says why.
func TestOverlayOfTooManyRules(t *testing.T) {
	var rules []string
	for _, path := range strings.Split("abcdefghi", "") {
		rules = append(rules, "{matches: [{path: {type: PathPrefix, value: /"+path+"}}], backendRefs: [{name: web-stable}, {name: web-canary}]}")
	}
	live := must(t, parse(t, plainRules), with(20, toCanary("testers", tester)))
	_, err := Overlay(parse(t, "metadata: {name: web}\nspec: {rules: ["+strings.Join(rules, ", ")+"]}"), live, webRoutes)
	var invalid *routers.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(invalid.Problem, "holds 16") {
		t.Errorf("got %v", err)
	}
}

func TestWholeOfAThousand(t *testing.T) {
	sel := webRoutes
	sel.Max = 1000
	for _, canary := range []int32{0, 1, 125, 999, 1000} {
		out, err := Render(parse(t, plainRules), sel, routers.Split{Stable: 1000 - canary, Canary: canary, Max: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if seen, err := Read(out, sel); err != nil || seen.Canary != canary || seen.Stable != 1000-canary || seen.Max != 1000 {
			t.Errorf("%d: read %+v, %v", canary, seen, err)
		}
		percent, err := Read(out, webRoutes)
		if want := map[int32]int32{0: 0, 1: 1, 125: 13, 999: 99, 1000: 100}[canary]; err != nil || percent.Canary != want {
			t.Errorf("%d of 1000 is %d of 100, want %d, %v", canary, percent.Canary, want, err)
		}
	}
}
