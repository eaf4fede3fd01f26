package prometheus

import (
	"fmt"
	"sort"

	"github.com/prometheus/common/model"
)

// valueOf is the value that conditions see. Series come in the order of their
// labels, so that result[0] is the same one each time.
func valueOf(answer model.Value) (any, error) {
	switch v := answer.(type) {
	case *model.Scalar:
		return float64(v.Value), nil
	case *model.String:
		return v.Value, nil
	case model.Vector:
		return vector(v)
	case model.Matrix:
		return matrix(v)
	}
	return nil, fmt.Errorf("the answer is a %T, not a scalar, vector, matrix or string", answer)
}

func vector(v model.Vector) (any, error) {
	sort.SliceStable(v, func(i, j int) bool { return v[i].Metric.String() < v[j].Metric.String() })
	numbers := make([]any, len(v))
	for i, s := range v {
		if s.Histogram != nil {
			return nil, errHistogram(s.Metric)
		}
		numbers[i] = float64(s.Value)
	}
	return numbers, nil
}

func matrix(m model.Matrix) (any, error) {
	sort.SliceStable(m, func(i, j int) bool { return m[i].Metric.String() < m[j].Metric.String() })
	numbers := []any{}
	for _, s := range m {
		if len(s.Histograms) > 0 {
			return nil, errHistogram(s.Metric)
		}
		for _, pair := range s.Values {
			numbers = append(numbers, float64(pair.Value))
		}
	}
	return numbers, nil
}

func errHistogram(series model.Metric) error {
	return fmt.Errorf("series %s is a native histogram, not a number: take histogram_quantile, histogram_count or another function of it", series)
}
