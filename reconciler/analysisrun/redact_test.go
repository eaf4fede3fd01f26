package analysisrun

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ownKey answers with a key that the provider found for itself.
func ownKey(value func(key string) any) func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
	return func(q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
		key := "own-s3cr3t-of-" + q.Provider.Prometheus.Query
		return analysis.Sample{Value: value(key), Metadata: map[string]string{"echo": "sent " + key}, Redactor: analysis.MakeRedactor(key)}, nil
	}
}

// toldOf is all that can be read of a run.
func toldOf(t *testing.T, l *lab) string {
	t.Helper()
	run := l.run()
	stored, err := json.Marshal(run.Status)
	if err != nil {
		t.Fatal(err)
	}
	return string(stored) + strings.Join(l.told(), "\n") + analysis.Detail(run.Status) + strings.Join(analysis.Lines(run.Status), "\n")
}

// What an argument's Secret says may be what the condition is about.
func TestASecretInTheAnswerIsJudgedAsItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Metric)
		want   v1alpha1.AnalysisPhase
	}{
		"failureCondition": {func(m *v1alpha1.Metric) { m.SuccessCondition, m.FailureCondition = "", `result.env == "s3cr3t"` }, v1alpha1.AnalysisPhaseFailed},
		"successCondition": {func(m *v1alpha1.Metric) { m.SuccessCondition = `result.env == "s3cr3t"` }, v1alpha1.AnalysisPhaseSuccessful},
	} {
		t.Run(name, func(t *testing.T) {
			run := secretRun()
			tc.change(&run.Spec.Metrics[0])
			l := newLab(t, always(map[string]any{"env": "s3cr3t"}), run, withSecret("t", "s3cr3t"))
			l.play(2)
			got := l.run().Status.MetricResults[0].Measurements[0]
			if got.Phase != tc.want || got.Value != `{"env":"[redacted]"}` {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

// A value that is cut for its message has no half of a secret at the cut.
func TestNoHalfOfASecretIsLeftAtACut(t *testing.T) {
	run := secretRun()
	run.Spec.Metrics[0].SuccessCondition = "false"
	secret := strings.Repeat("hunter2", 10)
	l := newLab(t, always(strings.Repeat("a", 235)+secret), run, withSecret("t", secret))
	l.play(2)
	if said := toldOf(t, l); strings.Contains(said, "hunter2") || !strings.Contains(said, analysis.Redacted) {
		t.Errorf("told %s", said)
	}
}

// Keys that no argument holds are taken out of all that is stored and told: of the
// metric's own answer, of a verdict, and of its baseline's.
func TestKeysOfTheProviderAreNotStored(t *testing.T) {
	hash, stable := "new", "old"
	verdict := func(q analysis.Query, h analysis.Handle) (analysis.Outcome, error) {
		outcome, err := ownKey(func(string) any { return "" })(q, h)
		s := outcome.(analysis.Sample)
		s.Value, s.Message, s.Verdict = s.Metadata["echo"], s.Metadata["echo"], v1alpha1.AnalysisPhaseFailed
		return s, err
	}
	for name, tc := range map[string]struct {
		answer func(analysis.Query, analysis.Handle) (analysis.Outcome, error)
		change func(*v1alpha1.Metric)
	}{
		"a value":        {ownKey(func(key string) any { return []any{key} }), func(m *v1alpha1.Metric) { m.SuccessCondition = "false" }},
		"cut in a value": {ownKey(func(key string) any { return strings.Repeat("a", 240) + key }), func(m *v1alpha1.Metric) { m.SuccessCondition = "false" }},
		"a verdict":      {verdict, func(*v1alpha1.Metric) {}},
		"of the baseline": {ownKey(func(string) any { return 1.0 }), func(m *v1alpha1.Metric) {
			m.Provider, m.SuccessCondition = prometheusOf(`{{args.hash}}`), "result > 2"
			m.Baseline = &v1alpha1.Baseline{Args: []v1alpha1.BaselineArgument{{Name: "hash", Value: "{{args.stable}}"}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := metric("m")
			tc.change(&m)
			run := newRun(m)
			run.Spec.Args = []v1alpha1.Argument{{Name: "hash", Value: &hash}, {Name: "stable", Value: &stable}}
			l := newLab(t, tc.answer, run)
			l.play(2)
			if got := l.run().Status.Phase; got != v1alpha1.AnalysisPhaseFailed {
				t.Fatalf("%s, want Failed", got)
			}
			if said := toldOf(t, l); strings.Contains(said, "s3cr3t") || !strings.Contains(said, analysis.Redacted) {
				t.Errorf("told %s", said)
			}
		})
	}
}

// Both values are kept as they were given, each without the key of its own question.
func TestComparedValuesAreKeptWithoutKeys(t *testing.T) {
	a := answer{redactor: analysis.MakeRedactor("one-s3cr3t").And(analysis.MakeRedactor("two-s3cr3t"))}
	if got := a.brief([]any{"one-s3cr3t", "two-s3cr3t"}); got != `["[redacted]","[redacted]"]` {
		t.Errorf("got %s", got)
	}
}

// What counts the samples may echo the key that it was asked with.
func TestASampleCountIsToldWithoutKeys(t *testing.T) {
	m := metric("m")
	m.Interval, m.MinSamples = "5s", &v1alpha1.MinSamples{Count: 2_000_000, Provider: prometheusOf("requests")}
	l := newLab(t, func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		return analysis.Sample{Value: 1234567.0, Redactor: analysis.MakeRedactor("1234567")}, nil
	}, newRun(m))
	l.play(1)
	if got := l.run().Status.MetricResults[0].Measurements[0].Message; got != "[redacted] of 2000000 samples yet" {
		t.Errorf("got %q", got)
	}
}
