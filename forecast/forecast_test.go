package forecast

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func weight(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }

func pause(d string) v1alpha1.CanaryStep {
	if d == "" {
		return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
	}
	length := intstr.FromString(d)
	return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: &length}}
}

func template(name string, metrics ...v1alpha1.Metric) analysis.Lookup {
	for i := range metrics {
		metrics[i].SuccessCondition = "result[0] >= 0.95"
		metrics[i].Provider = v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: "up"}}
	}
	return func(ref v1alpha1.AnalysisTemplateRef) (analysis.Template, error) {
		if ref.TemplateName != name {
			return analysis.Template{}, fmt.Errorf("there is no template %q", ref.TemplateName)
		}
		return analysis.Template{Name: name, Spec: v1alpha1.AnalysisTemplateSpec{Metrics: metrics}}, nil
	}
}

func analysed(name string) v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{Analysis: &v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: name}}}}
}

func canary(steps ...v1alpha1.CanaryStep) v1alpha1.RolloutSpec {
	return v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{Steps: steps}}}
}

func routedBy(spec v1alpha1.RolloutSpec) v1alpha1.RolloutSpec {
	spec.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}}
	return spec
}

func compute(t *testing.T, in Input) Forecast {
	t.Helper()
	in.Name = "web"
	f, err := Compute(in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// 10% of 3 pods is a quarter with one more pod, and a third without: the lesson.
func TestTheTrueShareWithoutARouter(t *testing.T) {
	for name, tc := range map[string]struct {
		surge    int32
		replicas int32
		weight   int32
		share    float64
	}{
		"10% of 3, one more": {1, 3, 10, 0.25}, "10% of 3, none more": {0, 3, 10, 1.0 / 3}, "10% of 10": {1, 10, 10, 0.1},
		"20% of 5": {1, 5, 20, 0.2}, "50% of 4": {1, 4, 50, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			spec := canary(weight(tc.weight), pause("1m"))
			surge, unavailable := intstr.FromInt32(tc.surge), intstr.FromInt32(1-min(tc.surge, 1))
			spec.Strategy.Canary.MaxSurge, spec.Strategy.Canary.MaxUnavailable = &surge, &unavailable
			f := compute(t, Input{Spec: spec, Replicas: tc.replicas, ReadyDelay: 5 * time.Second})
			if got := f.Steps[1].Share; math.Abs(got-tc.share) > 0.001 {
				t.Errorf("share %g, want %g: %+v", got, tc.share, f.Steps)
			}
			lies := math.Abs(tc.share-float64(tc.weight)/100) >= roundingMatters
			if said := slices.ContainsFunc(f.Notes, func(n string) bool { return n[:6] == "step 1" }); said != lies {
				t.Errorf("notes %q", f.Notes)
			}
		})
	}
}

func TestStepsOfARoutedCanary(t *testing.T) {
	f := compute(t, Input{
		Spec: routedBy(canary(weight(10), pause("60s"), analysed("errors"), weight(50), pause(""), weight(100))), Replicas: 4, ReadyDelay: 5 * time.Second,
		Lookup: template("errors", v1alpha1.Metric{Name: "errors", Interval: "30s", InitialDelay: "15s", Count: ptr(intstr.FromInt32(3))}),
	})
	if len(f.Steps) != 6 || !f.Routed {
		t.Fatalf("steps %+v", f.Steps)
	}
	shares := []float64{0.1, 0.1, 0.1, 0.5, 0.5, 1}
	for i, s := range f.Steps {
		if s.Share != shares[i] || s.Asked != shares[i] || s.Index != int32(i+1) || s.Waits != (i == 4) {
			t.Errorf("step %d: %+v, want a share of %g", i+1, s, shares[i])
		}
		if i > 0 && s.From != f.Steps[i-1].From+f.Steps[i-1].Lasts {
			t.Errorf("step %d begins at %g, and the one before ends at %g", i+1, s.From, f.Steps[i-1].From+f.Steps[i-1].Lasts)
		}
	}
	if s := f.Steps[1]; s.Lasts < 60 || s.Lasts > 62 || s.NewPods != 1 || s.OldPods != 4 {
		t.Errorf("the pause: %+v", s)
	}
	if s := f.Steps[2]; s.Lasts < 75 || s.Lasts > 80 {
		t.Errorf("the analysis measures for 75 s: %+v", s)
	}
	if len(f.Metrics) != 1 {
		t.Fatalf("metrics %+v", f.Metrics)
	}
	m := f.Metrics[0]
	if m.Run != "step 3" || m.Interval != 30 || m.Count != 3 || m.Measured != 3 || m.First < f.Steps[2].From+15 || m.First > f.Steps[2].From+18 {
		t.Errorf("metric %+v", m)
	}
	// It fails at its first measurement: the limit is 0.
	if d := m.IfBad; !d.Noticed || d.Most != 0.1 || d.At < m.First || d.At > m.First+15 || d.Traffic < 0.1*74 || d.Traffic > 0.1*100 {
		t.Errorf("if it is bad: %+v", d)
	}
	if f.Unnoticed.Most != 1 || f.Unnoticed.Traffic <= m.IfBad.Traffic || f.PromotedAt < 135 {
		t.Errorf("unnoticed %+v, promoted at %g", f.Unnoticed, f.PromotedAt)
	}
}

// A background run judges all the time; one that comes too late judges nothing.
func TestBackgroundRuns(t *testing.T) {
	spec := routedBy(canary(weight(20), pause("2m"), weight(60), pause("2m")))
	spec.Strategy.Canary.Analysis = &v1alpha1.RolloutAnalysisBackground{RolloutAnalysis: *analysed("errors").Analysis}
	for name, tc := range map[string]struct {
		metric  v1alpha1.Metric
		noticed bool
		most    float64
	}{
		"at once":         {v1alpha1.Metric{Name: "errors", Interval: "10s"}, true, 0.2},
		"after failures":  {v1alpha1.Metric{Name: "errors", Interval: "1m", FailureLimit: ptr(intstr.FromInt32(2))}, true, 0.6},
		"much too late":   {v1alpha1.Metric{Name: "errors", Interval: "10s", InitialDelay: "1h"}, false, 1},
		"tolerates all":   {v1alpha1.Metric{Name: "errors", Interval: "10s", FailureLimit: ptr(intstr.FromInt32(-1))}, false, 1},
		"needs too many":  {v1alpha1.Metric{Name: "errors", Interval: "1m", FailureLimit: ptr(intstr.FromInt32(50))}, false, 1},
		"a limited count": {v1alpha1.Metric{Name: "errors", Interval: "10s", Count: ptr(intstr.FromInt32(2))}, true, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			f := compute(t, Input{Spec: spec, Replicas: 5, ReadyDelay: time.Second, Lookup: template("errors", tc.metric)})
			d := f.Metrics[0].IfBad
			if d.Noticed != tc.noticed || d.Most != tc.most {
				t.Errorf("%+v, want noticed %t at %g", d, tc.noticed, tc.most)
			}
			if said := slices.ContainsFunc(f.Notes, func(n string) bool { return n[:10] == "background" }); said == tc.noticed {
				t.Errorf("notes %q", f.Notes)
			}
		})
	}
}

// A metric is measured until its run is over, or the update.
func TestHowOftenAMetricIsMeasured(t *testing.T) {
	three, seven := intstr.FromInt32(3), intstr.FromInt32(7)
	for name, tc := range map[string]struct {
		metric     v1alpha1.Metric
		background bool
		want       int32
	}{
		"a count":               {v1alpha1.Metric{Name: "m", Interval: "10s", Count: &seven}, false, 7},
		"a streak":              {v1alpha1.Metric{Name: "m", Interval: "10s", ConsecutiveSuccessLimit: &three}, false, 3},
		"once":                  {v1alpha1.Metric{Name: "m"}, false, 1},
		"a background":          {v1alpha1.Metric{Name: "m", Interval: "1m", InitialDelay: "30s"}, true, 10},
		"a background's streak": {v1alpha1.Metric{Name: "m", Interval: "10s", ConsecutiveSuccessLimit: &three}, true, 3},
		"much too late":         {v1alpha1.Metric{Name: "m", Interval: "10s", InitialDelay: "2h"}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			spec := routedBy(canary(weight(20), analysed("m"), pause("10m")))
			if tc.background {
				spec = routedBy(canary(weight(20), pause("10m")))
				spec.Strategy.Canary.Analysis = &v1alpha1.RolloutAnalysisBackground{RolloutAnalysis: *analysed("m").Analysis}
			}
			f := compute(t, Input{Spec: spec, Replicas: 5, ReadyDelay: time.Second, Lookup: template("m", tc.metric)})
			if got := f.Metrics[0].Measured; got != tc.want {
				t.Errorf("%d times, want %d: %+v", got, tc.want, f)
			}
		})
	}
}

func TestBlueGreenStages(t *testing.T) {
	no := false
	spec := v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{BlueGreen: &v1alpha1.BlueGreenStrategy{
		ActiveService: "web", PreviewService: "web-preview", AutoPromotionEnabled: &no,
		PrePromotionAnalysis: analysed("errors").Analysis, PostPromotionAnalysis: analysed("errors").Analysis,
	}}}
	f := compute(t, Input{Spec: spec, Replicas: 3, ReadyDelay: 5 * time.Second, Lookup: template("errors", v1alpha1.Metric{Name: "errors", Interval: "10s", Count: ptr(intstr.FromInt32(4))})})
	var texts []string
	for _, s := range f.Steps {
		texts = append(texts, s.Text)
	}
	if want := []string{"pre-promotion analysis", "pause", "switch of the active Service", "post-promotion analysis"}; !slices.Equal(texts, want) {
		t.Fatalf("stages %q", texts)
	}
	if len(f.Metrics) != 2 || f.Metrics[0].IfBad.Most != 0 || !f.Metrics[0].IfBad.Noticed || f.Metrics[1].IfBad.Most != 1 || !f.Metrics[1].IfBad.Noticed {
		t.Errorf("metrics %+v", f.Metrics)
	}
	if !f.Steps[1].Waits || f.Steps[3].Share != 1 || f.Steps[0].Share != 0 {
		t.Errorf("steps %+v", f.Steps)
	}
}

func TestWhatCantBeForecast(t *testing.T) {
	none := int32(0)
	for name, in := range map[string]Input{
		"no strategy":           {},
		"a template is missing": {Spec: canary(weight(10), analysed("gone")), Lookup: template("errors")},
		"no replicas":           {Spec: v1alpha1.RolloutSpec{Replicas: &none, Strategy: canary(weight(10)).Strategy}},
		"a metric of nothing":   {Spec: canary(analysed("errors")), Lookup: template("errors", v1alpha1.Metric{Name: "errors", Interval: "soon"})},
	} {
		if f, err := Compute(in); err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// BenchmarkCompute prints how many simulated seconds go by in one.
func BenchmarkCompute(b *testing.B) {
	spec := routedBy(canary(weight(1), pause("8h"), weight(10), pause("8h"), weight(50), pause("8h")))
	simulated := 0.0
	for b.Loop() {
		f, err := Compute(Input{Name: "web", Spec: spec, Replicas: 10, ReadyDelay: 5 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		simulated += float64(f.PromotedAt)
	}
	b.ReportMetric(simulated/b.Elapsed().Seconds(), "simulated-s/s")
}
