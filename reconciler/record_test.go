package reconciler

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/reconciler/metrics"
)

// failing is a step whose analysis a test ends by hand: no controller of runs is there.
func (l *lab) failing() v1alpha1.CanaryStep {
	l.Helper()
	l.create(&v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "rate"}, Spec: v1alpha1.AnalysisTemplateSpec{
		Metrics: []v1alpha1.Metric{{
			Name: "rate", SuccessCondition: "result[0] > 0.9",
			Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus.example:9090", Query: "rate"}},
		}},
	}})
	return v1alpha1.CanaryStep{Analysis: &v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "rate"}}}}
}

// fail ends the only run with a failed measurement, once there is one.
func (l *lab) fail() {
	l.Helper()
	clustertest.Eventually(l, patience, func() error {
		var list v1alpha1.AnalysisRunList
		if _, err := l.pass(); err != nil {
			return err
		}
		if err := l.client.List(l.Context(), &list, client.InNamespace(l.namespace)); err != nil || len(list.Items) == 0 {
			return errOr(err, "no run yet")
		}
		run, now := &list.Items[0], metav1.Now()
		run.Status.Phase, run.Status.CompletedAt = v1alpha1.AnalysisPhaseFailed, &now
		run.Status.MetricResults = []v1alpha1.MetricResult{{
			Name: "rate", Phase: v1alpha1.AnalysisPhaseFailed, Count: 1, Failed: 1,
			Measurements: []v1alpha1.Measurement{{Phase: v1alpha1.AnalysisPhaseFailed, FinishedAt: &now, Value: "[0.5]"}},
		}}
		return l.client.Status().Update(l.Context(), run)
	})
}

// counted are the values of counters and the counts of histograms that aren't 0,
// and how many series there are.
func counted(t *testing.T, recorder *metrics.Recorder) (map[string]float64, int) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(recorder); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out, series := map[string]float64{}, 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series++
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				if label.GetName() == "reason" || label.GetName() == "outcome" {
					name += " " + label.GetValue()
				}
			}
			if value := metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount()); value > 0 {
				out[name] = value
			}
		}
	}
	return out, series
}

func TestMetricsOfAnAbort(t *testing.T) {
	l := newLab(t)
	recorder := metrics.New()
	l.reconciler.Metrics = recorder
	l.routed(setWeight(50), l.failing())
	l.byHand()
	l.passesUntil("healthy", healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	l.fail()
	l.passesUntil("taken back, as seen", func(r *v1alpha1.Rollout) bool {
		return r.Status.Abort && r.Status.Canary.Weights.Canary.Weight == 0 && r.Status.Canary.Weights.Since != nil
	})
	want := map[string]float64{
		"pushback_rollout_aborts_total Failed": 1, "pushback_rollout_take_back_seconds": 1,
		"pushback_rollout_duration_seconds Promoted": 1, "pushback_rollout_duration_seconds Aborted": 1,
	}
	if got, _ := counted(t, recorder); !cmp.Equal(want, got) {
		t.Errorf("counted (-want +got):\n%s", cmp.Diff(want, got))
	}

	restarted := metrics.New()
	l.reconciler.Metrics = restarted
	for range 3 {
		if _, err := l.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if got, series := counted(t, restarted); len(got) > 0 || series == 0 {
		t.Errorf("after a restart: %v, in %d series", got, series)
	}

	if err := l.client.Delete(t.Context(), l.rollout()); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			return err
		}
		if _, series := counted(t, restarted); series > 0 {
			return errOr(nil, "series are left of a Rollout that is gone")
		}
		return nil
	})
}

// errOr is err, or else an error that says text.
func errOr(err error, text string) error {
	if err != nil {
		return err
	}
	return errors.New(text)
}
