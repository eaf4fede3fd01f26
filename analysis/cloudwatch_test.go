package analysis

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func cloudWatchMetric(queries ...string) v1alpha1.Metric {
	m := &v1alpha1.CloudWatchMetric{}
	for _, q := range queries {
		m.MetricDataQueries = append(m.MetricDataQueries, runtime.RawExtension{Raw: []byte(q)})
	}
	return v1alpha1.Metric{Name: "m", SuccessCondition: "result[0].Values[0] < 1", Provider: v1alpha1.MetricProvider{CloudWatch: m}}
}

func TestCloudWatchQueriesAreChecked(t *testing.T) {
	const valid = "valid"
	const stat = `"metricStat":{"metric":{"namespace":"n","metricName":"m","dimensions":[{"name":"a","value":"b"}]},"period":60,"stat":"Sum"}`
	for name, tc := range map[string]struct {
		queries []string
		field   string
	}{
		"an expression":              {[]string{`{"id":"a","expression":"b / c"}`}, valid},
		"a metric":                   {[]string{`{"id":"a",` + stat + `}`}, valid},
		"AWS's names":                {[]string{`{"Id":"a","Expression":"b","Period":"300"}`}, valid},
		"arguments":                  {[]string{`{"id":"{{args.a}}","expression":"b","period":"{{ args.p }}"}`}, valid},
		"none":                       {nil, ""},
		"an unknown field":           {[]string{`{"id":"a","expresion":"b"}`}, ""},
		"no id":                      {[]string{`{"expression":"b"}`}, "[0].id"},
		"an id that is none":         {[]string{`{"id":"A b","expression":"b"}`}, "[0].id"},
		"an id twice":                {[]string{`{"id":"a","expression":"b"}`, `{"id":"a","expression":"c"}`}, "[1].id"},
		"neither":                    {[]string{`{"id":"a"}`}, "[0]"},
		"both":                       {[]string{`{"id":"a","expression":"b",` + stat + `}`}, "[0]"},
		"an odd period":              {[]string{`{"id":"a","expression":"b","period":90}`}, "[0].period"},
		"no period of a metric":      {[]string{`{"id":"a",` + strings.Replace(stat, `"period":60,`, "", 1) + `}`}, "[0].metricStat.period"},
		"no stat":                    {[]string{`{"id":"a",` + strings.Replace(stat, `"Sum"`, `""`, 1) + `}`}, "[0].metricStat.stat"},
		"no namespace":               {[]string{`{"id":"a",` + strings.Replace(stat, `"n"`, `""`, 1) + `}`}, "[0].metricStat.metric.namespace"},
		"a dimension without a name": {[]string{`{"id":"a",` + strings.Replace(stat, `"name":"a",`, ``, 1) + `}`}, "[0].metricStat.metric.dimensions[0]"},
		"an expression twice":        {[]string{`{"id":"a","expression":"b","Expression":"c"}`}, ""},
		"nothing is returned":        {[]string{`{"id":"a","expression":"b","returnData":false}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if tc.field != valid {
				want = []string{"m.provider.cloudWatch.metricDataQueries" + tc.field}
			}
			var got []string
			for _, p := range ValidateMetric(cloudWatchMetric(tc.queries...), "m") {
				got = append(got, p.Field)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubstituteCloudWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		query, value, want string
		err                error
	}{
		"outside quotes":       {`{"id":"a","expression":"FILL(m1, {{args.x}})"}`, "0", `{"expression":"FILL(m1, 0)","id":"a"}`, nil},
		"in quotes":            {`{"id":"a","expression":"SEARCH('{N,D} \"{{args.x}}\"', 'Sum')"}`, "shop 2", `{"expression":"SEARCH('{N,D} \"shop 2\"', 'Sum')","id":"a"}`, nil},
		"out of inner quotes":  {`{"id":"a","expression":"SEARCH('{N,D} \"{{args.x}}\"', 'Sum')"}`, `a" OR "b`, "", errEndsString},
		"out of quotes":        {`{"Id":"a","Expression":"SELECT AVG(x) FROM y WHERE z = '{{args.x}}'"}`, `a' OR 'b`, "", errEndsString},
		"an open quote":        {`{"id":"a","expression":"a{{args.x}}"}`, `'b`, "", errOpenQuote},
		"two spellings":        {`{"id":"a","expression":"'{{args.x}}'","Expression":"{{args.x}}"}`, "1' OR", "", errFieldTwice},
		"not a placeholder":    {`{"id":"a","expression":"'{{args.x}}'"}`, `{{args.y}}`, `{"expression":"'{{args.y}}'","id":"a"}`, nil},
		"a label is only text": {`{"id":"a","label":"{{args.x}}"}`, `'"`, `{"id":"a","label":"'\""}`, nil},
		"a dimension":          {`{"id":"a","metricStat":{"metric":{"dimensions":[{"value":"{{args.x}}"}]}}}`, `'"`, `{"id":"a","metricStat":{"metric":{"dimensions":[{"value":"'\""}]}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Substitute(cloudWatchMetric(tc.query), map[string]string{"x": tc.value})
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, string(got.Provider.CloudWatch.MetricDataQueries[0].Raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A list of series without values is no data, whatever else the series say, and so is
// one of nulls.
func TestSeriesWithoutValuesAreNoData(t *testing.T) {
	series := func(values ...any) any { return map[string]any{"Id": "a", "Values": append([]any{}, values...)} }
	for name, tc := range map[string]struct {
		value any
		want  bool
	}{
		"all without":          {[]any{series(), series()}, true},
		"one with":             {[]any{series(), series(0.0)}, false},
		"other objects":        {[]any{map[string]any{"Id": "a"}}, false},
		"values of other kind": {[]any{map[string]any{"Values": ""}}, false},
		"one series alone":     {series(), false},
		"nulls alone":          {[]any{nil, nil}, true},
		"a null and a number":  {[]any{nil, 0.0}, false},
		"a list of no nulls":   {[]any{[]any{nil}}, false},
		"a list of lists":      {[]any{[]any{}}, false},
	} {
		if got := isEmpty(tc.value); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
