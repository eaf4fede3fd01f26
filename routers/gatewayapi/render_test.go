package gatewayapi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/routers"
)

var web = Selection{Namespace: "shop", Stable: "web-stable", Canary: "web-canary"}

func named(names ...string) Selection {
	sel := web
	sel.RuleNames = names
	return sel
}

func split(canary int32) routers.Split {
	return routers.Split{Stable: 100 - canary, Canary: canary}
}

func load(t testing.TB, file string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

// parse keeps integers as int64, as unstructured objects do.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return integers(out).(map[string]any)
}

func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

func TestRender(t *testing.T) {
	cases := map[string]struct {
		in, want string
		sel      Selection
		canary   int32
	}{
		"no weights in Git":               {in: "plain.in.yaml", want: "plain.out.yaml", sel: web, canary: 25},
		"no weights read as 50/50 stay":   {in: "plain.in.yaml", want: "plain.in.yaml", sel: web, canary: 50},
		"set already":                     {in: "plain.out.yaml", want: "plain.out.yaml", sel: web, canary: 25},
		"C08 joint budget at 50":          {in: "foreign.in.yaml", want: "foreign-50.out.yaml", sel: web, canary: 50},
		"C08 joint budget at the end":     {in: "foreign-50.out.yaml", want: "foreign-100.out.yaml", sel: web, canary: 100},
		"C08 joint budget after an abort": {in: "foreign-50.out.yaml", want: "foreign.in.yaml", sel: web, canary: 0},
		"C38 every rule that names both":  {in: "many-rules.in.yaml", want: "many-rules-all.out.yaml", sel: web, canary: 20},
		"C38 only the rule of that name":  {in: "many-rules.in.yaml", want: "many-rules-named.out.yaml", sel: named("a"), canary: 20},
		"1/0 reads as 100/0 and stays":    {in: "many-rules.in.yaml", want: "many-rules.in.yaml", sel: web, canary: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := load(t, tc.in)
			got, err := Render(in, tc.sel, split(tc.canary))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(load(t, tc.want), got); diff != "" {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(load(t, tc.in), in); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
}

// A header rule that names the canary alone has no weight before and none after (C07).
func TestC07_HeaderRuleKeepsItsBackend(t *testing.T) {
	route := load(t, "many-rules.in.yaml")
	for _, canary := range []int32{0, 20, 100, 0} {
		var err error
		if route, err = Render(route, web, split(canary)); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"name": "web-canary", "port": int64(80)}
		if diff := cmp.Diff(want, mapsIn(rulesOf(route)[0]["backendRefs"])[0]); diff != "" {
			t.Errorf("at %d (-want +got):\n%s", canary, diff)
		}
	}
}

const twoPorts = `
metadata: {name: web, namespace: shop}
spec:
  rules:
  - backendRefs:
    - {name: web-stable, port: 80, weight: 80}
    - {name: web-canary, port: 80, weight: 15}
    - {name: web-canary, port: 81, weight: 5}
`

func TestRenderRefuses(t *testing.T) {
	rule := func(refs string) string {
		return "metadata: {name: web, namespace: shop}\nspec: {rules: [{name: main, backendRefs: [" + refs + "]}]}"
	}
	cases := map[string]struct {
		route  string
		sel    Selection
		canary int32
		field  string
		says   string
	}{
		"C38 unknown rule name":        {route: rule("{name: web-stable}, {name: web-canary}"), sel: named("nope"), canary: 20, field: "spec.rules", says: `"nope"`},
		"named rule without canary":    {route: rule("{name: web-stable}"), sel: named("main"), canary: 20, field: "spec.rules[0].backendRefs", says: `"web-canary"`},
		"no rule names both":           {route: rule("{name: web-stable}"), sel: web, canary: 20, field: "spec.rules", says: `"web-canary"`},
		"no rules":                     {route: "metadata: {name: web, namespace: shop}", sel: web, canary: 0, field: "spec.rules", says: "no rule"},
		"two ports":                    {route: twoPorts, sel: web, canary: 20, field: "spec.rules[0].backendRefs", says: "more than once"},
		"nothing to share":             {route: rule("{name: web-stable, weight: 0}, {name: web-canary, weight: 0}, {name: legacy, weight: 5}"), sel: web, canary: 20, field: "spec.rules[0].backendRefs", says: "give stable a weight"},
		"budget too small":             {route: rule("{name: web-stable, weight: 2}, {name: web-canary, weight: 0}, {name: legacy, weight: 5}"), sel: web, canary: 25, field: "spec.rules[0].backendRefs", says: "multiply every weight of the rule by 50"},
		"budget of default weights":    {route: rule("{name: web-stable}, {name: web-canary}, {name: legacy}"), sel: web, canary: 20, field: "spec.rules[0].backendRefs", says: "multiply"},
		"canary in another namespace":  {route: rule("{name: web-stable}, {name: web-canary, namespace: other}"), sel: web, canary: 20, field: "spec.rules", says: "no rule"},
		"canary that is not a Service": {route: rule("{name: web-stable}, {name: web-canary, kind: InferencePool}"), sel: web, canary: 20, field: "spec.rules", says: "no rule"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Render(parse(t, tc.route), tc.sel, split(tc.canary))
			var invalid *routers.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("want an InvalidError, got %v", err)
			}
			if invalid.Field != tc.field || invalid.Name.Name != "web" {
				t.Errorf("%s, field %q: want web, %q", invalid.Name, invalid.Field, tc.field)
			}
			if !strings.Contains(invalid.Problem, tc.says) {
				t.Errorf("the problem %q does not say %q", invalid.Problem, tc.says)
			}
		})
	}
}

func TestRenderRefusesSplitsThatAreNotAWhole(t *testing.T) {
	for _, s := range []routers.Split{{Stable: 50, Canary: 49}, {Stable: -1, Canary: 101}, {Stable: 101, Canary: -1}, {}} {
		if out, err := Render(load(t, "plain.in.yaml"), web, s); err == nil || out != nil {
			t.Errorf("%v was rendered", s)
		}
	}
}

// An abort takes the weight from a rule that can't be weighted, and from the
// good rules beside a bad one.
func TestAbortReachesWhatItCan(t *testing.T) {
	t.Run("two ports", func(t *testing.T) {
		got, err := Render(parse(t, twoPorts), web, split(0))
		if err != nil {
			t.Fatal(err)
		}
		var weights []int64
		for _, ref := range mapsIn(rulesOf(got)[0]["backendRefs"]) {
			weights = append(weights, weightOf(ref))
		}
		if diff := cmp.Diff([]int64{100, 0, 0}, weights); diff != "" {
			t.Errorf("weights (-want +got):\n%s", diff)
		}
	})
	t.Run("unknown name beside a known one", func(t *testing.T) {
		got, err := Render(load(t, "many-rules-named.out.yaml"), named("a", "nope"), split(0))
		var invalid *routers.InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("want an InvalidError, got %v", err)
		}
		seen, err := Read(got, named("a"))
		if err != nil || seen.Canary != 0 {
			t.Errorf("canary has %d, error %v", seen.Canary, err)
		}
	})
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		route           string
		sel             Selection
		stable, canary  int32
		uniform, failed bool
	}{
		"all rules agree":         {route: "many-rules-all.out.yaml", sel: web, stable: 80, canary: 20, uniform: true},
		"one rule of three":       {route: "many-rules-named.out.yaml", sel: web, stable: 80, canary: 20},
		"only the named rule":     {route: "many-rules-named.out.yaml", sel: named("a"), stable: 80, canary: 20, uniform: true},
		"beside foreign backends": {route: "foreign-50.out.yaml", sel: web, stable: 50, canary: 50, uniform: true},
		"no weights":              {route: "plain.in.yaml", sel: web, stable: 50, canary: 50, uniform: true},
		"unknown rule":            {route: "plain.in.yaml", sel: named("x"), failed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Read(load(t, tc.route), tc.sel)
			if (err != nil) != tc.failed {
				t.Fatal(err)
			}
			if got.Stable != tc.stable || got.Canary != tc.canary || got.Uniform != tc.uniform {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A rule whose weights are all 0 answers nobody: it is no split that is in force.
func TestDeadRuleIsNotUniform(t *testing.T) {
	route := parse(t, "spec: {rules: [{backendRefs: [{name: web-stable, weight: 0}, {name: web-canary, weight: 0}]}]}")
	got, err := Read(route, web)
	if err != nil || got.Uniform || got.Canary != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
	healed, err := Render(route, web, split(0))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := Read(healed, web); !got.Uniform || got.Canary != 0 {
		t.Errorf("after a write: %+v", got)
	}
}

// Whatever a route looks like, either its reading after a render is the split
// that was asked for, or the render says why not; the joint budget beside
// others never changes, and 0 and 100 always work.
func TestPropertyReadAfterRender(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 1000), 2, 4).Draw(t, "weights")
		names := []string{"web-stable", "web-canary", "legacy", "other"}
		var refs []any
		for i, weight := range weights {
			refs = append(refs, map[string]any{"name": names[i], "weight": weight})
		}
		route := map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": refs}}}}
		canary := rapid.Int32Range(0, 100).Draw(t, "canary")
		out, err := Render(route, web, split(canary))
		joint := weights[0] + weights[1]
		if err != nil {
			if len(weights) == 2 || joint >= 100 || joint > 0 && canary == 0 || joint > 0 && canary == 100 {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if len(weights) > 2 && joint == 0 {
			return // nothing is routed, so nothing is written
		}
		got, err := Read(out, web)
		if err != nil || got.Canary != canary || !got.Uniform {
			t.Fatalf("asked for %d, read %+v, %v", canary, got, err)
		}
		after := mapsIn(rulesOf(out)[0]["backendRefs"])
		for i := 2; i < len(weights); i++ {
			if weightOf(after[i]) != weights[i] {
				t.Fatalf("a foreign weight changed")
			}
		}
		if len(weights) > 2 && weightOf(after[0])+weightOf(after[1]) != joint {
			t.Fatalf("the joint budget changed from %d", joint)
		}
	})
}
