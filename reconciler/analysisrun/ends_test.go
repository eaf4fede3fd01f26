package analysisrun

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func secretRun() *v1alpha1.AnalysisRun {
	m := metric("m")
	m.Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{Key: "Authorization", Value: "Bearer {{ args.tok }}"}}
	m.SuccessCondition = `result != "{{args.tok}}"`
	run := newRun(m)
	run.Spec.Args = []v1alpha1.Argument{{Name: "tok", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}}}
	return run
}

func TestC41_SecretsAreReadWhenMeasuring(t *testing.T) {
	l := newLab(t, func(q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
		token := strings.TrimPrefix(q.Provider.Prometheus.Headers[0].Value, "Bearer ")
		if token == "first-s3cr3t" {
			return nil, errors.New("denied for " + token)
		}
		return analysis.Sample{Value: token, Metadata: map[string]string{"echo": "x" + token}}, nil
	}, secretRun(), withSecret("t", "first-s3cr3t"))
	l.play(1)
	secret := withSecret("t", "second-s3cr3t")
	if err := l.client.Update(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
	l.play(5)
	if n := len(l.provider.asked); n != 2 {
		t.Fatalf("%d questions, want 2", n)
	}
	for i, want := range []string{"Bearer first-s3cr3t", "Bearer second-s3cr3t"} {
		if got := l.provider.asked[i].Provider.Prometheus.Headers[0].Value; got != want {
			t.Errorf("question %d carried %q, want %q", i, got, want)
		}
	}
	run := l.run()
	if run.Status.Phase != v1alpha1.AnalysisPhaseFailed {
		t.Errorf("got %s", run.Status.Phase)
	}
	stored, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	said := string(stored) + strings.Join(l.told(), "\n") + analysis.Detail(run.Status) + strings.Join(analysis.Lines(run.Status), "\n")
	if strings.Contains(said, "s3cr3t") {
		t.Errorf("the secret is in %s", said)
	}
	if !strings.Contains(said, analysis.Redacted) {
		t.Errorf("nothing was redacted in %s", said)
	}
}

func TestC41_MissingSecretIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		parts   []string
	}{
		"no Secret": {nil, []string{`Secret "api"`, "there is no"}},
		"no key":    {[]client.Object{withSecret("other", "x")}, []string{`Secret "api"`, `no key "t"`}},
		"empty":     {[]client.Object{withSecret("t", "")}, []string{`Secret "api"`, `key "t"`, "empty"}},
		"elsewhere": {[]client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "api"}, Data: map[string][]byte{"t": []byte("x")}}}, []string{"there is no"}},
	} {
		t.Run(name, func(t *testing.T) {
			other := metric("other")
			run := secretRun()
			run.Spec.Metrics = append(run.Spec.Metrics, other)
			l := newLab(t, always([]any{1.0}), append(tc.objects, run)...)
			l.reconcile()
			result := l.run().Status.MetricResults[0]
			if result.Error != 1 || result.Measurements[0].Phase != v1alpha1.AnalysisPhaseError {
				t.Fatalf("got %+v", result)
			}
			for _, part := range tc.parts {
				if !strings.Contains(result.Measurements[0].Message, part) {
					t.Errorf("%q does not say %s", result.Measurements[0].Message, part)
				}
			}
			if len(l.provider.asked) != 1 || l.provider.asked[0].Metric != "other" {
				t.Errorf("asked %+v, want the metric without a secret alone", l.provider.asked)
			}
		})
	}
}

func TestTerminate(t *testing.T) {
	l := newLab(t, func(q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
		if q.Metric == "long" {
			return analysis.Pending{Handle: analysis.Handle{"job": q.ID}, After: time.Minute}, nil
		}
		return analysis.Sample{Value: []any{1.0}}, nil
	}, newRun(metric("long"), metric("quick")))
	l.reconcile()
	run := l.run()
	if m := run.Status.MetricResults[0].Measurements[0]; m.Phase != v1alpha1.AnalysisPhaseRunning || m.Metadata["job"] != "uid-1.long.1" {
		t.Fatalf("got %+v", m)
	}
	run.Spec.Terminate = true
	if err := l.client.Update(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	l.play(3)
	if diff := cmp.Diff([]analysis.Handle{{"job": "uid-1.long.1"}}, l.provider.stopped); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	if got := l.run().Status.Phase; got != v1alpha1.AnalysisPhaseInconclusive {
		t.Errorf("got %s, want Inconclusive", got)
	}
}

func TestBadMetricStopsTheOthers(t *testing.T) {
	l := newLab(t, func(q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
		if q.Metric == "long" {
			return analysis.Pending{Handle: analysis.Handle{"job": "j"}, After: time.Minute}, nil
		}
		return analysis.Sample{Value: []any{0.1}}, nil
	}, newRun(metric("long"), metric("bad")))
	l.reconcile()
	if got := l.run().Status.Phase; got != v1alpha1.AnalysisPhaseFailed || len(l.provider.stopped) != 1 || l.writes != 1 {
		t.Errorf("got %s with %d stopped in %d writes", got, len(l.provider.stopped), l.writes)
	}
}

func TestResume(t *testing.T) {
	l := newLab(t, func(_ analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
		if prior == nil {
			return analysis.Pending{Handle: analysis.Handle{"job": "j"}, After: 7 * time.Second}, nil
		}
		return analysis.Sample{Verdict: v1alpha1.AnalysisPhaseSuccessful, Message: "job " + prior["job"] + " is complete"}, nil
	}, newRun(metric("m")))
	if got := l.reconcile().RequeueAfter; got != 7*time.Second {
		t.Errorf("asked again after %s, want 7s", got)
	}
	l.now = l.now.Add(7 * time.Second)
	l.play(1)
	r := l.run().Status.MetricResults[0]
	if r.Phase != v1alpha1.AnalysisPhaseSuccessful || len(r.Measurements) != 1 || r.Measurements[0].Message != "job j is complete" || r.Count != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestTTL(t *testing.T) {
	seconds := func(n int32) *int32 { return &n }
	for name, tc := range map[string]struct {
		ttl   *v1alpha1.TTLStrategy
		value float64
		want  time.Duration // 0 for never
	}{
		"none":                 {nil, 1, 0},
		"empty":                {&v1alpha1.TTLStrategy{}, 1, 0},
		"completion":           {&v1alpha1.TTLStrategy{SecondsAfterCompletion: seconds(60)}, 1, time.Minute},
		"success wins":         {&v1alpha1.TTLStrategy{SecondsAfterCompletion: seconds(60), SecondsAfterSuccess: seconds(5)}, 1, 5 * time.Second},
		"failure wins":         {&v1alpha1.TTLStrategy{SecondsAfterCompletion: seconds(60), SecondsAfterFailure: seconds(5)}, 0, 5 * time.Second},
		"of success, it fails": {&v1alpha1.TTLStrategy{SecondsAfterSuccess: seconds(5)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(metric("m"))
			run.Spec.TTLStrategy = tc.ttl
			l := newLab(t, always([]any{tc.value}), run)
			if got := l.reconcile().RequeueAfter; got != tc.want {
				t.Fatalf("got %s, want %s", got, tc.want)
			}
			l.now = l.now.Add(tc.want)
			l.reconcile()
			err := l.client.Get(context.Background(), key, &v1alpha1.AnalysisRun{})
			if got := apierrors.IsNotFound(err); got != (tc.want > 0) {
				t.Errorf("got %v, want it deleted: %t", err, tc.want > 0)
			}
		})
	}
}

func TestNaNIsStored(t *testing.T) {
	zero := 0.0
	l := newLab(t, always([]any{zero / zero, 1 / zero}), newRun(metric("m")))
	l.play(3)
	m := l.run().Status.MetricResults[0].Measurements[0]
	if m.Value != "[NaN,+Inf]" || m.Phase != v1alpha1.AnalysisPhaseFailed {
		t.Errorf("got %s %q", m.Phase, m.Value)
	}
}
