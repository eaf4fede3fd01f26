package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const podTemplate = `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app:2","future":1}]}}`

// good is a Rollout that uses much of what is built.
func good() v1alpha1.RolloutSpec {
	latest := v1alpha1.HashLatest
	return v1alpha1.RolloutSpec{
		Replicas: ptr[int32](4),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: &runtime.RawExtension{Raw: []byte(podTemplate)},
		Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{
			StableService: "web-stable", CanaryService: "web-canary",
			MaxSurge: percent("25%"), MaxUnavailable: number(0),
			ScaleDownDelaySeconds: ptr[int32](30),
			TrafficRouting:        &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}},
			Steps: []v1alpha1.CanaryStep{
				{SetWeight: ptr[int32](0)}, {SetWeight: ptr[int32](100)},
				{Pause: &v1alpha1.RolloutPause{}}, {Pause: &v1alpha1.RolloutPause{Duration: number(10)}},
				{Pause: &v1alpha1.RolloutPause{Duration: percent("10m")}}, {Pause: &v1alpha1.RolloutPause{Duration: percent("15")}},
				{Analysis: &v1alpha1.RolloutAnalysis{
					Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "success"}, {TemplateName: "success", ClusterScope: true}},
					Args: []v1alpha1.AnalysisRunArgument{{Name: "a", Value: "1"}, {Name: "b"},
						{Name: "c", ValueFrom: &v1alpha1.ArgumentValueFrom{PodTemplateHashValue: &latest}}},
					DryRun: []v1alpha1.DryRun{{MetricName: "p9.*"}},
				}},
			},
			Analysis: &v1alpha1.RolloutAnalysisBackground{
				RolloutAnalysis: v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "success"}}},
				StartingStep:    ptr[int32](6),
			},
		}},
		Supersede: v1alpha1.SupersedeAlways,
		Revert: &v1alpha1.RevertSpec{Mode: v1alpha1.RevertPush, On: []v1alpha1.AbortReason{v1alpha1.AbortFailed, v1alpha1.AbortError},
			Author: &v1alpha1.GitIdentity{Name: "Bot", Email: "bot@example.com"}, Budget: &v1alpha1.RevertBudget{PerRollout: ptr[int32](0)}},
	}
}

func ptr[T any](value T) *T { return &value }

func percent(text string) *intstr.IntOrString { v := intstr.FromString(text); return &v }

func number(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }

// fields are the paths of the problems, without the constant start.
func fields(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Field)
	}
	return out
}

func TestRolloutAcceptsWhatIsBuilt(t *testing.T) {
	cases := map[string]func(*v1alpha1.RolloutSpec){
		"canary with a router": func(*v1alpha1.RolloutSpec) {},
		"basic canary, Services without a router (C67)": func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Canary.TrafficRouting, s.Strategy.Canary.ScaleDownDelaySeconds = nil, nil
		},
		"no steps": func(s *v1alpha1.RolloutSpec) { s.Strategy.Canary = &v1alpha1.CanaryStrategy{} },
		"Argo's plugin": func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{Plugins: map[string]runtime.RawExtension{
				"argoproj-labs/gatewayAPI": {Raw: []byte(`{"httpRoutes":[{"name":"web"},{"name":"api"}],"namespace":"shop"}`)}}}
		},
		"a whole of 100": func(s *v1alpha1.RolloutSpec) { s.Strategy.Canary.TrafficRouting.MaxTrafficWeight = ptr[int32](100) },
		"empty lists": func(s *v1alpha1.RolloutSpec) {
			s.Strategy.Canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{}
		},
		"replicas omitted": func(s *v1alpha1.RolloutSpec) { s.Replicas = nil },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			spec := good()
			edit(&spec)
			if problems := Rollout(spec); len(problems) > 0 {
				t.Errorf("refused: %v", problems)
			}
		})
	}
}

func TestRolloutRefuses(t *testing.T) {
	const canary = "spec.strategy.canary"
	type spec = v1alpha1.RolloutSpec
	step := func(s v1alpha1.CanaryStep) func(*spec) {
		return func(r *spec) { r.Strategy.Canary.Steps, r.Strategy.Canary.Analysis = []v1alpha1.CanaryStep{s}, nil }
	}
	analysis := func(a v1alpha1.RolloutAnalysis) func(*spec) { return step(v1alpha1.CanaryStep{Analysis: &a}) }
	templates := []v1alpha1.AnalysisTemplateRef{{TemplateName: "t"}}
	cases := map[string]struct {
		edit func(*spec)
		want []string
	}{
		"negative replicas":         {func(s *spec) { s.Replicas = ptr[int32](-1) }, []string{"spec.replicas"}},
		"deadline not after ready":  {func(s *spec) { s.MinReadySeconds = 600 }, []string{"spec.progressDeadlineSeconds"}},
		"no selector":               {func(s *spec) { s.Selector = nil }, []string{"spec.selector"}},
		"empty selector":            {func(s *spec) { s.Selector = &metav1.LabelSelector{} }, []string{"spec.selector"}},
		"selector of other pods":    {func(s *spec) { s.Selector.MatchLabels["app"] = "api" }, []string{"spec.selector"}},
		"selector with our label":   {func(s *spec) { s.Selector.MatchLabels[v1alpha1.TemplateHashLabel] = "x" }, []string{"spec.selector", "spec.selector.matchLabels[pushback.dev/template-hash]"}},
		"no template":               {func(s *spec) { s.Template = nil }, []string{"spec.template"}},
		"template that is a list":   {func(s *spec) { s.Template.Raw = []byte("[]") }, []string{"spec.template"}},
		"C122 label without quotes": {func(s *spec) { s.Template.Raw = []byte(`{"metadata":{"labels":{"app":"web","on":true}}}`) }, []string{"spec.template.metadata.labels[on]"}},
		"annotation without quotes": {func(s *spec) { s.Template.Raw = []byte(`{"metadata":{"labels":{"app":"web"},"annotations":{"n":1}}}`) }, []string{"spec.template.metadata.annotations[n]"}},
		"no strategy":               {func(s *spec) { s.Strategy.Canary = nil }, []string{"spec.strategy"}},
		"two strategies":            {func(s *spec) { s.Strategy.BlueGreen = &v1alpha1.BlueGreenStrategy{} }, []string{"spec.strategy"}},
		"C68 no room to move":       {func(s *spec) { s.Strategy.Canary.MaxSurge = number(0) }, []string{canary + ".maxUnavailable"}},
		"C68 no room in per cent": {func(s *spec) {
			s.Strategy.Canary.MaxSurge, s.Strategy.Canary.MaxUnavailable = percent("0%"), percent("0%")
		}, []string{canary + ".maxUnavailable"}},
		"surge without a per cent":  {func(s *spec) { s.Strategy.Canary.MaxSurge = percent("25") }, []string{canary + ".maxSurge"}},
		"unavailable above a whole": {func(s *spec) { s.Strategy.Canary.MaxUnavailable = percent("101%") }, []string{canary + ".maxUnavailable"}},
		"router without Services":   {func(s *spec) { s.Strategy.Canary.StableService, s.Strategy.Canary.CanaryService = "", "" }, []string{canary + ".canaryService", canary + ".stableService"}},
		"router with one Service":   {func(s *spec) { s.Strategy.Canary.CanaryService = "web-stable" }, []string{canary + ".canaryService"}},
		"bad Service name":          {func(s *spec) { s.Strategy.Canary.CanaryService = "web_canary" }, []string{canary + ".canaryService"}},
		"router without a name":     {func(s *spec) { s.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{} }, []string{canary + ".trafficRouting"}},
		"no route":                  {func(s *spec) { s.Strategy.Canary.TrafficRouting.GatewayAPI.HTTPRoute = "" }, []string{canary + ".trafficRouting.gatewayAPI"}},
		"route named twice": {func(s *spec) {
			s.Strategy.Canary.TrafficRouting.GatewayAPI.HTTPRoutes = []v1alpha1.GatewayAPIRoute{{Name: "web"}}
		}, []string{canary + ".trafficRouting.gatewayAPI.httpRoutes[0].name"}},
		"plugin of somebody": {func(s *spec) {
			s.Strategy.Canary.TrafficRouting.Plugins = map[string]runtime.RawExtension{"acme/x": {}}
		}, []string{canary + ".trafficRouting.plugins[acme/x]"}},
		"ping-pong beside Services": {func(s *spec) {
			s.Strategy.Canary.PingPong = &v1alpha1.PingPongSpec{PingService: "ping", PongService: "pong"}
		}, []string{canary + ".canaryService", canary + ".stableService"}},
		"ping-pong of one Service": {func(s *spec) {
			s.Strategy.Canary.StableService, s.Strategy.Canary.CanaryService = "", ""
			s.Strategy.Canary.PingPong = &v1alpha1.PingPongSpec{PingService: "ping", PongService: "ping"}
		}, []string{canary + ".pingPong.pongService"}},
		"ping-pong without a router": {func(s *spec) {
			s.Strategy.Canary = &v1alpha1.CanaryStrategy{PingPong: &v1alpha1.PingPongSpec{PingService: "ping", PongService: "po_ng"}}
		}, []string{canary + ".pingPong", canary + ".pingPong.pongService"}},
		"shrinking stable without a router": {func(s *spec) {
			s.Strategy.Canary.DynamicStableScale, s.Strategy.Canary.TrafficRouting, s.Strategy.Canary.ScaleDownDelaySeconds = true, nil, nil
		}, []string{canary + ".dynamicStableScale"}},
		"shrinking stable with a delay": {func(s *spec) { s.Strategy.Canary.DynamicStableScale = true }, []string{canary + ".dynamicStableScale"}},
		"delay without a router":        {func(s *spec) { s.Strategy.Canary.TrafficRouting = nil }, []string{canary + ".scaleDownDelaySeconds"}},
		"weight above a whole":          {step(v1alpha1.CanaryStep{SetWeight: ptr[int32](101)}), []string{canary + ".steps[0].setWeight"}},
		"negative weight":               {step(v1alpha1.CanaryStep{SetWeight: ptr[int32](-1)}), []string{canary + ".steps[0].setWeight"}},
		"step of nothing":               {step(v1alpha1.CanaryStep{}), []string{canary + ".steps[0]"}},
		"step of two":                   {step(v1alpha1.CanaryStep{SetWeight: ptr[int32](1), Pause: &v1alpha1.RolloutPause{}}), []string{canary + ".steps[0]"}},
		"pause without a unit":          {step(v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: percent("ten")}}), []string{canary + ".steps[0].pause.duration"}},
		"pause of nothing":              {step(v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: percent("")}}), []string{canary + ".steps[0].pause.duration"}},
		"negative pause":                {step(v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: number(-1)}}), []string{canary + ".steps[0].pause.duration"}},
		"analysis of nothing":           {analysis(v1alpha1.RolloutAnalysis{}), []string{canary + ".steps[0].analysis.templates"}},
		"analysis without a name":       {analysis(v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{}}}), []string{canary + ".steps[0].analysis.templates[0].templateName"}},
		"template named twice":          {analysis(v1alpha1.RolloutAnalysis{Templates: append(templates, templates...)}), []string{canary + ".steps[0].analysis.templates[1].templateName"}},
		"argument given twice":          {analysis(v1alpha1.RolloutAnalysis{Templates: templates, Args: []v1alpha1.AnalysisRunArgument{{Name: "a"}, {Name: "a"}}}), []string{canary + ".steps[0].analysis.args[1].name"}},
		"argument from nowhere":         {analysis(v1alpha1.RolloutAnalysis{Templates: templates, Args: []v1alpha1.AnalysisRunArgument{{Name: "a", ValueFrom: &v1alpha1.ArgumentValueFrom{}}}}), []string{canary + ".steps[0].analysis.args[0].valueFrom"}},
		"bad pattern":                   {analysis(v1alpha1.RolloutAnalysis{Templates: templates, DryRun: []v1alpha1.DryRun{{MetricName: "("}}}), []string{canary + ".steps[0].analysis.dryRun[0].metricName"}},
		"retention of nothing":          {analysis(v1alpha1.RolloutAnalysis{Templates: templates, MeasurementRetention: []v1alpha1.MeasurementRetention{{MetricName: "a"}}}), []string{canary + ".steps[0].analysis.measurementRetention[0].limit"}},
		"starting after the last":       {func(s *spec) { s.Strategy.Canary.Analysis.StartingStep = ptr[int32](7) }, []string{canary + ".analysis.startingStep"}},
		"reason of no abort":            {func(s *spec) { s.Revert.On = []v1alpha1.AbortReason{"Bored"} }, []string{"spec.revert.on[0]"}},
		"reason given twice":            {func(s *spec) { s.Revert.On = []v1alpha1.AbortReason{"Error", "Error"} }, []string{"spec.revert.on[1]"}},
		"author with a line break":      {func(s *spec) { s.Revert.Author.Name = "a\nb" }, []string{"spec.revert.author.name"}},
		"message":                       {func(s *spec) { s.Revert.Message = "{{.Rollout.Name}}: {{.Message}}" }, nil},
		"message that doesn't parse":    {func(s *spec) { s.Revert.Message = "{{" }, []string{"spec.revert.message"}},
		"message that forges":           {func(s *spec) { s.Revert.Message = "Pushback-Retry: {{.Rejected}}" }, []string{"spec.revert.message"}},
		"age":                           {func(s *spec) { s.Revert.MaxAge = &metav1.Duration{Duration: time.Hour} }, nil},
		"no limit of age":               {func(s *spec) { s.Revert.MaxAge = &metav1.Duration{} }, nil},
		"negative age":                  {func(s *spec) { s.Revert.MaxAge = &metav1.Duration{Duration: -1} }, []string{"spec.revert.maxAge"}},
		"negative budget":               {func(s *spec) { s.Revert.Budget.PerRepository = ptr[int32](-1) }, []string{"spec.revert.budget.perRepository"}},
		"negative window":               {func(s *spec) { s.RollbackWindow = &v1alpha1.RollbackWindowSpec{Revisions: -1} }, []string{"spec.rollbackWindow.revisions"}},
		"negative limit of versions":    {func(s *spec) { s.Strategy.Canary.ScaleDownDelayRevisionLimit = ptr[int32](-1) }, []string{canary + ".scaleDownDelayRevisionLimit"}},
		"unknown policy":                {func(s *spec) { s.Supersede = "Never" }, []string{"spec.supersede"}},
		"the other policy":              {func(s *spec) { s.Supersede = v1alpha1.SupersedeWait }, nil},
		"revert that is not built":      {func(s *spec) { s.Revert.Mode = v1alpha1.RevertPullRequest }, []string{"spec.revert.mode"}},
		"revert to another branch":      {func(s *spec) { s.Revert.Branch = "fixes" }, []string{"spec.revert.branch"}},
		"a whole of another size":       {func(s *spec) { s.Strategy.Canary.TrafficRouting.MaxTrafficWeight = ptr[int32](1000) }, nil},
		"more than the whole":           {func(s *spec) { s.Strategy.Canary.TrafficRouting.MaxTrafficWeight = ptr[int32](50) }, []string{canary + ".steps[1].setWeight"}},
		"a route that isn't managed": {func(s *spec) {
			s.Strategy.Canary.Steps[5] = v1alpha1.CanaryStep{SetHeaderRoute: &v1alpha1.SetHeaderRoute{Name: "a"}}
		}, []string{canary + ".steps[5].setHeaderRoute.name"}},
		"a later step is named by it": {func(s *spec) { s.Strategy.Canary.Steps[5] = v1alpha1.CanaryStep{Plugin: &v1alpha1.PluginStep{}} }, []string{canary + ".steps[5].plugin"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := good()
			tc.edit(&spec)
			problems := Rollout(spec)
			if diff := cmp.Diff(tc.want, fields(problems)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, problems)
			}
		})
	}
}

func TestPluginSettingsThatAreNotBuilt(t *testing.T) {
	spec := good()
	spec.Strategy.Canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{Plugins: map[string]runtime.RawExtension{
		"argoproj-labs/gatewayAPI": {Raw: []byte(`{"httpRoute":"web","grpcRoutes":[{"name":"api"}]}`)}}}
	problems := Rollout(spec)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "grpcRoutes") {
		t.Errorf("want a problem that names grpcRoutes, got %v", problems)
	}
}
