package analysis

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// cloudWatchText are the expressions of a CloudWatch metric's queries, which are code, by
// the place of the query. Key is as the query writes it.
type cloudWatchText map[int]struct{ key, expression string }

// takeCloudWatch takes the expressions out of the queries, with the arguments put in.
func takeCloudWatch(p *v1alpha1.CloudWatchMetric, values map[string]string) (cloudWatchText, error) {
	taken := cloudWatchText{}
	for i, raw := range p.MetricDataQueries {
		fields := map[string]json.RawMessage{}
		if json.Unmarshal(raw.Raw, &fields) != nil {
			continue // refused when it is read
		}
		if err := checkFieldsOnce(raw.Raw); err != nil {
			return nil, fmt.Errorf("metricDataQueries[%d]: %w", i, err)
		}
		for key, value := range fields {
			var expression string
			if !strings.EqualFold(key, "expression") || json.Unmarshal(value, &expression) != nil {
				continue
			}
			placed, err := inCode(metricMath, expression, values, false)
			if err != nil {
				return nil, fmt.Errorf("metricDataQueries[%d].%s: %w", i, key, err)
			}
			taken[i] = struct{ key, expression string }{key, placed}
			delete(fields, key)
		}
		rest, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("encode metricDataQueries[%d]: %w", i, err)
		}
		p.MetricDataQueries[i] = runtime.RawExtension{Raw: rest}
	}
	return taken, nil
}

func (t cloudWatchText) putInto(p *v1alpha1.CloudWatchMetric) error {
	for i, x := range t {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(p.MetricDataQueries[i].Raw, &fields); err != nil {
			return fmt.Errorf("decode metricDataQueries[%d]: %w", i, err)
		}
		var err error
		if fields[x.key], err = json.Marshal(x.expression); err != nil {
			return fmt.Errorf("encode metricDataQueries[%d]: %w", i, err)
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("encode metricDataQueries[%d]: %w", i, err)
		}
		p.MetricDataQueries[i] = runtime.RawExtension{Raw: raw}
	}
	return nil
}
