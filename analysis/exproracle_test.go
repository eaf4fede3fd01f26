package analysis

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// argo evaluates a condition as Argo Rollouts does: compiled for the value at hand,
// without a limit of ours, with its environment.
func argo(value any, condition string) (bool, error) {
	absent := value == nil
	env := map[string]any{
		"result":  value,
		"isNaN":   math.IsNaN,
		"isInf":   func(f float64) bool { return math.IsInf(f, 0) },
		"isNil":   func(any) bool { return absent },
		"asInt":   argoInt,
		"asFloat": argoFloat,
		"default": func(_, otherwise any) any {
			if absent {
				return otherwise
			}
			return value
		},
	}
	program, err := expr.Compile(condition, expr.Env(env))
	if err != nil {
		return false, err
	}
	out, err := expr.Run(program, env)
	if err != nil {
		return false, err
	}
	holds, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("expected bool, but got %T", out)
	}
	return holds, nil
}

func argoInt(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case int64:
		return v
	case int:
		return int64(v)
	case string:
		i, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			panic(err)
		}
		return i
	}
	panic(fmt.Sprintf("asInt() not supported on %v %v", reflect.TypeOf(v), v))
}

func argoFloat(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	case int:
		return float64(v)
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			panic(err)
		}
		return f
	}
	panic(fmt.Sprintf("asFloat() not supported on %v %v", reflect.TypeOf(v), v))
}

// argoList is a list as Argo's Prometheus provider gives it.
func argoList(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	numbers := []float64{}
	for _, item := range list {
		f, ok := item.(float64)
		if !ok {
			return v
		}
		numbers = append(numbers, f)
	}
	return numbers
}

func entries(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// shapes are values of every shape that a provider gives.
func shapes() []any {
	numbers := []any{
		0.0, 0.0005, 0.04, 0.5, 0.9, 0.95, 0.96, 1.0, 1.1, 2.0, 3.9, 10.0, 29.0, 31.0, 60.0, 200.0, 404.0, 9900.0, -1.0, -0.5,
		9e15, 1e300, -1e300, nan, inf, -inf,
	}
	texts := []any{"", "true", "false", "ok", "200", "healthy", "1", "1.2", "0.97", "31", "-4", "NaN", "Inf", "x y", "B", "é", "It worked!", "9999999999999999999"}
	lists := []any{
		list(), list(nil), list(true), list(false), list("healthy"), list("normal", "x"), list(1.0, "a"), list("a", 1.0), list("a", 5000.0), list(5000.0, "a"),
		list(nil, 5000.0), list(0.5, nil), list(nan, "a"), list(true, 0.5),
		list(list()), list(list(0.96, 0.97)), list(list(0.96), 1.0), list(list(nan)), list(entries()),
		list(nan), list(0.5, nan), list(nan, 0.5), list(inf), list(-inf, 1.0), list(96.0, 300.0), list(0.96, 300.0), list(0.89, 401.0), list(0.5, 1.0),
		list(2.0, 2.0), list(10.0, 11.0), list(9.0, 10.0, 19.0), list(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), list(1000.0, 2000.0), list(0.0, 0.0), list(2.0, 0.0),
	}
	for _, n := range numbers {
		lists = append(lists, list(n))
	}
	all := append([]any{nil, true, false}, numbers...)
	all = append(append(all, texts...), lists...)
	return append(append(all, records()...), objects()...)
}

// records are lists of maps, such as a series of CloudWatch or the groups of a monitor.
func records() []any {
	return []any{
		list(entries("count", 10.0), entries("count", 11.0), entries("count", 12.0)),
		list(entries("count", "10")),
		list(entries("value", 0.97)), list(entries("value", list(1.0, "0"))), list(entries("value", list(1.0, 0.0))), list(entries("value", nil)),
		list(entries("Values", list(0.1))), list(entries("Values", list(0.1, 0.0, 0.01, 0.002, 0.0))), list(entries("Values", list(0.0, 0.0, 0.01, 0.002, 0.0))),
		list(entries("Values", list())), list(entries("Values", list(nan, 0.0, 0.0, 0.0, 0.0))), list(entries("Values", entries())),
		list(entries("name", "Alert", "count", 2.0), entries("name", "OK", "count", 3.0)), list(entries("name", "Alert", "count", 0.0)),
		list(entries("name", "Alert")), list(entries("name", 3.0, "count", 1.0)), list(entries("name", "OK"), 1.0), list(1.0, entries("name", "Alert", "count", 2.0)),
		list(entries("errorRateDeviation", 2.0), entries("errorRateDeviation", 2.4)), list(entries("errorRateDeviation", 2.0), entries("errorRateDeviation", 3.4)),
	}
}

func objects() []any {
	all := []any{
		entries(), entries("ok", true), entries("ok", false), entries("ok", true, "successPercent", 0.95), entries("ok", true, "successPercent", 0.5),
		entries("ok", false, "successPercent", 0.5), entries("ok", "true", "successPercent", 0.95), entries("successPercent", 0.5), entries("ok", true, "latency", 100.0),
		entries("ok", nil, "latency", 1000.0), entries("successRate", 0.96), entries("successRate", nan), entries("successRate", "0.96"), entries("successRate", nil),
		entries("major", "1"), entries("major", 1.0), entries("major", nil), entries("count", 10.0), entries("count", 11.0, "average.duration", 14.0), entries("count", "10"),
		entries("count", 10.0, "average.duration", 14.0), entries("count", 10.0, "average.duration", nil), entries("average.duration", 20.0),
		entries("a", 1.0, "b", true, "c", list(1.0, 2.0, 3.0, 4.0), "d", nil), entries("a", 1.0, "b", true, "c", list(1.0, 7.0)), entries("a", 1.0, "b", true, "c", list()),
		entries("a", 2.0, "b", true, "c", list(1.0), "d", 3.0), entries("a", 0.0), entries("a", "x", "b", false), entries("a", 3.0, "b", 1.0), entries("a", 3.0, "b", true, "c", entries()),
		entries("a", 3.0, "b", true, "c", list(7.0, "x")), entries("a", 3.0, "b", true, "c", list("x", 7.0)), entries("a", 3.0, "b", true, "c", nil), entries("a", 3.0, "b", true, "c", "abc"), entries("b", false),
		entries("num", 1.2, "bool", true, "mapfield", entries("foo", "bar")), entries("num", 1.2, "bool", true, "mapfield", entries()), entries("num", 1.2, "bool", true),
		entries("num", 1.0, "bool", true, "mapfield", entries("foo", "bar")), entries("num", 1.2, "bool", true, "mapfield", list()), entries("num", 1.2, "bool", "x"),
		entries("Status", 999.0), entries("Status", -1.0), entries("Name", "hi"), entries("variant", "treatment"), entries("variant", true), entries("completed", true), entries("completed", 1.0),
		entries("decision", "promote"), entries("decision", "rollback"), entries("decision", "PROMOTE"), entries("decision", nil), entries("recommendation", "promote"),
		entries("statusCode", 200.0), entries("statusCode", 500.0), entries("exitCode", 0.0), entries("code", 204.0), entries("code", 404.0), entries("code", nil), entries("code", list(1.0)),
		entries("status", "200"), entries("status", 200.0), entries("status", "healthy"), entries("status", "x"), entries("status", 299.9), entries("status", nan), entries("status", true),
		entries("errorRate", 0.01), entries("errorRate", 0.01, "requestCount", 500.0), entries("errorRate", 0.5, "requestCount", "x"), entries("requestCount", 1.0), entries("errorRate", "x", "requestCount", 1.0),
		entries("n", nan), entries("service_apdex", entries("values", entries("values", list(entries("value", "9900"), entries("value", 9950.0))))),
		entries("service_apdex", entries("values", entries("values", list(entries("value", "9900"), entries("value", 5.0))))), entries("service_apdex", entries("values", entries("values", list(entries(), entries("value", 5.0))))),
		entries("service_apdex", entries("values", entries("values", list()))), entries("service_apdex", entries("values", nil)), entries("service_apdex", entries("values", entries("values", entries()))),
	}
	for _, status := range []any{
		nil, list(), list(entries("name", "Alert", "count", 2.0)), list(entries("name", "OK", "count", 2.0)), list(entries("name", "Alert", "count", 0.0)), list(entries("name", "Alert")),
		list(entries("count", 1.0), entries("name", "Alert", "count", 3.0)), list(entries("name", "Alert", "count", "x"), entries("name", "Alert", "count", 3.0)), "x", entries(), entries("k", entries("name", "Alert")),
	} {
		all = append(all, entries("counts", entries("status", status)))
	}
	for _, field := range []string{"Status", "decision", "statusCode", "exitCode", "recommendation"} {
		all = append(all, entries(field, entries()), entries(field, "999"), entries(field, true))
	}
	all = append(all, entries("num", 1.2, "bool", true, "mapfield", entries("foo", 1.0)), list(entries("Values", list("0.1"))), list(entries("Values", list(0.0, 0.0, 0.0, "x", 2.0))),
		list("x", 1.0), list(list("x", 0.5)), list(list("x", 0.5), 1.0), list(entries("Values", "abcde")), list(entries("Values", list(true, 5.0, 0.0, 0.0, 0.0))),
		entries("counts", entries("status", list(entries("name", 1.0, "count", 3.0)))), entries("counts", entries("status", list(1.0, entries("name", "OK")))),
		entries("counts", entries("status", list(entries("name", 1.0)))))
	all = append(all, entries("counts", entries()), entries("counts", nil), entries("counts", 1.0))
	for _, state := range []any{"breached", "ok", nil, 1.0} {
		slos := list(entries("overall_status", list(entries("state", "ok"), entries("state", state))), entries("overall_status", list(entries("state", state))))
		all = append(all, entries("slos", slos))
	}
	all = append(all, entries("slos", list(entries())), entries("slos", list()), entries("slos", list(entries("overall_status", list(1.0, entries("state", "breached"))))))
	for _, json := range []any{nil, entries(), entries("status", entries("sync", entries("status", "Synced"), "health", entries("status", "Healthy"))), entries("status", entries("sync", entries("status", "Synced")))} {
		all = append(all, entries("statusCode", 200.0, "json", json))
	}
	return all
}

// verdict of one evaluation, for comparison.
func verdict(holds bool, err error) string {
	if err != nil {
		return "error"
	}
	return strconv.FormatBool(holds)
}

// providersOf are a provider of number lists and one of JSON.
var providersOf = map[string]v1alpha1.MetricProvider{
	"prometheus": {Prometheus: &v1alpha1.PrometheusMetric{}},
	"web":        {Web: &v1alpha1.WebMetric{}},
}

// ours says why a verdict is not Argo's, and what it is, where it isn't meant to be.
func ours(c *condition, value any) (reason string, verdicts []string) {
	switch {
	case isEmpty(value) && c.usesResult && !c.guardsAbsence:
		return "an unguarded use of no data", []string{"error"}
	case value == nil && strings.Contains(c.text, "nil"), value == nil && strings.Contains(c.text, "isNil"):
		// Argo's checker refuses "result == nil || result < 1" for no data: nil < 1 has
		// no type, even where it is never reached.
		return "a guard for no data is enough", []string{"true", "false"}
	case strings.Contains(c.text, "asInt") && outOfInt(value):
		// Argo converts NaN, Inf and what is too large to whatever the processor gives.
		return "no integer", []string{"error"}
	}
	return "", nil
}

func outOfInt(value any) bool {
	switch v := value.(type) {
	case float64:
		return math.IsNaN(v) || math.Abs(v) >= 1<<63
	case map[string]any:
		return outOfInt(v["status"])
	}
	return false
}

func TestExprGivesArgosVerdicts(t *testing.T) {
	at := time.Date(2026, 8, 17, 10, 0, 0, 0, time.UTC)
	seen := map[string]int{}
	for _, c := range readCorpus(t) {
		for name, provider := range providersOf {
			compiled, err := compile(v1alpha1.Metric{ConditionLanguage: v1alpha1.ConditionExpr, Provider: provider}, "successCondition", c.expr)
			for _, value := range shapes() {
				given := value
				if name == "prometheus" {
					if given = argoList(value); cmp.Equal(given, value, cmpopts.EquateNaNs()) {
						continue // the other provider has asked
					}
				}
				want, got := verdict(argo(given, c.expr)), "error"
				var allowed []string
				var reason string
				if err == nil {
					got = verdict(compiled.holds(value, at))
					reason, allowed = ours(compiled, value)
				}
				if seen[got]++; got == want {
					continue
				}
				if seen[reason]++; !slices.Contains(allowed, got) {
					t.Errorf("%s: %s over %s: got %s, Argo gives %s", name, c.expr, Text(value), got, want)
				}
			}
		}
	}
	for _, one := range []string{"true", "false", "error", "an unguarded use of no data", "a guard for no data is enough", "no integer"} {
		if seen[one] == 0 {
			t.Errorf("no condition and value gave %s", one)
		}
	}
}

// series is what Argo gives the conditions of CloudWatch; here it is a map.
type series struct {
	Id, Label  string
	StatusCode string
	Values     []float64
}

func TestExprOverSeriesGivesArgosVerdicts(t *testing.T) {
	conditions := []string{"len(result[0].Values) > 0 && result[0].Values[0] < 1", "result[0].Label == 'errors'", "all(result, {all(.Values, {# < 1})})", "result[1].Values[0] > 1"}
	for _, c := range readCorpus(t) {
		if c.kind == "series" {
			conditions = append(conditions, c.expr)
		}
	}
	for _, text := range conditions {
		c, err := compileExpr(text, numbersOnly(v1alpha1.MetricProvider{CloudWatch: &v1alpha1.CloudWatchMetric{}}))
		if err != nil {
			t.Fatal(err)
		}
		for _, values := range [][]float64{{0.1}, {0.1, 0, 0, 0, 0}, {0, 0, 0.01, 0, 0}, {nan, 0, 0, 0, 0}, {5}} {
			given := []any{}
			for _, v := range values {
				given = append(given, v)
			}
			want := verdict(argo([]series{{Id: "rate", Label: "errors", StatusCode: "Complete", Values: values}}, text))
			got := verdict(c.holds(list(entries("Id", "rate", "Label", "errors", "StatusCode", "Complete", "Values", given)), time.Time{}))
			if got != want {
				t.Errorf("%s over %v: got %s, Argo gives %s", text, values, got, want)
			}
		}
	}
}
