package analysis

import (
	"testing"
	"time"
)

// proveEqual checks that a form in CEL gives the verdicts of an expr condition over
// every shape of value, but where the differences say; and that each of them is seen.
func proveEqual(t *testing.T, condition, form string, differences []Difference) (unseen []Difference) {
	t.Helper()
	given, err := compileExpr(condition, false)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	offered, err := compileCEL(form)
	if err != nil {
		t.Errorf("%s: the form %s is refused: %v", condition, form, err)
		return nil
	}
	seen := map[Difference]bool{}
	for _, value := range shapes() {
		want, got := verdict(given.holds(value, time.Time{})), verdict(offered.holds(value, time.Time{}))
		if want == got {
			continue
		}
		excused := false
		for _, d := range differences {
			if onlyIn[d](want, got) && (d != DiffersOnItems || !isEmpty(value)) {
				seen[d], excused = true, true
			}
		}
		if !excused {
			_, celErr := offered.holds(value, time.Time{})
			_, exprErr := given.holds(value, time.Time{})
			t.Errorf("%s\n  over %s gives %s (%v),\n  but %s gives %s (%v)", condition, Text(value), want, exprErr, form, got, celErr)
		}
	}
	for _, d := range differences {
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
	offered := 0
	for _, c := range readCorpus(t) {
		form, err := CELFormOf(c.expr)
		if err != nil {
			continue // TestCorpusHasTheFormsInCEL wants the reason
		}
		offered++
		unseen := proveEqual(t, c.expr, form.Condition, form.Differences)
		if len(unseen) > 0 && !sameThere[c.expr] {
			t.Errorf("%s: no value shows how %s differs on %v", c.expr, form.Condition, unseen)
		}
	}
	if offered < 150 {
		t.Errorf("%d conditions have a form, want 150", offered)
	}
}
