package gatewayapi

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/routers"
)

var trial = []routers.Extra{
	{Service: "exp-baseline", Weight: 5, Ports: []routers.ExtraPort{{Stable: 80, Extra: 8080}}},
	{Service: "exp-canary", Weight: 10},
}

func extras(canary int32, all ...routers.Extra) routers.Split {
	s := split(canary)
	s.Extras = all
	return s
}

const pairRule = "{backendRefs: [{name: web-stable, port: 80, weight: %d}, {name: web-canary, port: 80, weight: %d}%s]}"

func oneRule(stable, canary int, more string) string {
	return "metadata: {name: web}\nspec: {rules: [" + fmt.Sprintf(pairRule, stable, canary, more) + "]}"
}

func TestRenderExtras(t *testing.T) {
	cases := map[string]struct {
		route string
		split routers.Split
		want  [][]int64 // stable, canary, others, extras
		bad   bool
	}{
		"out of stable's weight":                {oneRule(100, 0, ""), extras(20, trial...), [][]int64{{65, 20, 5, 10}}, false},
		"of a rule that reads as the split":     {oneRule(9, 1, ""), extras(10, trial...), [][]int64{{75, 10, 5, 10}}, false},
		"all of it":                             {oneRule(100, 0, ""), extras(85, trial...), [][]int64{{0, 85, 5, 10}}, false},
		"beside others, whose weight stays":     {oneRule(200, 0, ", {name: other, weight: 50}"), extras(20, trial...), [][]int64{{130, 40, 50, 10, 20}}, false},
		"beside others, with too little weight": {oneRule(10, 0, ", {name: other, weight: 50}"), extras(10, trial...), nil, true},
		"more than stable has":                  {oneRule(100, 0, ""), extras(90, trial...), nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			route := parse(t, tc.route)
			got, err := Render(route, web, tc.split)
			if (err != nil) != tc.bad {
				t.Fatalf("error %v", err)
			}
			if tc.bad {
				return
			}
			if diff := cmp.Diff(tc.want, weightsIn(got)); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
			last := mapsIn(rulesOf(got)[0]["backendRefs"])
			if port := last[len(last)-2]["port"]; port != int64(8080) {
				t.Errorf("the port of the first is %v", port)
			}
			live, err := Read(got, web)
			if err != nil || !live.HasExtras(trial) || live.Canary != tc.split.Canary || live.Stable != tc.split.Stable {
				t.Errorf("read as %+v (%v)", live, err)
			}
			again, err := Render(got, web, tc.split)
			if diff := cmp.Diff(got, again); diff != "" || err != nil {
				t.Errorf("a second time (%v):\n%s", err, diff)
			}
		})
	}
}

// Nothing of them is left when they are not asked for, and no other's share moved on
// the way; an edit of them is seen, and put right.
func TestExtrasComeAndGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.SampledFrom([]int64{100, 200, 1000}).Draw(t, "budget")
		foreign := rapid.Bool().Draw(t, "foreign")
		more := ""
		if foreign {
			more = ", {name: other, weight: 37}"
		}
		route := parse2(t, oneRule(int(budget), 0, more))
		canary := rapid.Int32Range(0, 60).Draw(t, "canary")
		var wanted []routers.Extra
		for i := range rapid.IntRange(1, 3).Draw(t, "extras") {
			wanted = append(wanted, routers.Extra{Service: fmt.Sprintf("exp-%d", i), Weight: rapid.Int32Range(1, 13).Draw(t, "weight")})
		}
		with, err := Render(route, web, extras(canary, wanted...))
		if err != nil {
			t.Fatal(err)
		}
		next := rapid.Int32Range(0, 100).Draw(t, "next")
		without, err := Render(with, web, split(next))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Render(route, web, split(next))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := sharesOf(plain), sharesOf(without); a != b {
			t.Fatalf("%s after extras, %s without: %v", b, a, without)
		}
		if len(namesOf(without, web)) > 0 {
			t.Fatal("the annotation is left")
		}
		edited := runtime.DeepCopyJSON(with)
		refs := mapsIn(rulesOf(edited)[0]["backendRefs"])
		refs[len(refs)-1]["weight"] = int64(0)
		live, err := Read(edited, web)
		if err != nil || live.HasExtras(wanted) {
			t.Fatalf("an edit isn't seen: %+v (%v)", live, err)
		}
		if foreign {
			return // what was taken away is the others' now
		}
		right, err := Render(edited, web, extras(canary, wanted...))
		if err != nil {
			t.Fatal(err)
		}
		if live, err := Read(right, web); err != nil || !live.HasExtras(wanted) {
			t.Fatalf("it isn't put right: %+v (%v)", live, err)
		}
	})
}

// sharesOf are the shares that the backends of the first rule have, by name.
func sharesOf(route map[string]any) string {
	total := int64(0)
	refs := mapsIn(rulesOf(route)[0]["backendRefs"])
	for _, ref := range refs {
		total += weightOf(ref)
	}
	text := ""
	for _, ref := range refs {
		text += fmt.Sprintf("%v=%.4f ", ref["name"], float64(weightOf(ref))/float64(total))
	}
	return text
}

func parse2(t *rapid.T, text string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return integers(out).(map[string]any)
}

// A sync of what Git declares takes no extra Service away, and adds none.
func TestOverlayKeepsExtras(t *testing.T) {
	declared := parse(t, oneRule(100, 0, ""))
	live, err := Render(declared, web, extras(20, trial...))
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]map[string]any{"declared": declared, "exported from the cluster": live} {
		got, err := Overlay(d, live, web)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rulesOf(live), rulesOf(got)); diff != "" {
			t.Errorf("%s (-live +overlaid):\n%s", name, diff)
		}
	}
	edited := parse(t, oneRule(100, 0, ", {name: other, weight: 100}"))
	got, err := Overlay(edited, live, web)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int64{{65, 20, 100, 5, 10}}, weightsIn(got)); diff != "" {
		t.Errorf("with another backend in Git (-want +got):\n%s", diff)
	}
}
