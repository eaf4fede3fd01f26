package analysis

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var nan, inf = math.NaN(), math.Inf(1)

func list(items ...any) []any {
	if items == nil {
		return []any{}
	}
	return items
}

// verdictOf judges a value by a success condition alone: T, F, I or E.
func verdictOf(t *testing.T, m v1alpha1.Metric, value any) (string, string) {
	t.Helper()
	c, err := Compile(m)
	if err != nil {
		return "refused", err.Error()
	}
	phase, message := Judge(c, value, time.Date(2026, 8, 17, 10, 0, 0, 0, time.UTC))
	return string(phase), message
}

const (
	yes   = string(v1alpha1.AnalysisPhaseSuccessful)
	no    = string(v1alpha1.AnalysisPhaseFailed)
	maybe = string(v1alpha1.AnalysisPhaseInconclusive)
	fault = string(v1alpha1.AnalysisPhaseError)
)

func TestSuccessConditions(t *testing.T) {
	type row struct {
		condition string
		value     any
		cel, expr string
	}
	for _, tc := range []row{
		{"result > 0.5", 0.6, yes, yes},
		{"result > 0.5", 0.5, no, no},
		{"result >= 1", 1.0, yes, yes},
		{"result == 1", 1.0, yes, yes},
		{"1 == result", 1.0, yes, yes},
		{"result != 1", 1.0, no, no},
		{"result != 1", 2.0, yes, yes},
		{"result[0] >= 1", list(1.0), yes, yes},
		{"result[0] == 1", list(1.0), yes, yes},
		{"result[0] == 2", list(1.0), no, no},
		{"result > 0.5 * 2", 1.5, yes, yes},
		{"result > 0.5 * 2", 1.0, no, no},
		{"result[0] / 2 < 1", list(1.5), yes, yes},
		{"result[0] / 2 == 1", list(2.0), yes, yes},
		{"result[0] * 100 > 95", list(0.96), yes, yes},
		{"100 * result[0] > 95", list(0.94), no, no},
		{"result[0] + 1 == 3", list(2.0), yes, yes},
		{"1 - result[0] < 0.05", list(0.96), yes, yes},
		{"result[0] < 5 / 100", list(0.04), yes, yes},
		{"result[0] < 1 / 2", list(0.4), yes, yes},
		{"-result[0] < -1", list(2.0), yes, yes},
		{"result < -1", -2.0, yes, yes},
		{"result[0] % 2 == 1", list(3.0), yes, fault},
		{"result[0] > result[1]", list(2.0, 1.0), yes, yes},
		{"result[0] / result[1] < 1", list(1.0, 2.0), yes, yes},
		{"len(result) > 0 && result[0] < 0.5", list(0.1), yes, yes},
		{"len(result) > 0 && result[0] < 0.5", list(), no, no},
		{"len(result) == 0 || result[0] < 0.5", list(), yes, yes},
		{"len(result) == 2", list(1.0, 2.0), yes, yes},
		{"asInt(result) >= 3", "3", yes, yes},
		{"asInt(result) >= 3", 3.9, yes, yes},
		{"asInt(result) >= 3", "x", fault, fault},
		{"asInt(result) >= 3", nan, fault, fault},
		{"asInt(result) >= 3", true, fault, fault},
		{"asFloat(result) < 0.95", "0.91", yes, yes},
		{"asFloat(result) < 1", 0.91, yes, yes},
		{"asFloat(result) == 1", "1", yes, yes},
		{"asFloat(result) < 1", list(0.5), fault, fault},
		{"isNaN(result[0]) || result[0] < 1", list(nan), yes, yes},
		{"!isNaN(result) && result < 1", nan, no, no},
		{"isInf(result)", inf, yes, yes},
		{"isInf(result)", -inf, yes, yes},
		{"isInf(result)", 1.0, no, no},
		{"isNaN(result)", "x", fault, fault},
		{"isNil(result) || result < 1", nil, yes, yes},
		{"isNil(result)", 1.0, no, no},
		{"default(result, 0) < 1", nil, yes, yes},
		{"default(result, 0) < 1", 2.0, no, no},
		{"result < 1", nil, fault, fault},
		{"result < 1", list(), fault, fault},
		{"result[0] < 1", list(), fault, fault},
		{"result[0] < 1", nil, fault, fault},
		{"result >= 0", list(2.0), fault, fault},
		{"result[0] >= 0", 2.0, fault, fault},
		{"result >= 0", "2", fault, fault},
		{"result == 'ok'", "ok", yes, yes},
		{"result == \"ok\"", "bad", no, no},
		{"result == true", true, yes, yes},
		{"result", true, yes, yes},
		{"result", 1.0, fault, fault},
		{"result.status == 'ok' && result.n > 2", map[string]any{"status": "ok", "n": 3.0}, yes, yes},
		{"result[5] < 1", list(0.5), fault, fault},
		{"true", list(), yes, yes},
		{"result[0] < 0.05", list(nan), no, no},
		{"!(result[0] > 0.05)", list(nan), maybe, maybe},
		{"result[0] < 1", list(inf), no, no},
		{"result[0] > 1", list(inf), yes, yes},
	} {
		for language, want := range map[v1alpha1.ConditionLanguage]string{
			v1alpha1.ConditionCEL: tc.cel, v1alpha1.ConditionExpr: tc.expr,
		} {
			t.Run(string(language)+" "+tc.condition+" "+Text(tc.value), func(t *testing.T) {
				got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: tc.condition, ConditionLanguage: language}, tc.value)
				if got != want {
					t.Errorf("got %s (%s), want %s", got, message, want)
				}
				if got != yes && message == "" {
					t.Error("no message")
				}
			})
		}
	}
}

func TestConditionsOfOneLanguage(t *testing.T) {
	for name, tc := range map[string]struct {
		language  v1alpha1.ConditionLanguage
		condition string
		value     any
		want      string
	}{
		"cel all":                      {v1alpha1.ConditionCEL, "result.all(x, x < 1)", list(0.5, 0.6), yes},
		"cel all, one over":            {v1alpha1.ConditionCEL, "result.all(x, x < 1)", list(0.5, 1.6), no},
		"cel all of nothing":           {v1alpha1.ConditionCEL, "result.all(x, x < 1)", list(), fault},
		"cel all of nothing, guarded":  {v1alpha1.ConditionCEL, "size(result) == 0 || result.all(x, x < 1)", list(), yes},
		"cel exists":                   {v1alpha1.ConditionCEL, "result.exists(x, x == 2)", list(1.0, 2.0), yes},
		"cel map of nothing":           {v1alpha1.ConditionCEL, "result.map(x, x * 2).all(x, x < 1)", list(), fault},
		"cel filter":                   {v1alpha1.ConditionCEL, "len(result.filter(x, x > 1)) < 2", list(0.5, 2.0), yes},
		"cel in":                       {v1alpha1.ConditionCEL, "result in [1, 2]", 2.0, yes},
		"cel null":                     {v1alpha1.ConditionCEL, "result == null || result < 1", nil, yes},
		"cel null, data":               {v1alpha1.ConditionCEL, "result == null || result < 1", 0.5, yes},
		"cel len of null":              {v1alpha1.ConditionCEL, "len(result) == 0", nil, yes},
		"cel has":                      {v1alpha1.ConditionCEL, "has(result.a) && result.a > 1", map[string]any{"b": 1.0}, no},
		"cel missing key":              {v1alpha1.ConditionCEL, "result.a > 1", map[string]any{"b": 1.0}, fault},
		"cel divide by zero":           {v1alpha1.ConditionCEL, "result[0] / result[1] < 1", list(1.0, 0.0), fault},
		"cel integer division":         {v1alpha1.ConditionCEL, "5 / 100 == 0.05", list(1.0), yes},
		"cel string plus":              {v1alpha1.ConditionCEL, "result + 'b' == 'ab'", "a", yes},
		"cel list plus":                {v1alpha1.ConditionCEL, "len(result + [1]) == 2", list(1.0), yes},
		"cel integers stay":            {v1alpha1.ConditionCEL, "len(result) + 1 == 3", list(1.0, 2.0), yes},
		"cel ternary":                  {v1alpha1.ConditionCEL, "(len(result) > 0 ? result[0] : 0.0) < 1", list(), yes},
		"cel cost":                     {v1alpha1.ConditionCEL, "result.all(a, result.all(b, result.all(c, result.all(d, a + b + c + d > 0))))", many(100), fault},
		"expr all":                     {v1alpha1.ConditionExpr, "all(result, # < 1)", list(0.5, 0.6), yes},
		"expr all of nothing":          {v1alpha1.ConditionExpr, "all(result, # < 1)", list(), fault},
		"expr any":                     {v1alpha1.ConditionExpr, "any(result, {# > 1})", list(0.5, 1.6), yes},
		"expr sum":                     {v1alpha1.ConditionExpr, "sum(result) == 3", list(1.0, 2.0), yes},
		"expr max":                     {v1alpha1.ConditionExpr, "max(result) < 3", list(1.0, 2.0), yes},
		"expr nil":                     {v1alpha1.ConditionExpr, "result == nil || result < 1", nil, yes},
		"expr isNil ignores argument":  {v1alpha1.ConditionExpr, "isNil(1)", nil, yes},
		"expr default ignores it too":  {v1alpha1.ConditionExpr, "default(1, 7) == 7", nil, yes},
		"expr now is the time given":   {v1alpha1.ConditionExpr, "now().Year() == 2026 && result == 1", 1.0, yes},
		"expr memory":                  {v1alpha1.ConditionExpr, "len(1..1000000) > 0 && all(1..1000000, len(1..1000000) > 0)", 1.0, fault},
		"expr coalesce is a guard":     {v1alpha1.ConditionExpr, "(result ?? 0) < 1", nil, yes},
		"expr filter":                  {v1alpha1.ConditionExpr, "len(filter(result, # > 1)) == 0", list(0.5), yes},
		"expr string number compare":   {v1alpha1.ConditionExpr, "result == '1'", 1.0, fault},
		"unknown language":             {"Lua", "true", 1.0, "refused"},
		"cel unknown variable":         {v1alpha1.ConditionCEL, "results > 1", 1.0, "refused"},
		"expr unknown variable":        {v1alpha1.ConditionExpr, "results > 1", 1.0, "refused"},
		"cel number is no bool":        {v1alpha1.ConditionCEL, "1 + 1", 1.0, "refused"},
		"expr number is no bool":       {v1alpha1.ConditionExpr, "1 + 1", 1.0, "refused"},
		"cel syntax":                   {v1alpha1.ConditionCEL, "result >", 1.0, "refused"},
		"expr syntax":                  {v1alpha1.ConditionExpr, "result >", 1.0, "refused"},
		"cel typed mismatch":           {v1alpha1.ConditionCEL, "len(result) == 'x'", 1.0, "refused"},
		"cel text in arithmetic":       {v1alpha1.ConditionCEL, "1 + 'x' == 2", 1.0, "refused"},
		"cel number beside a measured": {v1alpha1.ConditionCEL, "len(result) == result[0] / 2.0", list(2.0), "refused"},
		"cel clock":                    {v1alpha1.ConditionCEL, "now() > 1", 1.0, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: tc.condition, ConditionLanguage: tc.language}, tc.value)
			if got != tc.want {
				t.Errorf("got %s (%s), want %s", got, message, tc.want)
			}
		})
	}
}

func many(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = float64(i + 1)
	}
	return out
}

func TestSyntaxErrorHasAPosition(t *testing.T) {
	for _, language := range []v1alpha1.ConditionLanguage{v1alpha1.ConditionCEL, v1alpha1.ConditionExpr} {
		_, err := Compile(v1alpha1.Metric{FailureCondition: "1 < 2 &&\n  nope > 1", ConditionLanguage: language})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Fatalf("%s: got %v, want a SyntaxError", language, err)
		}
		if syntax.Field != "failureCondition" || syntax.Line != 2 || syntax.Column != 3 {
			t.Errorf("%s: got %s at %d:%d, want failureCondition at 2:3", language, syntax.Field, syntax.Line, syntax.Column)
		}
	}
}

func TestC40_EmptyResultReachesCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		condition string
		value     any
		want      string
	}{
		"unguarded index":        {"result[0] < 1", list(), fault},
		"unguarded, nulls alone": {"result.all(x, x != 5)", list(nil, nil), fault},
		"guarded, nulls alone":   {"result.all(x, x == null || x < 1)", list(nil, nil), yes},
		"a null and a number":    {"result.all(x, x != 5)", list(nil, 1.0), yes},
		"unguarded index, null":  {"result[0] < 1", nil, fault},
		"guarded":                {"len(result) == 0 || result[0] < 1", list(), yes},
		"guarded the other way":  {"len(result) > 0 && result[0] < 1", list(), no},
		"compared with null":     {"result == null", nil, yes},
		"list is not null":       {"result == null", list(), no},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(v1alpha1.Metric{SuccessCondition: tc.condition})
			if err != nil {
				t.Fatal(err)
			}
			got, message := Judge(c, tc.value, time.Time{})
			if string(got) != tc.want {
				t.Errorf("got %s (%s), want %s", got, message, tc.want)
			}
			if tc.want == fault && !strings.Contains(message, "empty result; guard with len(result) > 0") {
				t.Errorf("message %q has no hint", message)
			}
		})
	}
	if got := Text(list()); got != "[]" {
		t.Errorf("the value is recorded as %q, want []", got)
	}
}

func TestC61_NaN(t *testing.T) {
	const under, over = "result[0] < 0.05", "result[0] >= 0.05"
	for name, tc := range map[string]struct {
		success, failure string
		value            any
		want             string
	}{
		"success only":                 {under, "", list(nan), no},
		"both":                         {under, over, list(nan), maybe},
		"failure only":                 {"", over, list(nan), maybe},
		"failure only, scalar":         {"", "result > 1", nan, maybe},
		"failure only, a number":       {"", over, list(0.01), yes},
		"failure only, guarded":        {"", "!isNaN(result[0]) && result[0] > 0.05", list(nan), yes},
		"failure that speaks of NaN":   {"", "isNaN(result[0]) || result[0] > 0.05", list(nan), no},
		"success that speaks of NaN":   {"isNaN(result[0]) || result[0] < 0.05", "", list(nan), yes},
		"what isn't itself":            {"result[0] != result[0] || result[0] < 0.05", "", list(nan), yes},
		"a constant is no word":        {"1 == 1", "", list(nan), maybe},
		"negated comparison":           {"!(result[0] >= 0.05)", "", list(nan), maybe},
		"one of several series is NaN": {"", "result.exists(x, x > 1)", list(0.5, nan), maybe},
		"infinite":                     {under, "", list(inf), no},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: tc.success, FailureCondition: tc.failure}, tc.value)
			if got != tc.want {
				t.Errorf("got %s (%s), want %s", got, message, tc.want)
			}
		})
	}
	for value, want := range map[float64]string{inf: "[+Inf]", -inf: "[-Inf]"} {
		if got := Text(list(value)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Text(list(0.5, nan)); got != "[0.5,NaN]" {
		t.Errorf("got %s, want [0.5,NaN]", got)
	}
}

func TestC62_MismatchNamesBothTypes(t *testing.T) {
	for _, language := range []v1alpha1.ConditionLanguage{v1alpha1.ConditionCEL, v1alpha1.ConditionExpr} {
		got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: "result >= 0", ConditionLanguage: language}, list(2.0))
		if got != fault {
			t.Errorf("%s: got %s, want %s", language, got, fault)
		}
		for _, name := range []string{"list", "int"} {
			if !strings.Contains(message, name) {
				t.Errorf("%s: message %q does not name %s", language, message, name)
			}
		}
	}
}

func TestC19_NullIsNoData(t *testing.T) {
	for condition, want := range map[string]string{
		"result < 0.05":                   fault,
		"result == null || result < 0.05": yes,
		"result[0] < 0.05":                fault,
	} {
		got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: condition}, nil)
		if got != want {
			t.Errorf("%s: got %s (%s), want %s", condition, got, message, want)
		}
	}
	got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: "result[0] < 0.05"}, list(nil))
	if got != fault {
		t.Errorf("a null in a list: got %s (%s), want %s", got, message, fault)
	}
}

func TestJudgeByBothConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		success, failure string
		want             string
	}{
		"failure is asked first":         {"true", "true", no},
		"success":                        {"true", "false", yes},
		"neither":                        {"false", "false", maybe},
		"failure alone, not true":        {"", "false", yes},
		"failure alone":                  {"", "true", no},
		"success alone, not true":        {"false", "", no},
		"no condition can't be judged":   {"", "", fault},
		"failure that can't be told":     {"true", "result[9] > 1", fault},
		"success that can't be told":     {"result[9] > 1", "false", fault},
		"failure wins over a broken one": {"result[9] > 1", "true", no},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: tc.success, FailureCondition: tc.failure}, list(1.0))
			if got != tc.want {
				t.Errorf("got %s (%s), want %s", got, message, tc.want)
			}
		})
	}
}

// The conditions of a template in Argo's form, over what Prometheus gives.
func TestArgoTemplateInExpr(t *testing.T) {
	m := v1alpha1.Metric{
		ConditionLanguage: v1alpha1.ConditionExpr,
		SuccessCondition:  "len(result) > 0 && result[0] < 0.5",
		FailureCondition:  "len(result) > 0 && (isNaN(result[0]) || result[0] >= 0.5)",
	}
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"fast":    {list(0.1), yes},
		"slow":    {list(0.7), no},
		"NaN":     {list(nan), no},
		"no data": {list(), maybe},
	} {
		if got, message := verdictOf(t, m, tc.value); got != tc.want {
			t.Errorf("%s: got %s (%s), want %s", name, got, message, tc.want)
		}
	}
}

// A wrong type is never a success: false is not "false".
func TestComparingTwoTypesIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		success, failure string
		value            any
		want             string
	}{
		"text and a bool":            {"", `result == "false"`, false, fault},
		"a bool and text":            {"", `result != true`, "true", fault},
		"text and a number":          {`result == "1"`, "", 1.0, fault},
		"a field":                    {`result.status == 200`, "", map[string]any{"status": "200"}, fault},
		"an item":                    {`result.exists(x, x == "a")`, "", list(1.0), fault},
		"a list and a number":        {"result == 1", "", list(1.0), fault},
		"numbers are one type":       {"result == 1", "", 1.0, yes},
		"null is no type":            {"result.a == null", "", map[string]any{"a": 1.0}, no},
		"one that decides is enough": {`result == "a" || result == 1`, "", "a", yes},
		"in a list of many types":    {`result in ["a", 1]`, "", 1.0, yes},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: tc.success, FailureCondition: tc.failure}, tc.value)
			if got != tc.want {
				t.Errorf("got %s (%s), want %s", got, message, tc.want)
			}
		})
	}
	var unlike *mismatch
	c, err := compileCEL(`result == "1"`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(1.0, time.Time{}); !errors.As(err, &unlike) || unlike.left != "double" || unlike.right != "string" {
		t.Errorf("got %v, want both types", err)
	}
}
