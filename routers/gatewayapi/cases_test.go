package gatewayapi

import (
	"testing"

	"pgregory.net/rapid"
)

// Every rule that is written can answer: its weights are never all 0, and a rule
// with one backend is left as it is.
func TestC86_NoRuleIsLeftWithoutWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		backend := func(name string) map[string]any {
			ref := map[string]any{"name": name, "port": int64(80)}
			if w := rapid.Int64Range(-1, 3).Draw(t, name); w >= 0 {
				ref["weight"] = w
			}
			return ref
		}
		alone := []any{map[string]any{"name": rapid.SampledFrom([]string{"web-canary", "web-stable"}).Draw(t, "alone"), "port": int64(80)}}
		route := map[string]any{"spec": map[string]any{"rules": []any{
			map[string]any{"backendRefs": []any{backend("web-stable"), backend("web-canary")}},
			map[string]any{"backendRefs": alone},
		}}}
		canary := rapid.Int32Range(0, 100).Draw(t, "canary")
		out, err := Render(route, web, split(canary))
		if err != nil {
			t.Fatal(err)
		}
		rules := rulesOf(out)
		if total := sum(mapsIn(rules[0]["backendRefs"])); total <= 0 {
			t.Fatalf("at %d the weights add up to %d: %v", canary, total, rules[0])
		}
		if _, weighted := mapsIn(rules[1]["backendRefs"])[0]["weight"]; weighted {
			t.Fatalf("the single backend was given a weight: %v", rules[1])
		}
	})
}
