package gatewayapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/routers"
)

// Selection says which rules and backends of a route are the router's.
type Selection struct {
	// Rollout that the routing belongs to: its managed rules are told by it.
	Rollout string
	// Namespace of the route and of both Services.
	Namespace string
	// Stable and Canary are the names of the Services.
	Stable, Canary string
	// RuleNames limits the weights to the rules of these names. None: every rule
	// that names both Services.
	RuleNames []string
	// Max is what the weights are shares of. 0 means routers.MaxWeight.
	Max int32
}

// whole is what the weights are shares of.
func (s Selection) whole() int64 { return int64(routers.Split{Max: s.Max}.Whole()) }

// pair is a rule that sends traffic to both Services. Its maps are those of the
// route that it was found in.
type pair struct {
	// path of the rule for messages, such as "spec.rules[2]".
	path  string
	index int
	rule  map[string]any
	// stable and canary hold the references to each Service. More than one is
	// legal in the API (two ports) and can't be weighted.
	stable, canary []map[string]any
	// foreign is true when the rule has other backends too.
	foreign bool
	// whole is what its share is told of.
	whole int64
}

// ambiguous says that a Service is named more than once.
func (p pair) ambiguous() bool { return len(p.stable) > 1 || len(p.canary) > 1 }

// weights are the sums of each side.
func (p pair) weights() (stable, canary int64) { return sum(p.stable), sum(p.canary) }

// dead says that the rule answers nothing, because all of its weights are 0: no
// split is in force, whatever it reads as.
func (p pair) dead() bool { return !p.foreign && sum(p.stable)+sum(p.canary) == 0 }

// share is the rule's live split.
func (p pair) share() share {
	stable, canary := p.weights()
	return shareOf(stable, canary, p.whole)
}

// set writes both weights. It must not be called on an ambiguous pair.
func (p pair) set(stable, canary int64) {
	p.stable[0]["weight"], p.canary[0]["weight"] = stable, canary
}

// place gives the rule the share s. Weights that read as s already stay as they
// are, unless exact asks for the numbers of the share themselves. The problem says why
// it can't; it is empty when it did.
func (p pair) place(s share, exact bool) (problem string) {
	stable, canary := p.weights()
	joint := stable + canary
	switch {
	case p.ambiguous() && s.canary > 0:
		return "it names one of the two Services more than once, so their weights can't be told apart: keep one backendRef for each, or split the rule"
	case p.ambiguous():
		p.drain()
		return ""
	case joint > 0 && p.share() == s && !(exact && !p.foreign):
		return ""
	case !p.foreign:
		p.set(s.stable, s.canary)
		return ""
	case joint == 0 && s.canary == 0:
		return "" // nothing of this rule goes to either
	case joint == 0:
		return "stable and canary have weight 0 beside other backends, so there is nothing to share: give stable a weight"
	}
	nextStable, nextCanary := divide(joint, s)
	if shareOf(nextStable, nextCanary, p.whole) != s {
		return fmt.Sprintf("stable and canary share %d of the rule's weights, too few to split %d/%d: multiply every weight of the rule by %d",
			joint, s.stable, s.canary, (p.whole+joint-1)/joint)
	}
	p.set(nextStable, nextCanary)
	return ""
}

// drain takes all weight from the canary, however often it is named: an abort
// must work on a rule that can't be weighted.
func (p pair) drain() {
	stable, canary := p.weights()
	if canary == 0 && stable > 0 {
		return
	}
	freed := canary
	if stable+canary == 0 && !p.foreign {
		freed = p.whole
	}
	for _, ref := range p.canary {
		ref["weight"] = int64(0)
	}
	p.stable[0]["weight"] = weightOf(p.stable[0]) + freed
}

// pairsIn finds the weighted rules that are the router's. The problems are about rules
// that were asked for by name and can't be used.
func pairsIn(route map[string]any, sel Selection) (pairs []pair, problems []error) {
	var names []string
	found := map[string]bool{}
	for i, rule := range rulesOf(route) {
		name, _ := rule["name"].(string)
		if name != "" {
			names = append(names, name)
		}
		if len(sel.RuleNames) > 0 && !slices.Contains(sel.RuleNames, name) {
			continue
		}
		found[name] = true
		p := pairOf(i, rule, sel)
		switch {
		case len(p.stable) > 0 && len(p.canary) > 0:
			pairs = append(pairs, p)
		case len(sel.RuleNames) > 0:
			problems = append(problems, invalid(route, sel, p.path+".backendRefs", fmt.Sprintf(
				"rule %q must name Service %q and Service %q: add both, or take the rule off ruleNames", name, sel.Stable, sel.Canary)))
		}
	}
	for _, name := range sel.RuleNames {
		if !found[name] {
			problems = append(problems, invalid(route, sel, "spec.rules", fmt.Sprintf(
				"there is no rule with the name %q (there are %q): name the rule, or correct the Rollout's ruleNames", name, names)))
		}
	}
	if len(pairs) == 0 && len(problems) == 0 {
		problems = append(problems, invalid(route, sel, "spec.rules", fmt.Sprintf(
			"no rule names both Service %q and Service %q: add both to the backendRefs of a rule, the canary with weight 0", sel.Stable, sel.Canary)))
	}
	return pairs, problems
}

func pairOf(index int, rule map[string]any, sel Selection) pair {
	p := pair{path: fmt.Sprintf("spec.rules[%d]", index), index: index, rule: rule, whole: sel.whole()}
	for _, ref := range mapsIn(rule["backendRefs"]) {
		switch {
		case namesService(ref, sel.Namespace, sel.Stable):
			p.stable = append(p.stable, ref)
		case namesService(ref, sel.Namespace, sel.Canary):
			p.canary = append(p.canary, ref)
		default:
			p.foreign = true
		}
	}
	return p
}

// namesService applies the defaults of the Gateway API: group "", kind Service,
// the namespace of the route.
func namesService(ref map[string]any, namespace, name string) bool {
	return ref["name"] == name &&
		textOr(ref, "group", "") == "" &&
		textOr(ref, "kind", "Service") == "Service" &&
		textOr(ref, "namespace", namespace) == namespace
}

func textOr(in map[string]any, key, fallback string) string {
	if text, ok := in[key].(string); ok {
		return text
	}
	return fallback
}

func rulesOf(route map[string]any) []map[string]any {
	spec, _ := route["spec"].(map[string]any)
	return mapsIn(spec["rules"])
}

func mapsIn(list any) []map[string]any {
	items, _ := list.([]any)
	var out []map[string]any
	for _, item := range items {
		object, _ := item.(map[string]any) // nil keeps the indexes right
		out = append(out, object)
	}
	return out
}

func sum(refs []map[string]any) (total int64) {
	for _, ref := range refs {
		total += weightOf(ref)
	}
	return total
}

// weightOf is the weight of a backend; 1 when it has none, as in the Gateway API.
func weightOf(ref map[string]any) int64 {
	if ref["weight"] == nil {
		return 1
	}
	return integer(ref["weight"])
}

// integer reads a number of unstructured data, which holds int64 from the API
// server and float64 from some YAML decoders; 0 for anything else.
func integer(value any) int64 {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64() // 0 when it is not an integer
		return i
	}
	return 0
}

func invalid(route map[string]any, sel Selection, field, problem string) error {
	metadata, _ := route["metadata"].(map[string]any)
	return &routers.InvalidError{
		Kind:    Kind,
		Name:    types.NamespacedName{Namespace: sel.Namespace, Name: textOr(metadata, "name", "")},
		Field:   field,
		Problem: problem,
	}
}
