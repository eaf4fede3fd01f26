package analysis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func fieldsOf(m v1alpha1.Metric) []string {
	var fields []string
	for _, p := range ValidateMetric(m, "m") {
		fields = append(fields, p.Field)
	}
	return fields
}

func TestDatadogSettings(t *testing.T) {
	two := map[string]string{"a": "x", "b": "y"}
	for name, tc := range map[string]struct {
		metric v1alpha1.DatadogMetric
		want   string
	}{
		"v1":                         {v1alpha1.DatadogMetric{Query: "q"}, ""},
		"v2 query":                   {v1alpha1.DatadogMetric{APIVersion: "v2", Query: "q", Aggregator: "sum"}, ""},
		"v2 formula":                 {v1alpha1.DatadogMetric{APIVersion: "v2", Queries: two, Formula: "a/b", Interval: "10m", RequestTimeout: "30s"}, ""},
		"v2 one query by name":       {v1alpha1.DatadogMetric{APIVersion: "v2", Queries: map[string]string{"a": "x"}}, ""},
		"placeholders":               {v1alpha1.DatadogMetric{APIVersion: "{{args.v}}", Query: "q", Interval: "{{ args.i }}", RequestTimeout: "{{args.t}}"}, ""},
		"placeholder as aggregator":  {v1alpha1.DatadogMetric{APIVersion: "v2", Query: "q", Aggregator: "{{args.a}}"}, ""},
		"no query":                   {v1alpha1.DatadogMetric{}, "query"},
		"no query of v2":             {v1alpha1.DatadogMetric{APIVersion: "v2"}, "query"},
		"both":                       {v1alpha1.DatadogMetric{APIVersion: "v2", Query: "q", Queries: map[string]string{"a": "x"}}, "queries"},
		"queries of v1":              {v1alpha1.DatadogMetric{Queries: map[string]string{"a": "x"}}, "query"},
		"formula without queries":    {v1alpha1.DatadogMetric{APIVersion: "v2", Query: "q", Formula: "a"}, "formula"},
		"queries without a formula":  {v1alpha1.DatadogMetric{APIVersion: "v2", Queries: two}, "formula"},
		"aggregator of v1":           {v1alpha1.DatadogMetric{Query: "q", Aggregator: "sum"}, "aggregator"},
		"unknown version":            {v1alpha1.DatadogMetric{APIVersion: "v3", Query: "q"}, "apiVersion"},
		"unknown aggregator":         {v1alpha1.DatadogMetric{APIVersion: "v2", Query: "q", Aggregator: "median"}, "aggregator"},
		"namespaced without a name":  {v1alpha1.DatadogMetric{Query: "q", SecretRef: &v1alpha1.SecretRef{Namespaced: true}}, "secretRef.name"},
		"interval that is none":      {v1alpha1.DatadogMetric{Query: "q", Interval: "soon"}, "interval"},
		"interval of 0":              {v1alpha1.DatadogMetric{Query: "q", Interval: "0s"}, "interval"},
		"timeout of 5 minutes":       {v1alpha1.DatadogMetric{Query: "q", RequestTimeout: "300"}, ""},
		"timeout of more":            {v1alpha1.DatadogMetric{Query: "q", RequestTimeout: "5m1s"}, "requestTimeout"},
		"timeout that goes backward": {v1alpha1.DatadogMetric{Query: "q", RequestTimeout: "-1s"}, "requestTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{Name: "m", SuccessCondition: "result < 1", Provider: v1alpha1.MetricProvider{Datadog: &tc.metric}}
			got := strings.TrimPrefix(strings.Join(fieldsOf(m), " "), "m.provider.datadog.")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewRelicSettings(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		metric v1alpha1.NewRelicMetric
		want   string
	}{
		"good":           {v1alpha1.NewRelicMetric{Query: "q", Timeout: seconds(10)}, ""},
		"no query":       {v1alpha1.NewRelicMetric{Query: " "}, "query"},
		"timeout of 0":   {v1alpha1.NewRelicMetric{Query: "q", Timeout: seconds(0)}, "timeout"},
		"5 minutes":      {v1alpha1.NewRelicMetric{Query: "q", Timeout: seconds(300)}, ""},
		"more":           {v1alpha1.NewRelicMetric{Query: "q", Timeout: seconds(301)}, "timeout"},
		"below nothing":  {v1alpha1.NewRelicMetric{Query: "q", Timeout: seconds(-1)}, "timeout"},
		"only a profile": {v1alpha1.NewRelicMetric{Profile: "p"}, "query"},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{Name: "m", SuccessCondition: "result.a < 1", Provider: v1alpha1.MetricProvider{NewRelic: &tc.metric}}
			if got := strings.TrimPrefix(strings.Join(fieldsOf(m), " "), "m.provider.newRelic."); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInfluxdbSettings(t *testing.T) {
	for query, want := range map[string][]string{"from(bucket: \"b\")": nil, " ": {"m.provider.influxdb.query"}} {
		m := v1alpha1.Metric{Name: "m", SuccessCondition: "result[0] < 1", Provider: v1alpha1.MetricProvider{Influxdb: &v1alpha1.InfluxdbMetric{Query: query}}}
		if diff := cmp.Diff(want, fieldsOf(m)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func TestWavefrontSettings(t *testing.T) {
	for name, tc := range map[string]struct{ address, query, want string }{
		"good":         {"example.wavefront.com", "ts(a)", ""},
		"placeholders": {"{{args.address}}", "{{args.query}}", ""},
		"a URL":        {"https://example.wavefront.com", "ts(a)", "address"},
		"a port":       {"example.wavefront.com:443", "ts(a)", "address"},
		"no address":   {"", "ts(a)", "address"},
		"no query":     {"example.wavefront.com", " ", "query"},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{Name: "m", SuccessCondition: "result < 1", Provider: v1alpha1.MetricProvider{Wavefront: &v1alpha1.WavefrontMetric{Address: tc.address, Query: tc.query}}}
			if got := strings.TrimPrefix(strings.Join(fieldsOf(m), " "), "m.provider.wavefront."); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSkyWalkingSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		metric v1alpha1.SkyWalkingMetric
		want   string
	}{
		"good":                     {v1alpha1.SkyWalkingMetric{Address: "http://oap:12800", Query: "q", Interval: "3m"}, ""},
		"placeholders":             {v1alpha1.SkyWalkingMetric{Address: "{{args.a}}", Query: "{{args.q}}", Interval: "{{args.i}}"}, ""},
		"no address":               {v1alpha1.SkyWalkingMetric{Query: "q", Interval: "3m"}, "address"},
		"no query":                 {v1alpha1.SkyWalkingMetric{Address: "http://oap", Interval: "3m"}, "query"},
		"no interval":              {v1alpha1.SkyWalkingMetric{Address: "http://oap", Query: "q"}, "interval"},
		"an interval that is none": {v1alpha1.SkyWalkingMetric{Address: "http://oap", Query: "q", Interval: "soon"}, "interval"},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{Name: "m", SuccessCondition: "result.a < 1", Provider: v1alpha1.MetricProvider{SkyWalking: &tc.metric}}
			if got := strings.TrimPrefix(strings.Join(fieldsOf(m), " "), "m.provider.skywalking."); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGraphiteSettings(t *testing.T) {
	for name, tc := range map[string]struct{ address, query, want string }{
		"good":                    {"http://graphite", "target=a&from=-5min", ""},
		"placeholders":            {"{{args.address}}", "{{args.query}}", ""},
		"no address":              {"", "target=a", "address"},
		"an address of no scheme": {"graphite:80", "target=a", "address"},
		"no target":               {"http://graphite", "a", "query"},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{Name: "m", SuccessCondition: "result[0] < 1", Provider: v1alpha1.MetricProvider{Graphite: &v1alpha1.GraphiteMetric{Address: tc.address, Query: tc.query}}}
			if got := strings.TrimPrefix(strings.Join(fieldsOf(m), " "), "m.provider.graphite."); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
