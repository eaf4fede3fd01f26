package gatewayapi

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/routers"
)

// weightsIn lists the weights of a route by rule and backend, unset ones as 1.
func weightsIn(route map[string]any) [][]int64 {
	var out [][]int64
	for _, rule := range rulesOf(route) {
		var weights []int64
		for _, ref := range mapsIn(rule["backendRefs"]) {
			weights = append(weights, weightOf(ref))
		}
		out = append(out, weights)
	}
	return out
}

func TestOverlay(t *testing.T) {
	rules := func(text string) string { return "metadata: {name: web}\nspec: {rules: [" + text + "]}" }
	const (
		inGit     = "{backendRefs: [{name: web-stable, port: 80, weight: 100}, {name: web-canary, port: 80, weight: 0}]}"
		defaulted = "{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{group: '', kind: Service, name: web-stable, port: 80, weight: 70}, {group: '', kind: Service, name: web-canary, port: 80, weight: 30}]}"
	)
	cases := map[string]struct {
		declared, live string
		sel            Selection
		want           [][]int64
	}{
		"C35 server's defaults don't hide the rule": {rules(inGit), rules(defaulted), web, [][]int64{{70, 30}}},
		"backends in another order": {
			rules("{backendRefs: [{name: web-canary, port: 80}, {name: web-stable, port: 80}]}"), rules(defaulted), web, [][]int64{{30, 70}}},
		"rules in another order, by name": {
			rules("{name: b, backendRefs: [{name: web-stable}, {name: web-canary}]}, {name: a, backendRefs: [{name: web-stable}, {name: web-canary}]}"),
			rules("{name: a, backendRefs: [{name: web-stable, weight: 90}, {name: web-canary, weight: 10}]}, {name: b, backendRefs: [{name: web-stable, weight: 80}, {name: web-canary, weight: 20}]}"),
			web, [][]int64{{80, 20}, {90, 10}}},
		"rules in another order, by content": {
			rules("{matches: [{path: {value: /b}}], backendRefs: [{name: web-stable}, {name: web-canary}]}, {matches: [{headers: [{name: x, value: y}]}], backendRefs: [{name: web-stable}, {name: web-canary}]}"),
			rules("{matches: [{path: {type: PathPrefix, value: /}, headers: [{type: Exact, name: x, value: y}]}], backendRefs: [{name: web-stable, weight: 90}, {name: web-canary, weight: 10}]}, {matches: [{path: {type: PathPrefix, value: /b}}], backendRefs: [{name: web-stable, weight: 80}, {name: web-canary, weight: 20}]}"),
			web, [][]int64{{80, 20}, {90, 10}}},
		"a new rule gets the largest share": {
			rules(inGit + ", {name: new, backendRefs: [{name: web-stable}, {name: web-canary}]}"), rules(defaulted), web, [][]int64{{70, 30}, {70, 30}}},
		"a rule that is gone stays gone": {
			rules(inGit), rules(defaulted + ", {name: old, backendRefs: [{name: web-stable, weight: 1}, {name: web-canary, weight: 99}]}"), web, [][]int64{{70, 30}}},
		"no live route": {rules("{backendRefs: [{name: web-stable, weight: 10}, {name: web-canary, weight: 90}]}"), "{}", web, [][]int64{{100, 0}}},
		"no live route, beside others": {
			rules("{backendRefs: [{name: web-stable, weight: 10}, {name: web-canary, weight: 30}, {name: legacy, weight: 60}]}"), "{}", web, [][]int64{{40, 0, 60}}},
		"no live route, 1/0 stays": {rules("{backendRefs: [{name: web-stable, weight: 1}, {name: web-canary, weight: 0}]}"), "{}", web, [][]int64{{1, 0}}},
		"C08 the same budget keeps its weights": {
			rules("{name: a, backendRefs: [{name: web-stable, weight: 40}, {name: web-canary, weight: 0}, {name: legacy, weight: 60}]}"),
			rules("{name: a, backendRefs: [{name: web-stable, weight: 20}, {name: web-canary, weight: 20}, {name: legacy, weight: 60}]}"),
			web, [][]int64{{20, 20, 60}}},
		"C08 Git gives legacy less": {
			rules("{name: a, backendRefs: [{name: web-stable, weight: 80}, {name: web-canary, weight: 0}, {name: legacy, weight: 20}]}"),
			rules("{name: a, backendRefs: [{name: web-stable, weight: 20}, {name: web-canary, weight: 20}, {name: legacy, weight: 60}]}"),
			web, [][]int64{{40, 40, 20}}},
		"Git adds legacy": {
			rules("{name: a, backendRefs: [{name: web-stable, weight: 40}, {name: web-canary, weight: 0}, {name: legacy, weight: 60}]}"),
			rules("{name: a, backendRefs: [{name: web-stable, weight: 75}, {name: web-canary, weight: 25}]}"),
			web, [][]int64{{30, 10, 60}}},
		"a budget too small goes to the nearest": {
			rules("{name: a, backendRefs: [{name: web-stable, weight: 3}, {name: web-canary, weight: 0}, {name: legacy, weight: 60}]}"),
			rules("{name: a, backendRefs: [{name: web-stable, weight: 75}, {name: web-canary, weight: 25}]}"),
			web, [][]int64{{2, 1, 60}}},
		"rules for one side and rules not chosen are Git's": {
			rules("{name: a, backendRefs: [{name: web-stable}, {name: web-canary}]}, {name: pinned, backendRefs: [{name: web-stable, weight: 5}, {name: web-canary, weight: 5}]}, {name: c, backendRefs: [{name: web-canary}]}"),
			rules("{name: a, backendRefs: [{name: web-stable, weight: 90}, {name: web-canary, weight: 10}]}, {name: pinned, backendRefs: [{name: web-stable, weight: 1}, {name: web-canary, weight: 0}]}, {name: c, backendRefs: [{name: web-canary, weight: 7}]}"),
			named("a"), [][]int64{{90, 10}, {5, 5}, {1}}},
		"nothing of ours": {rules("{backendRefs: [{name: web-stable, weight: 3}]}"), rules(defaulted), web, [][]int64{{3}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Overlay(parse(t, tc.declared), parse(t, tc.live), tc.sel)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, weightsIn(got)); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlayRefusesTwoPorts(t *testing.T) {
	_, err := Overlay(parse(t, twoPorts), nil, web)
	var invalid *routers.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "spec.rules[0].backendRefs" {
		t.Errorf("got %v", err)
	}
}

// Whatever Git and the cluster hold, the overlay keeps what Git declares of
// other backends, moves no weight to the canary that it hadn't in the live
// route, and leads to itself.
func TestPropertyOverlay(t *testing.T) {
	names := []string{"web-stable", "web-canary", "legacy"}
	route := func(t *rapid.T, label string) map[string]any {
		var rules []any
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, label+" rules") {
			var refs []any
			for _, backend := range rapid.Permutation(names[:rapid.IntRange(2, 3).Draw(t, "backends")]).Draw(t, label+" order") {
				refs = append(refs, map[string]any{"name": backend, "weight": rapid.Int64Range(0, 200).Draw(t, "weight")})
			}
			rules = append(rules, map[string]any{"name": name, "backendRefs": refs})
		}
		return map[string]any{"spec": map[string]any{"rules": rules}}
	}
	rapid.Check(t, func(t *rapid.T) {
		git, live := route(t, "git"), route(t, "live")
		out, err := Overlay(git, live, web)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Overlay(out, live, web)
		if err != nil || !cmp.Equal(out, again) {
			t.Fatalf("a second overlay differs (%v):\n%s", err, cmp.Diff(out, again))
		}
		seen, _ := Read(live, web)
		after, _ := Read(out, web)
		if seen.Canary == 0 && after.Canary > 0 {
			t.Fatalf("the canary got %d", after.Canary)
		}
		for i, rule := range rulesOf(out) {
			for j, ref := range mapsIn(rule["backendRefs"]) {
				if ref["name"] == "legacy" && weightOf(ref) != weightsIn(git)[i][j] {
					t.Fatal("a foreign weight changed")
				}
			}
		}
	})
}
