package analysis

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// erred is the result of a metric that ended Error with these values, "" for none.
func erred(name string, values ...string) v1alpha1.MetricResult {
	r := v1alpha1.MetricResult{Name: name, Phase: v1alpha1.AnalysisPhaseError, Error: int32(len(values)), ConsecutiveError: int32(len(values))}
	for _, v := range values {
		r.Measurements = append(r.Measurements, v1alpha1.Measurement{Phase: v1alpha1.AnalysisPhaseError, Value: v})
	}
	return r
}

func preparedMetrics(t *testing.T, dry string, names ...string) Prepared {
	t.Helper()
	spec := v1alpha1.AnalysisRunSpec{}
	for _, name := range names {
		spec.Metrics = append(spec.Metrics, v1alpha1.Metric{Name: name, SuccessCondition: "result[0] > 0.0",
			Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: name}}})
	}
	if dry != "" {
		spec.DryRun = []v1alpha1.DryRun{{MetricName: dry}}
	}
	p, err := Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProbesAskWhatErred(t *testing.T) {
	good := v1alpha1.MetricResult{Name: "a", Phase: v1alpha1.AnalysisPhaseSuccessful, Count: 3}
	dry := erred("c", "")
	dry.DryRun = true
	for name, tc := range map[string]struct {
		phase   v1alpha1.AnalysisPhase
		results []v1alpha1.MetricResult
		want    []Task
	}{
		"the metric that erred": {v1alpha1.AnalysisPhaseError, []v1alpha1.MetricResult{good, erred("b", "", ""), dry},
			[]Task{{Index: 1, Metric: "b", Action: Begin, Number: 3, Probe: true}}},
		"none of a failed run":   {v1alpha1.AnalysisPhaseFailed, []v1alpha1.MetricResult{good, erred("b", "")}, nil},
		"none of a running run":  {v1alpha1.AnalysisPhaseRunning, []v1alpha1.MetricResult{erred("b", "")}, nil},
		"none of a refused spec": {v1alpha1.AnalysisPhaseError, nil, nil},
		"none of a dry run":      {v1alpha1.AnalysisPhaseError, []v1alpha1.MetricResult{good, dry}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := preparedMetrics(t, "c", "a", "b", "c")
			status := v1alpha1.AnalysisRunStatus{Phase: tc.phase, MetricResults: tc.results}
			if diff := cmp.Diff(tc.want, p.Probes(status)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsAnAnswer(t *testing.T) {
	task := func(name string) Task { return Task{Metric: name} }
	value := func(name string, phase v1alpha1.AnalysisPhase, text string) Measured {
		return Measured{Task: task(name), Phase: phase, Value: text}
	}
	refused := func(name string) Measured { return Failure(task(name), time.Time{}, errors.New("connection refused")) }
	outage, noData := erred("a", "", ""), erred("a", "[]", "[]")
	// An older error of the same metric is not among those that ended it.
	recovered := erred("a", "", "[1]", "[]", "[]")
	recovered.Measurements[1].Phase, recovered.ConsecutiveError = v1alpha1.AnalysisPhaseSuccessful, 2
	for name, tc := range map[string]struct {
		before []v1alpha1.MetricResult
		probed []Measured
		want   bool
	}{
		"a good value":                   {[]v1alpha1.MetricResult{outage}, []Measured{value("a", v1alpha1.AnalysisPhaseSuccessful, "[1]")}, true},
		"a bad value":                    {[]v1alpha1.MetricResult{outage}, []Measured{value("a", v1alpha1.AnalysisPhaseFailed, "[0]")}, true},
		"NaN":                            {[]v1alpha1.MetricResult{outage}, []Measured{value("a", v1alpha1.AnalysisPhaseInconclusive, "[NaN]")}, true},
		"it works on it":                 {[]v1alpha1.MetricResult{outage}, []Measured{value("a", v1alpha1.AnalysisPhaseRunning, "")}, true},
		"still out":                      {[]v1alpha1.MetricResult{outage}, []Measured{refused("a")}, false},
		"no data after an outage":        {[]v1alpha1.MetricResult{outage}, []Measured{value("a", v1alpha1.AnalysisPhaseError, "[]")}, true},
		"no data after errors of both":   {[]v1alpha1.MetricResult{erred("a", "", "[]")}, []Measured{value("a", v1alpha1.AnalysisPhaseError, "[]")}, true},
		"still no data":                  {[]v1alpha1.MetricResult{noData}, []Measured{value("a", v1alpha1.AnalysisPhaseError, "[]")}, false},
		"still no data, an outage ended": {[]v1alpha1.MetricResult{recovered}, []Measured{value("a", v1alpha1.AnalysisPhaseError, "[]")}, false},
		"data at last":                   {[]v1alpha1.MetricResult{noData}, []Measured{value("a", v1alpha1.AnalysisPhaseFailed, "[0]")}, true},
		"one of two": {[]v1alpha1.MetricResult{outage, erred("b", "")},
			[]Measured{value("a", v1alpha1.AnalysisPhaseSuccessful, "[1]"), refused("b")}, false},
		"nobody was asked": {[]v1alpha1.MetricResult{outage}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			status := v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseError, MetricResults: tc.before}
			if got := Answered(status, tc.probed); got != tc.want {
				t.Errorf("answered: %v, want %v", got, tc.want)
			}
		})
	}
}
