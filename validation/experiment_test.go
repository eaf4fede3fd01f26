package validation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const goodExperiment = `
duration: 10m
scaleDownDelaySeconds: 0
templates:
- name: baseline
  replicas: 2
  selector: {matchLabels: {app: web}}
  service: {}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1, ports: [{containerPort: 8080}]}]}
- name: canary
  service: {name: web-x}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:2, ports: [{containerPort: 8080}]}]}
analyses:
- name: errors
  templateName: errors
  requiredForCompletion: true
  args:
  - {name: base, value: "{{templates.baseline.podTemplateHash}}"}
  - {name: set, value: "x {{ templates.canary.replicaset.name }} {{experiment.availableAt}}/{{experiment.finishedAt}}"}
  - {name: token, valueFrom: {secretKeyRef: {name: api, key: t}}}
dryRun: [{metricName: "err.*"}]
`

// experimentWith is the good one with some fields of the spec replaced.
func experimentWith(t *testing.T, edit func(spec map[string]any)) v1alpha1.ExperimentSpec {
	t.Helper()
	var loose map[string]any
	if err := yaml.Unmarshal([]byte(goodExperiment), &loose); err != nil {
		t.Fatal(err)
	}
	edit(loose)
	text, err := json.Marshal(loose)
	if err != nil {
		t.Fatal(err)
	}
	var spec v1alpha1.ExperimentSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestExperiment(t *testing.T) {
	template := func(s map[string]any, i int) map[string]any { return s["templates"].([]any)[i].(map[string]any) }
	analysisOf := func(s map[string]any) map[string]any { return s["analyses"].([]any)[0].(map[string]any) }
	arg := func(value map[string]any) func(map[string]any) {
		return func(s map[string]any) { analysisOf(s)["args"] = []any{value} }
	}
	cases := map[string]struct {
		edit func(map[string]any)
		want []string
	}{
		"good":                          {func(map[string]any) {}, nil},
		"neither duration nor analysis": {func(s map[string]any) { delete(s, "duration"); delete(s, "analyses"); delete(s, "dryRun") }, nil},
		"no template":                   {func(s map[string]any) { s["templates"] = []any{}; delete(analysisOf(s), "args") }, []string{"spec.templates"}},
		"duration":                      {func(s map[string]any) { s["duration"] = "soon" }, []string{"spec.analyses[0].args[1].value", "spec.duration"}},
		"delay":                         {func(s map[string]any) { s["scaleDownDelaySeconds"] = -1 }, []string{"spec.scaleDownDelaySeconds"}},
		"deadline":                      {func(s map[string]any) { s["progressDeadlineSeconds"] = 0 }, []string{"spec.progressDeadlineSeconds", "spec.templates[0].minReadySeconds", "spec.templates[1].minReadySeconds"}},
		"ready after the deadline":      {func(s map[string]any) { template(s, 1)["minReadySeconds"] = 600 }, []string{"spec.templates[1].minReadySeconds"}},
		"replicas":                      {func(s map[string]any) { template(s, 1)["replicas"] = -1 }, []string{"spec.templates[1].replicas"}},
		"twice the name":                {func(s map[string]any) { template(s, 1)["name"] = "baseline"; delete(analysisOf(s), "args") }, []string{"spec.templates[1].name"}},
		"no part of a name":             {func(s map[string]any) { template(s, 1)["name"] = "Canary"; delete(analysisOf(s), "args") }, []string{"spec.templates[1].name"}},
		"template":                      {func(s map[string]any) { delete(template(s, 0), "template") }, []string{"spec.templates[0].template"}},
		"labels that are none": {func(s map[string]any) {
			template(s, 1)["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"app": true}}
		}, []string{"spec.templates[1].template.metadata.labels[app]"}},
		"our label": {func(s map[string]any) {
			template(s, 1)["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{v1alpha1.TemplateHashLabel: "x"}}
		}, []string{"spec.templates[1].template.metadata.labels[pushback.dev/template-hash]"}},
		"selector": {func(s map[string]any) {
			template(s, 0)["selector"] = map[string]any{"matchLabels": map[string]any{"app": "other"}}
		}, []string{"spec.templates[0].selector"}},
		"service name":    {func(s map[string]any) { template(s, 0)["service"] = map[string]any{"name": "9"} }, []string{"spec.templates[0].service.name"}},
		"service of both": {func(s map[string]any) { template(s, 0)["service"] = map[string]any{"name": "web-x"} }, []string{"spec.templates[1].service.name"}},
		"no port": {func(s map[string]any) {
			template(s, 0)["template"].(map[string]any)["spec"] = map[string]any{"containers": []any{map[string]any{"name": "web"}}}
		}, []string{"spec.templates[0].service"}},
		"analysis name":          {func(s map[string]any) { analysisOf(s)["name"] = "" }, []string{"spec.analyses[0].name"}},
		"analysis template":      {func(s map[string]any) { analysisOf(s)["templateName"] = "" }, []string{"spec.analyses[0].templateName"}},
		"unknown value":          {arg(map[string]any{"name": "a", "value": "{{templates.other.podTemplateHash}}"}), []string{"spec.analyses[0].args[0].value"}},
		"no value":               {arg(map[string]any{"name": "a"}), []string{"spec.analyses[0].args[0]"}},
		"no end":                 {func(s map[string]any) { delete(s, "duration") }, []string{"spec.analyses[0].args[1].value"}},
		"pattern":                {func(s map[string]any) { s["dryRun"] = []any{map[string]any{"metricName": "("}} }, []string{"spec.dryRun[0].metricName"}},
		"metrics of no analysis": {func(s map[string]any) { delete(s, "analyses") }, []string{"spec.analyses"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fields(Experiment(experimentWith(t, tc.edit)))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
