package analysis

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// proveEqual checks that a form in CEL gives the verdicts of an expr condition over
// every shape of value, but where its differences say. It gives those that no value
// shows.
func proveEqual(t interface {
	Helper()
	Errorf(string, ...any)
}, condition string, form CELForm, values []any) (unseen []Difference) {
	t.Helper()
	given, err := compileExpr(condition, false)
	if err != nil {
		t.Errorf("%s: %v", condition, err)
		return nil
	}
	offered, err := compileCEL(form.Condition)
	if err != nil {
		t.Errorf("%s: the form %s is refused: %v", condition, form.Condition, err)
		return nil
	}
	seen := map[Difference]bool{}
	for _, value := range values {
		holds, exprErr := given.holds(value, time.Time{})
		formHolds, celErr := offered.holds(value, time.Time{})
		want, got := verdict(holds, exprErr), verdict(formHolds, celErr)
		excused := want == got
		for _, d := range form.Differences {
			if want != got && onlyIn[d](want, got) && (d != DiffersOnItems || !cmp.Equal(value, any(list()))) {
				seen[d], excused = true, true
			}
		}
		if want == got {
			sameJudgement(t, given, offered, value)
		}
		if !excused {
			t.Errorf("%s\n  over %s gives %s (%v),\n  but %s gives %s (%v)", condition, Text(value), want, exprErr, form.Condition, got, celErr)
		}
	}
	for _, d := range form.Differences {
		if !seen[d] {
			unseen = append(unseen, d)
		}
	}
	return unseen
}

// sameJudgement checks the phases, in which NaN that no condition speaks of counts.
func sameJudgement(t interface{ Errorf(string, ...any) }, a, b *condition, value any) {
	for _, pair := range [][2]Conditions{{{success: a}, {success: b}}, {{failure: a}, {failure: b}}} {
		want, _ := Judge(pair[0], value, time.Time{})
		if got, message := Judge(pair[1], value, time.Time{}); got != want {
			t.Errorf("%s over %s is %s, but %s is %s (%s)", a.text, Text(value), want, b.text, got, message)
		}
	}
}

// onlyIn says on which side a difference is an error.
var onlyIn = map[Difference]func(expr, cel string) bool{
	DiffersOnTypes: func(expr, cel string) bool { return cel == "error" },
	DiffersOnZero:  func(expr, cel string) bool { return cel == "error" },
	DiffersOnItems: func(expr, cel string) bool { return expr == "error" },
}

// sameThere are conditions of which a part that could differ isn't got to: what is no
// number ends at isNaN already.
var sameThere = map[string]bool{"isNaN(result[0]) || result[0] == 0": true}

func TestEachFormInCELIsEqual(t *testing.T) {
	offered, all := 0, shapes()
	for _, c := range readCorpus(t) {
		form, err := CELFormOf(c.expr)
		if err != nil {
			continue // TestCorpusHasTheFormsInCEL wants the reason
		}
		offered++
		unseen := proveEqual(t, c.expr, form, all)
		if len(unseen) > 0 && !sameThere[c.expr] {
			t.Errorf("%s: no value shows how %s differs on %v", c.expr, form.Condition, unseen)
		}
	}
	if offered < 150 {
		t.Errorf("%d conditions have a form, want 150", offered)
	}
}

func TestNoFormSaysWhereAndWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		condition    string
		line, column int
	}{
		"a function":              {"sum(result) > 3", 1, 1},
		"a variable":              {"let x = result; x > 3", 1, 5},
		"a choice of values":      {"(result ?? 0) < 1", 1, 9},
		"optional":                {"result?.a > 1", 1, 9},
		"the end of a list":       {"result[0] > 1 &&\n  result[-1] > 1", 2, 9},
		"default of a part":       {"default(result[0], 0) < 1", 1, 1},
		"isNil of a part":         {"isNil(result.a)", 1, 1},
		"two types":               {"isNaN(result) || result[0] > 1", 1, 15},
		"a guard that cuts short": {"result == nil && result > 5", 1, 15},
		"integers of others":      {"result % 2 == 1", 1, 8},
		"integers that wrap":      {"asInt(result) * 9 > 1", 1, 15},
		"two bools":               {"result[0] > result[1]", 1, 11},
		"a sum of anything":       {"result[0] + result[1] > 1", 1, 11},
		"a method":                {"result.Name() == 'hi'", 1, 8},
		"null and text":           {`result != nil && result contains "x"`, 1, 25},
		"power":                   {"result ** 2 > 4", 1, 8},
		"count":                   {"count(result, # > 1) == 0", 1, 1},
		"a reduction":             {"reduce(result, #acc + #, 0) > 1", 1, 1},
		"a name that has() can't": {`result["a b"] == 1`, 1, 15},
		"a time":                  {"now().Hour() > 1", 1, 7},
		"a range":                 {"result in 1..3", 1, 12},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := CELFormOf(tc.condition)
			var none *NoCELForm
			if !errors.As(err, &none) {
				t.Fatalf("got %+v, %v, want no form", form, err)
			}
			if none.Line != tc.line || none.Column != tc.column {
				t.Errorf("%v: want line %d, column %d", none, tc.line, tc.column)
			}
		})
	}
	var refused *SyntaxError
	if _, err := CELFormOf("result >"); !errors.As(err, &refused) {
		t.Errorf("got %v, want a SyntaxError", err)
	}
}
