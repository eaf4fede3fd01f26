package lint

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/forecast"
	"github.com/pushback-dev/pushback/gitsync"
)

// queries looks at what one analysis asks.
func (c *checker) queries(o gitsync.Object, in forecast.Input, a forecast.Analysis, f forecast.Forecast) {
	hashes := latestHashes(a.Of)
	prepared, err := analysis.Prepare(a.Spec)
	if err != nil {
		return // Analyses has prepared it already
	}
	for i, m := range a.Spec.Metrics {
		if m.Provider.Prometheus == nil {
			continue
		}
		used := analysis.Placeholders(v1alpha1.Metric{Provider: m.Provider})
		if !slices.ContainsFunc(used, func(name string) bool { return slices.Contains(hashes, name) }) {
			c.add("query-of-every-version", o, a.Name, fmt.Sprintf("the query of metric %s has no argument with the new version's hash: while it has a small share, the stable version's requests hide it", m.Name),
				"select by a label with {{args.hash}}, and give hash with podTemplateHashValue: Latest")
		}
		if len(prepared.Secrets()) > 0 {
			continue // the query isn't known
		}
		resolved, err := prepared.Metric(i, nil)
		if err != nil {
			continue
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(resolved.Provider.Prometheus.Query)
		if err != nil {
			continue // another dialect, or a server's to refuse
		}
		c.window(o, a, m, expr, f)
	}
}

// latestHashes are the arguments that have the new version's hash.
func latestHashes(a v1alpha1.RolloutAnalysis) []string {
	var out []string
	for _, arg := range a.Args {
		if from := arg.ValueFrom; from != nil && from.PodTemplateHashValue != nil && *from.PodTemplateHashValue == v1alpha1.HashLatest {
			out = append(out, arg.Name)
		}
	}
	return out
}

// window finds a range that reaches back to before the new version had traffic.
func (c *checker) window(o gitsync.Object, a forecast.Analysis, m v1alpha1.Metric, expr parser.Expr, f forecast.Forecast) {
	widest := time.Duration(0)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.MatrixSelector); ok {
			widest = max(widest, selector.Range)
		}
		return nil
	})
	for _, row := range f.Metrics {
		traffic, ok := firstTraffic(f)
		if row.Run != a.Name || row.Metric != m.Name || !ok {
			continue
		}
		if seen := (row.First - traffic).Duration(); seen >= 0 && widest > seen+time.Second {
			c.add("window-is-not-filled", o, a.Name, fmt.Sprintf("metric %s looks back %s, and is first measured when the new version has had traffic for %s", m.Name, widest, seen.Round(time.Second)),
				"set initialDelay to the window, or pause before the analysis")
		}
	}
}

// firstTraffic is when the new version first has a share.
func firstTraffic(f forecast.Forecast) (forecast.Seconds, bool) {
	for _, s := range f.Steps {
		if s.Share > 0 {
			return s.From, true
		}
	}
	return 0, false
}

// template looks at a template by itself.
func (c *checker) template(o gitsync.Object) {
	spec, err := templateSpec(o)
	if err != nil {
		return // check has said so
	}
	for i, m := range spec.Metrics {
		field := fmt.Sprintf("spec.metrics[%d]", i)
		if p := m.Provider.Prometheus; p != nil && m.NoData == "" {
			c.numerator(o, field, m, p.Query)
		}
		if m.ConditionLanguage != v1alpha1.ConditionExpr {
			continue
		}
		for name, text := range map[string]string{"successCondition": m.SuccessCondition, "failureCondition": m.FailureCondition} {
			form, err := analysis.CELFormOf(text)
			if text == "" || err != nil {
				continue
			}
			c.add("expr-has-a-form-in-cel", o, field+"."+name, "it is "+form.Condition+" in CEL", "set conditionLanguage: CEL if you like; docs/conditions.md says what differs")
		}
	}
}

// numerator finds a fraction whose numerator selects less than its denominator: when
// all is well no such series may exist, and the answer is empty instead of 0.
func (c *checker) numerator(o gitsync.Object, field string, m v1alpha1.Metric, query string) {
	if analysis.SpeaksOfAbsence(m) {
		return
	}
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return // placeholders may stand where no text can, and a server may know more
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		b, ok := node.(*parser.BinaryExpr)
		if !ok || b.Op != parser.DIV || !narrower(b.LHS, b.RHS) {
			return nil
		}
		c.add("numerator-may-be-empty", o, field+".provider.prometheus.query", fmt.Sprintf("%s selects less than what it is divided by: with no such series the answer is empty, and the measurement an Error", b.LHS),
			"add `or vector(0)` to the numerator, or let the condition speak of it: len(result) == 0 || …")
		return nil
	})
}

// narrower says that a side selects one metric as the other does, with more matchers,
// and has nothing to stand in for it.
func narrower(left, right parser.Expr) bool {
	standsIn := false
	parser.Inspect(left, func(node parser.Node, _ []parser.Node) error {
		b, ok := node.(*parser.BinaryExpr)
		standsIn = standsIn || ok && b.Op == parser.LOR
		return nil
	})
	l, r := parser.ExtractSelectors(left), parser.ExtractSelectors(right)
	return !standsIn && len(l) == 1 && len(r) == 1 && len(l[0]) > len(r[0]) && within(r[0], l[0])
}

func within(some, all []*labels.Matcher) bool {
	for _, a := range some {
		if !slices.ContainsFunc(all, func(b *labels.Matcher) bool { return a.String() == b.String() }) {
			return false
		}
	}
	return true
}
