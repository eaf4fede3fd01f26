package analysis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// leastSeries is the fewest values on each side of a Mann-Whitney U test: with three
// or fewer no outcome is significant at 5%.
const leastSeries = 4

// ErrNotComparable says that a value and its baseline can't be compared as they are.
var ErrNotComparable = errors.New("the values can't be compared")

// Compare gives what the conditions see as result of a value and its baseline. Without
// data on one of the sides it is nil: no data.
//
//	comparison     wants on both sides      result
//	Ratio          one number               value / baseline
//	Difference     one number               value - baseline
//	MannWhitneyU   4 numbers or more        p, greater, less, median, baselineMedian, count, baselineCount
//
// NaN in a series is a gap in it, and left out by MannWhitneyU. An error is an
// ErrNotComparable.
func Compare(by v1alpha1.Comparison, value, baseline any) (any, error) {
	if isEmpty(value) || isEmpty(baseline) {
		return nil, nil
	}
	a, err := numbers(value)
	if err != nil {
		return nil, fmt.Errorf("%w: the value %w", ErrNotComparable, err)
	}
	b, err := numbers(baseline)
	if err != nil {
		return nil, fmt.Errorf("%w: the baseline %w", ErrNotComparable, err)
	}
	if by == v1alpha1.ComparisonMannWhitneyU {
		return mannWhitneyU(a, b)
	}
	if len(a) != 1 || len(b) != 1 {
		return nil, fmt.Errorf("%w: there are %d numbers and %d of the baseline, and %s wants one each: aggregate in the query, or compare by MannWhitneyU",
			ErrNotComparable, len(a), len(b), orRatio(by))
	}
	if by == v1alpha1.ComparisonDifference {
		return a[0] - b[0], nil
	}
	return a[0] / b[0], nil
}

func orRatio(by v1alpha1.Comparison) v1alpha1.Comparison {
	if by == "" {
		return v1alpha1.ComparisonRatio
	}
	return by
}

func mannWhitneyU(a, b []float64) (any, error) {
	gap := func(n float64) bool { return math.IsNaN(n) }
	a, b = slices.DeleteFunc(slices.Clone(a), gap), slices.DeleteFunc(slices.Clone(b), gap)
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	if len(a) < leastSeries || len(b) < leastSeries {
		return nil, fmt.Errorf("%w: there are %d numbers and %d of the baseline, and MannWhitneyU wants %d each: ask for a longer range or a shorter step",
			ErrNotComparable, len(a), len(b), leastSeries)
	}
	out := map[string]any{
		"median": median(a), "baselineMedian": median(b), "count": float64(len(a)), "baselineCount": float64(len(b)),
	}
	less, err := tendsToBeLess(a, b)
	if err != nil {
		return nil, err
	}
	greater, err := tendsToBeLess(b, a)
	if err != nil {
		return nil, err
	}
	out["less"], out["greater"], out["p"] = less, greater, min(1, 2*min(less, greater))
	return out, nil
}

// tendsToBeLess is the p-value of a's values being smaller than b's. The other side is
// asked with a and b exchanged: with ties the library's own answer for it counts what
// is half a step below U as well.
func tendsToBeLess(a, b []float64) (float64, error) {
	test, err := stats.MannWhitneyUTest(a, b, stats.LocationLess)
	switch {
	case errors.Is(err, stats.ErrSamplesEqual):
		return 1, nil // nothing speaks for a difference
	case err != nil:
		return 0, fmt.Errorf("%w: %w", ErrNotComparable, err)
	}
	return test.P, nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// numbers are those of a number or of a list of numbers.
func numbers(v any) ([]float64, error) {
	if n, ok := asNumber(v); ok {
		return []float64{n}, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("is a %s, and a number or a list of numbers is wanted", kindOf(v))
	}
	out := make([]float64, 0, len(list))
	for _, item := range list {
		n, ok := asNumber(item)
		if !ok {
			return nil, fmt.Errorf("holds a %s, and numbers are wanted", kindOf(item))
		}
		out = append(out, n)
	}
	return out, nil
}

// asNumber takes a number of any Go type that a Sample may have.
func asNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	}
	return 0, false
}

// CountSamples adds up what a minSamples provider gave. No data is 0, and so is NaN.
// An error says that it isn't numbers, or isn't finite: that is no count of anything.
func CountSamples(v any) (float64, error) {
	if isEmpty(v) {
		return 0, nil
	}
	found, err := numbers(v)
	if err != nil {
		return 0, fmt.Errorf("minSamples: the count %w", err)
	}
	sum := 0.0
	for _, n := range found {
		if !math.IsNaN(n) {
			sum += n
		}
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) { // NaN is the sum of both infinities
		return 0, fmt.Errorf("minSamples: the count is %s, and a finite number is wanted", Text(v))
	}
	return sum, nil
}
