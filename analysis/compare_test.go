package analysis

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestCompare(t *testing.T) {
	list := func(values ...float64) (out []any) {
		for _, v := range values {
			out = append(out, v)
		}
		return out
	}
	nan, inf := math.NaN(), math.Inf(1)
	for name, tc := range map[string]struct {
		by              v1alpha1.Comparison
		value, baseline any
		want            any
		fails           bool
	}{
		"ratio":                      {"", list(0.02), list(0.01), 2.0, false},
		"ratio of numbers":           {v1alpha1.ComparisonRatio, 3.0, 2, 1.5, false},
		"ratio to 0":                 {v1alpha1.ComparisonRatio, 1.0, 0.0, inf, false},
		"ratio of nothing to 0":      {v1alpha1.ComparisonRatio, 0.0, 0.0, nan, false},
		"ratio to NaN":               {v1alpha1.ComparisonRatio, 1.0, nan, nan, false},
		"difference":                 {v1alpha1.ComparisonDifference, list(5), 3.0, 2.0, false},
		"no data":                    {v1alpha1.ComparisonDifference, list(), 3.0, nil, false},
		"no data of the baseline":    {v1alpha1.ComparisonDifference, 3.0, nil, nil, false},
		"many series":                {v1alpha1.ComparisonRatio, list(1, 2), list(1), nil, true},
		"many of the baseline":       {v1alpha1.ComparisonRatio, list(1), list(1, 2), nil, true},
		"a string":                   {v1alpha1.ComparisonRatio, "1", list(1), nil, true},
		"a list of strings":          {v1alpha1.ComparisonRatio, 1.0, []any{"1"}, nil, true},
		"series too short":           {v1alpha1.ComparisonMannWhitneyU, list(1, 2, 3), list(1, 2, 3, 4), nil, true},
		"series of gaps":             {v1alpha1.ComparisonMannWhitneyU, list(nan, nan), list(1, 2, 3, 4), nil, false},
		"series too short with gaps": {v1alpha1.ComparisonMannWhitneyU, list(1, 2, 3, nan), list(1, 2, 3, 4), nil, true},
		// U is 16 of 16 orders: one of 70 ways to choose 4 of 8.
		"larger throughout": {v1alpha1.ComparisonMannWhitneyU, list(5, 6, 7, 8), list(1, 2, 3, 4), map[string]any{
			"p": 2.0 / 70, "greater": 1.0 / 70, "less": 1.0, "median": 6.5, "baselineMedian": 2.5, "count": 4.0, "baselineCount": 4.0}, false},
		"smaller throughout, with a gap": {v1alpha1.ComparisonMannWhitneyU, list(1, 2, nan, 3, 4), list(9, 5, 6, 7, 8), map[string]any{
			"p": 2.0 / 126, "greater": 1.0, "less": 1.0 / 126, "median": 2.5, "baselineMedian": 7.0, "count": 4.0, "baselineCount": 5.0}, false},
		"ties": {v1alpha1.ComparisonMannWhitneyU, list(13, 0, 0, 3), list(1, 19, 2, 20), map[string]any{
			"p": 22.0 / 70, "greater": 62.0 / 70, "less": 11.0 / 70, "median": 1.5, "baselineMedian": 10.5, "count": 4.0, "baselineCount": 4.0}, false}, // counted over all 70 ways
		"all alike": {v1alpha1.ComparisonMannWhitneyU, list(1, 1, 1, 1), list(1, 1, 1, 1), map[string]any{
			"p": 1.0, "greater": 1.0, "less": 1.0, "median": 1.0, "baselineMedian": 1.0, "count": 4.0, "baselineCount": 4.0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compare(tc.by, tc.value, tc.baseline)
			if errors.Is(err, ErrNotComparable) != tc.fails || (err != nil) != tc.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// The test doesn't care which side is which, nor for the order of a series, and a
// clear difference is significant.
func TestMannWhitneyU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (out []any) {
			for _, v := range rapid.SliceOfN(rapid.IntRange(0, 20), leastSeries, 40).Draw(t, name) {
				out = append(out, float64(v))
			}
			return out
		}
		a, b := draw("a"), draw("b")
		test := func(a, b []any) map[string]any {
			out, err := Compare(v1alpha1.ComparisonMannWhitneyU, a, b)
			if err != nil {
				t.Fatal(err)
			}
			return out.(map[string]any)
		}
		there, back := test(a, b), test(b, rapid.Permutation(a).Draw(t, "order"))
		for name, other := range map[string]string{"p": "p", "greater": "less", "less": "greater", "median": "baselineMedian"} {
			x, y := there[name].(float64), back[other].(float64)
			if math.Abs(x-y) > 1e-9 {
				t.Errorf("%s is %g one way and %g the other", name, x, y)
			}
		}
		if p := there["p"].(float64); p < 0 || p > 1+1e-9 {
			t.Errorf("p is %g", p)
		}
		for i := range a {
			a[i] = a[i].(float64) + 100
		}
		if p := test(a, b)["greater"].(float64); p > 0.05 {
			t.Errorf("all of one side are larger, and p is %g", p)
		}
	})
}

func TestCountSamples(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  float64
		fails bool
	}{
		"none": {nil, 0, false}, "empty": {[]any{}, 0, false}, "one": {12.0, 12, false}, "several": {[]any{1.0, 2.5, math.NaN()}, 3.5, false},
		"NaN": {math.NaN(), 0, false}, "+Inf": {math.Inf(1), 0, true}, "-Inf": {[]any{1.0, math.Inf(-1)}, 0, true}, "both": {[]any{math.Inf(1), math.Inf(-1)}, 0, true},
		"text": {"12", 0, true}, "a map": {map[string]any{"n": 1.0}, 0, true}, "a list of lists": {[]any{[]any{1.0}}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CountSamples(tc.value)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%g, %v; want %g", got, err, tc.want)
			}
		})
	}
}
