package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestExperimentStep(t *testing.T) {
	type step = v1alpha1.RolloutExperimentStep
	arg := func(a v1alpha1.AnalysisRunArgument) func(*step) {
		return func(s *step) { s.Analyses[0].Args = []v1alpha1.AnalysisRunArgument{a} }
	}
	const at = "spec.strategy.canary.steps[0].experiment"
	cases := map[string]struct {
		edit func(*step)
		want []string
	}{
		"good":         {func(*step) {}, nil},
		"no template":  {func(s *step) { s.Templates, s.Analyses[0].Args = nil, nil }, []string{at + ".templates"}},
		"duration":     {func(s *step) { s.Duration = "soon" }, []string{at + ".duration"}},
		"delay":        {func(s *step) { s.ScaleDownDelaySeconds = ptr[int32](-1) }, []string{at + ".scaleDownDelaySeconds"}},
		"name":         {func(s *step) { s.Templates[1].Name = "" }, []string{at + ".templates[1].name"}},
		"version":      {func(s *step) { s.Templates[1].SpecRef = "newest" }, []string{at + ".templates[1].specRef"}},
		"replicas":     {func(s *step) { s.Templates[1].Replicas = ptr[int32](-1) }, []string{at + ".templates[1].replicas"}},
		"no port":      {func(s *step) { s.Templates[1].Service = &v1alpha1.TemplateService{} }, []string{at + ".templates[1].service"}},
		"service name": {func(s *step) { s.Templates[1].Service = &v1alpha1.TemplateService{Name: "A"} }, []string{at + ".templates[1].service", at + ".templates[1].service.name"}},
		"selector": {func(s *step) {
			s.Templates[1].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}
		}, []string{at + ".templates[1].selector"}},
		"selector of its own labels": {func(s *step) {
			s.Templates[1].Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "trial"}}
			s.Templates[1].Metadata = &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"app": "trial"}}
		}, nil},
		"analysis":         {func(s *step) { s.Analyses[0].TemplateName = "" }, []string{at + ".analyses[0].templateName"}},
		"analysis name":    {func(s *step) { s.Analyses[0].Name = "Rate" }, []string{at + ".analyses[0].name"}},
		"unknown value":    {arg(v1alpha1.AnalysisRunArgument{Name: "a", Value: "{{templates.other.podTemplateHash}}"}), []string{at + ".analyses[0].args[0].value"}},
		"both values":      {arg(v1alpha1.AnalysisRunArgument{Name: "a", Value: "1", ValueFrom: &v1alpha1.ArgumentValueFrom{FieldRef: &v1alpha1.FieldRef{FieldPath: "metadata.name"}}}), []string{at + ".analyses[0].args[0]"}},
		"pattern":          {func(s *step) { s.DryRun = []v1alpha1.DryRun{{MetricName: "("}} }, []string{at + ".dryRun[0].metricName"}},
		"nothing to spare": {func(s *step) { s.Analyses, s.DryRun = nil, []v1alpha1.DryRun{{MetricName: "a"}} }, []string{at + ".analyses"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			experiment := step{
				Templates: []v1alpha1.RolloutExperimentTemplate{{Name: "baseline", SpecRef: "stable"}, {Name: "canary", SpecRef: "canary", Replicas: ptr[int32](2)}},
				Analyses: []v1alpha1.RolloutExperimentStepAnalysisTemplateRef{{Name: "rate", TemplateName: "rate", RequiredForCompletion: true,
					Args: []v1alpha1.AnalysisRunArgument{{Name: "base", Value: "{{templates.baseline.podTemplateHash}}"}}}},
			}
			tc.edit(&experiment)
			spec := v1alpha1.RolloutSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: &runtime.RawExtension{Raw: []byte(podTemplate)},
				Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{Steps: []v1alpha1.CanaryStep{{Experiment: &experiment}}}},
			}
			if diff := cmp.Diff(tc.want, fields(Rollout(spec))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExperimentWeights(t *testing.T) {
	const at = "spec.strategy.canary.steps[1].experiment.templates"
	const ported = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:2","ports":[{"containerPort":8080}]}]}}`
	gateway := &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}}
	cases := map[string]struct {
		weights  []int32
		routing  *v1alpha1.RolloutTrafficRouting
		template string
		want     []string
	}{
		"parts of stable's":       {[]int32{5, 75}, gateway, ported, nil},
		"nothing":                 {[]int32{0, 0}, gateway, ported, nil},
		"more than stable has":    {[]int32{6, 75}, gateway, ported, []string{at}},
		"negative":                {[]int32{-1, 5}, gateway, ported, []string{at + "[0].weight"}},
		"no router":               {[]int32{5, 5}, nil, ported, []string{at + "[0].weight", at + "[1].weight"}},
		"no port for its Service": {[]int32{5, 0}, gateway, podTemplate, []string{at + "[0].weight"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			step := &v1alpha1.RolloutExperimentStep{Templates: []v1alpha1.RolloutExperimentTemplate{
				{Name: "baseline", SpecRef: "stable", Weight: &tc.weights[0]}, {Name: "canary", SpecRef: "canary", Weight: &tc.weights[1]}}, Duration: "5m"}
			spec := v1alpha1.RolloutSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: &runtime.RawExtension{Raw: []byte(tc.template)},
				Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{TrafficRouting: tc.routing, Steps: []v1alpha1.CanaryStep{{SetWeight: ptr[int32](20)}, {Experiment: step}}}},
			}
			if tc.routing != nil {
				spec.Strategy.Canary.StableService, spec.Strategy.Canary.CanaryService = "web-stable", "web-canary"
			}
			if diff := cmp.Diff(tc.want, fields(Rollout(spec))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
