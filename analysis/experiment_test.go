package analysis

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestMakeExperimentRunSpec(t *testing.T) {
	template := v1alpha1.AnalysisTemplateSpec{
		Args: []v1alpha1.Argument{{Name: "hash"}, {Name: "name", ValueFrom: &v1alpha1.ValueFrom{FieldRef: &v1alpha1.FieldRef{FieldPath: "metadata.name"}}}},
		Metrics: []v1alpha1.Metric{{Name: "errors", SuccessCondition: "result[0] < 1.0",
			Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: `x{h="{{args.hash}}",n="{{args.name}}"}`}}}},
	}
	errNone := errors.New("there is none")
	lookup := func(ref v1alpha1.AnalysisTemplateRef) (Template, error) {
		if ref.TemplateName != "rate" {
			return Template{}, errNone
		}
		return Template{Name: "rate", Spec: template}, nil
	}
	src := ExperimentSource{
		Values: map[string]string{TemplateHashValue("a"): "0123456789", ExperimentAvailableAt: "then"},
		Object: map[string]any{"metadata": map[string]any{"name": "exp"}},
	}
	spec := v1alpha1.ExperimentSpec{
		DryRun:               []v1alpha1.DryRun{{MetricName: "other"}, {MetricName: "err"}},
		MeasurementRetention: []v1alpha1.MeasurementRetention{{MetricName: "nothing", Limit: 1}, {MetricName: "errors", Limit: 3}},
	}
	of := func(name, value string) v1alpha1.ExperimentAnalysisTemplateRef {
		return v1alpha1.ExperimentAnalysisTemplateRef{Name: "x", TemplateName: name, Args: []v1alpha1.Argument{{Name: "hash", Value: &value}}}
	}
	got, err := MakeExperimentRunSpec(of("rate", "h-{{ templates.a.podTemplateHash }}-{{experiment.availableAt}}"), spec, src, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.AnalysisRunSpec{
		Metrics: template.Metrics,
		Args:    []v1alpha1.Argument{{Name: "hash", Value: ptr.To("h-0123456789-then")}, {Name: "name", Value: ptr.To("exp")}},
		DryRun:  spec.DryRun[1:], MeasurementRetention: spec.MeasurementRetention[1:],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var invalid *InvalidError
	if _, err := MakeExperimentRunSpec(of("rate", "{{experiment.finishedAt}}"), spec, src, lookup); !errors.As(err, &invalid) {
		t.Errorf("a value that there is none for: %v", err)
	}
	if _, err := MakeExperimentRunSpec(of("other", "1"), spec, src, lookup); !errors.Is(err, errNone) {
		t.Errorf("a template that there is none of: %v", err)
	}
	var fields []string
	for _, p := range UnmatchedPatterns(spec, template.Metrics) {
		fields = append(fields, p.Field)
	}
	if diff := cmp.Diff([]string{"spec.dryRun[0].metricName", "spec.measurementRetention[0].metricName"}, fields); diff != "" {
		t.Errorf("patterns that name nothing (-want +got):\n%s", diff)
	}
}
