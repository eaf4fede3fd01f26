package analysis

import (
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
