package analysisrun

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// byQuery answers each query with what it is told.
func byQuery(values map[string]func() (any, error)) func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
	return func(q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
		if prior != nil {
			return nil, errors.New("asked as for a measurement of its own that is under way")
		}
		value, err := values[q.Provider.Prometheus.Query]()
		return analysis.Sample{Value: value, Metadata: map[string]string{"warnings": "none"}}, err
	}
}

func prometheusOf(query string) v1alpha1.MetricProvider {
	return v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: query}}
}

// Below minSamples the metric isn't asked at all; it is begun anew until there is enough.
func TestAMeasurementWaitsForSamples(t *testing.T) {
	have := 3.0
	m := metric("quality")
	m.Interval, m.MinSamples = "5s", &v1alpha1.MinSamples{Count: 10, Provider: prometheusOf("requests")}
	count := repeated("quality", 1)
	m.Count = count.Count
	l := newLab(t, byQuery(map[string]func() (any, error){
		"requests": func() (any, error) { return []any{have, 1.0}, nil },
		"quality":  func() (any, error) { return []any{1.0}, nil },
	}), newRun(m))
	l.play(4)
	run := l.run()
	result := run.Status.MetricResults[0]
	if run.Status.Phase != v1alpha1.AnalysisPhaseRunning || result.Count != 0 || len(result.Measurements) != 1 {
		t.Fatalf("after a while without samples: %s, %+v", run.Status.Phase, result)
	}
	if got := result.Measurements[0]; got.Phase != v1alpha1.AnalysisPhaseRunning || got.Message != "4 of 10 samples yet" || got.ResumeAt == nil {
		t.Errorf("the measurement is %+v", got)
	}
	for _, q := range l.provider.asked {
		if q.Provider.Prometheus.Query == "quality" {
			t.Fatal("the metric was asked with too few samples")
		}
	}
	have = 9
	l.play(3)
	run = l.run()
	if run.Status.Phase != v1alpha1.AnalysisPhaseSuccessful || run.Status.MetricResults[0].Count != 1 || len(run.Status.MetricResults[0].Measurements) != 1 {
		t.Errorf("with enough samples: %s, %+v", run.Status.Phase, run.Status.MetricResults[0])
	}
}

// A measurement that waits ends with its run, uncounted, and its provider isn't told to
// stop what it never began. A metric that was never measured says nothing.
func TestAWaitingMeasurementEndsWithItsRun(t *testing.T) {
	m := metric("quality")
	m.NoData = v1alpha1.NoDataWait
	l := newLab(t, always(nil), newRun(m))
	l.play(3)
	if got := l.run().Status.MetricResults[0].Measurements; len(got) != 1 || got[0].Message != "there is no data yet" {
		t.Fatalf("measurements %+v", got)
	}
	run := l.run()
	run.Spec.Terminate = true
	if err := l.client.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	l.play(2)
	run = l.run()
	if result := run.Status.MetricResults[0]; run.Status.Phase != v1alpha1.AnalysisPhaseSuccessful || result.Count != 0 || len(result.Measurements) != 0 || len(l.provider.stopped) != 0 {
		t.Errorf("phase %s, %+v, stopped %v", run.Status.Phase, result, l.provider.stopped)
	}
	if got := run.Status.RunSummary; got.Successful != 0 || got.Inconclusive != 0 {
		t.Errorf("it is counted: %+v", got)
	}
}

// What was measured before a wait is what the metric says when its run is ended.
func TestWhatWasMeasuredBeforeAWaitDecides(t *testing.T) {
	for name, tc := range map[string]struct {
		value float64
		want  v1alpha1.AnalysisPhase
	}{
		"a success":           {1, v1alpha1.AnalysisPhaseSuccessful},
		"a tolerated failure": {0, v1alpha1.AnalysisPhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			m := metric("quality")
			m.NoData, m.Interval, m.FailureLimit = v1alpha1.NoDataWait, "5s", new(intstr.FromInt32(1))
			l := newLab(t, always([]any{tc.value}), newRun(m))
			l.play(1)
			l.provider.answer = always(nil)
			l.play(2)
			if got := l.run().Status.MetricResults[0]; len(got.Measurements) != 2 || got.Measurements[1].Phase != v1alpha1.AnalysisPhaseRunning {
				t.Fatalf("got %+v", got)
			}
			l.terminate()
			l.play(2)
			run := l.run()
			if result := run.Status.MetricResults[0]; run.Status.Phase != tc.want || result.Count != 1 || result.Inconclusive != 0 || len(result.Measurements) != 1 {
				t.Errorf("got %s, %+v, want %s", run.Status.Phase, result, tc.want)
			}
		})
	}
}

func TestNoDataIsDecidedByItsPolicy(t *testing.T) {
	for policy, want := range map[v1alpha1.NoDataPolicy]v1alpha1.AnalysisPhase{
		v1alpha1.NoDataFail: v1alpha1.AnalysisPhaseFailed, v1alpha1.NoDataInconclusive: v1alpha1.AnalysisPhaseInconclusive,
		v1alpha1.NoDataPass: v1alpha1.AnalysisPhaseSuccessful,
	} {
		m := metric("quality")
		m.NoData = policy
		l := newLab(t, always([]any{}), newRun(m))
		l.play(3)
		if got := l.run().Status.Phase; got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

// A value is compared with its baseline of the same moment, and the status has both.
func TestAValueIsComparedWithItsBaseline(t *testing.T) {
	hash, stable := "new", "old"
	outage := errors.New("down")
	for name, tc := range map[string]struct {
		by              v1alpha1.Comparison
		condition       string
		value, baseline any
		err             error
		want            v1alpha1.AnalysisPhase
		says            string
	}{
		"as good":           {"", "result <= 1.2", []any{0.011}, []any{0.01}, nil, v1alpha1.AnalysisPhaseSuccessful, "1.0999999999999999"},
		"worse":             {"", "result <= 1.2", []any{0.02}, []any{0.01}, nil, v1alpha1.AnalysisPhaseFailed, "2"},
		"no baseline":       {"", "result <= 1.2", []any{0.02}, []any{}, nil, v1alpha1.AnalysisPhaseError, ""},
		"baseline is down":  {"", "result <= 1.2", []any{0.02}, nil, outage, v1alpha1.AnalysisPhaseError, ""},
		"worse by a test":   {v1alpha1.ComparisonMannWhitneyU, "result.greater > 0.05", []any{5.0, 6.0, 7.0, 8.0}, []any{1.0, 2.0, 3.0, 4.0}, nil, v1alpha1.AnalysisPhaseFailed, `"p":0.02857142857142857`},
		"not worse by test": {v1alpha1.ComparisonMannWhitneyU, "result.greater > 0.05", []any{5.0, 1.0, 7.0, 2.0}, []any{6.0, 2.0, 8.0, 1.0}, nil, v1alpha1.AnalysisPhaseSuccessful, `"greater":`},
	} {
		t.Run(name, func(t *testing.T) {
			m := metric("x")
			m.Provider, m.SuccessCondition = prometheusOf(`x{hash="{{args.hash}}"}`), tc.condition
			m.Baseline = &v1alpha1.Baseline{Comparison: tc.by, Args: []v1alpha1.BaselineArgument{{Name: "hash", Value: "{{args.stable}}"}}}
			run := newRun(m)
			run.Spec.Args = []v1alpha1.Argument{{Name: "hash", Value: &hash}, {Name: "stable", Value: &stable}}
			l := newLab(t, byQuery(map[string]func() (any, error){
				`x{hash="new"}`: func() (any, error) { return tc.value, nil },
				`x{hash="old"}`: func() (any, error) { return tc.baseline, tc.err },
			}), run)
			l.play(2)
			result := l.run().Status.MetricResults[0]
			got := result.Measurements[len(result.Measurements)-1]
			if got.Phase != tc.want || !strings.Contains(got.Value, tc.says) {
				t.Fatalf("%+v, want %s with %s", got, tc.want, tc.says)
			}
			if times := l.provider.asked; len(times) < 2 || !times[0].At.Equal(times[1].At) {
				t.Errorf("asked %+v, want both at the same time", times)
			}
			if tc.err != nil {
				if !strings.Contains(got.Message, "baseline: down") {
					t.Errorf("message %q", got.Message)
				}
				return
			}
			if got.Metadata["value"] != analysis.Text(tc.value) || got.Metadata["baseline"] != analysis.Text(tc.baseline) || got.Metadata["warnings"] != "none" {
				t.Errorf("metadata %v", got.Metadata)
			}
			if result.Metadata["query"] != `x{hash="new"}` || result.Metadata["baseline.query"] != `x{hash="old"}` {
				t.Errorf("what was asked: %v", result.Metadata)
			}
		})
	}
}
