package analysis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func fields(ps []Problem) (out []string) {
	for _, p := range ps {
		out = append(out, p.Field)
	}
	return out
}

func TestSamplingIsChecked(t *testing.T) {
	prometheus := func(query string) v1alpha1.MetricProvider {
		return v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "http://p:9090", Query: query}}
	}
	metric := func(change func(*v1alpha1.Metric)) v1alpha1.Metric {
		m := v1alpha1.Metric{Name: "m", SuccessCondition: "result[0] > 1", Provider: prometheus(`x{hash="{{args.hash}}"}`)}
		change(&m)
		return m
	}
	other := []v1alpha1.BaselineArgument{{Name: "hash", Value: "{{args.stable}}"}}
	for name, tc := range map[string]struct {
		metric v1alpha1.Metric
		want   []string
	}{
		"none of it": {metric(func(*v1alpha1.Metric) {}), nil},
		"all of it": {metric(func(m *v1alpha1.Metric) {
			m.NoData, m.MinSamples, m.Baseline = "Wait", &v1alpha1.MinSamples{Count: 5, Provider: prometheus("n")}, &v1alpha1.Baseline{Args: other}
		}), nil},
		"an unknown policy": {metric(func(m *v1alpha1.Metric) { m.NoData = "Panic" }), []string{"spec.metrics[0].noData"}},
		"no samples wanted": {metric(func(m *v1alpha1.Metric) { m.MinSamples = &v1alpha1.MinSamples{Provider: prometheus("n")} }), []string{"spec.metrics[0].minSamples.count"}},
		"nobody to count":   {metric(func(m *v1alpha1.Metric) { m.MinSamples = &v1alpha1.MinSamples{Count: 1} }), []string{"spec.metrics[0].minSamples.provider"}},
		"nothing to count":  {metric(func(m *v1alpha1.Metric) { m.MinSamples = &v1alpha1.MinSamples{Count: 1, Provider: prometheus("")} }), []string{"spec.metrics[0].minSamples.provider.prometheus.query"}},
		"a judge to count": {metric(func(m *v1alpha1.Metric) {
			m.MinSamples = &v1alpha1.MinSamples{Count: 1, Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{}}}
		}), []string{"spec.metrics[0].minSamples.provider"}},
		"an unknown comparison": {metric(func(m *v1alpha1.Metric) { m.Baseline = &v1alpha1.Baseline{Args: other, Comparison: "Guess"} }), []string{"spec.metrics[0].baseline.comparison"}},
		"the same question": {metric(func(m *v1alpha1.Metric) {
			m.Baseline = &v1alpha1.Baseline{Args: []v1alpha1.BaselineArgument{{Name: "pod", Value: "x"}}}
		}), []string{"spec.metrics[0].baseline.args"}},
		"no other arguments": {metric(func(m *v1alpha1.Metric) { m.Baseline = &v1alpha1.Baseline{} }), []string{"spec.metrics[0].baseline.args"}},
		"a syntax error that defaults bring": {metric(func(m *v1alpha1.Metric) {
			m.MinSamples = &v1alpha1.MinSamples{Count: 1, Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "nowhere", Query: "n"}}}
		}), []string{"spec.metrics[0].minSamples.provider.prometheus.address"}},
	} {
		t.Run(name, func(t *testing.T) {
			hash, stable := "a", "b"
			spec := v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{tc.metric}, Args: []v1alpha1.Argument{{Name: "hash", Value: &hash}, {Name: "stable", Value: &stable}}}
			if diff := cmp.Diff(tc.want, fields(ValidateSpec(spec, "spec"))); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, ValidateSpec(spec, "spec"))
			}
		})
	}
}

// The arguments of a baseline stand in its question alone, and values in the question
// for samples are data, as everywhere.
func TestTheBaselineAsksWithItsOwnArguments(t *testing.T) {
	hash, stable := `new"hash`, "oldhash"
	p, err := Prepare(v1alpha1.AnalysisRunSpec{
		Args: []v1alpha1.Argument{{Name: "hash", Value: &hash}, {Name: "stable", Value: &stable}},
		Metrics: []v1alpha1.Metric{{
			Name: "m", SuccessCondition: "result < 2",
			Provider:   v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: `x{hash="{{args.hash}}"}`}},
			Baseline:   &v1alpha1.Baseline{Args: []v1alpha1.BaselineArgument{{Name: "hash", Value: "{{args.stable}}"}}},
			MinSamples: &v1alpha1.MinSamples{Count: 3, Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: `n{hash="{{args.hash}}"}`}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	metric, err := p.Metric(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := p.Baseline(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{metric.Provider.Prometheus.Query, baseline.Provider.Prometheus.Query, metric.MinSamples.Provider.Prometheus.Query}
	want := []string{`x{hash="new\"hash"}`, `x{hash="oldhash"}`, `n{hash="new\"hash"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestNoData(t *testing.T) {
	for policy, want := range map[v1alpha1.NoDataPolicy]v1alpha1.AnalysisPhase{
		"": v1alpha1.AnalysisPhaseError, v1alpha1.NoDataCondition: v1alpha1.AnalysisPhaseError, v1alpha1.NoDataFail: v1alpha1.AnalysisPhaseFailed,
		v1alpha1.NoDataInconclusive: v1alpha1.AnalysisPhaseInconclusive, v1alpha1.NoDataPass: v1alpha1.AnalysisPhaseSuccessful,
		v1alpha1.NoDataWait: v1alpha1.AnalysisPhaseRunning,
	} {
		for _, value := range []any{nil, []any{}, []any{nil, nil}} {
			m := v1alpha1.Metric{SuccessCondition: "result[0] > 1", NoData: policy, Interval: "3s"}
			c, err := Compile(m)
			if err != nil {
				t.Fatal(err)
			}
			got := JudgeSample(m, c, Task{}, value, time.Unix(0, 0))
			if got.Phase != want || got.Message == "" || Waits(got.Handle) != (policy == v1alpha1.NoDataWait) {
				t.Errorf("%q of %v: %+v, want %s", policy, value, got, want)
			}
			if got := JudgeSample(m, c, Task{}, []any{2.0}, time.Unix(0, 0)); got.Phase != v1alpha1.AnalysisPhaseSuccessful {
				t.Errorf("%q of data: %+v", policy, got)
			}
		}
	}
}
