package analysis

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const jobSpec = `{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}`

func jobMetric(metadata, spec string) v1alpha1.Metric {
	raw := func(s string) *runtime.RawExtension {
		if s == "" {
			return nil
		}
		return &runtime.RawExtension{Raw: []byte(s)}
	}
	return v1alpha1.Metric{Name: "m", Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{Metadata: raw(metadata), Spec: raw(spec)}}}
}

func TestJobTemplates(t *testing.T) {
	pods := func(more string) string {
		return `{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]` + more + `}}}`
	}
	const spec, metadata = "spec.metrics[0].provider.job.spec", "spec.metrics[0].provider.job.metadata"
	for name, tc := range map[string]struct {
		metadata, spec string
		fields         []string
	}{
		"good":                       {`{"labels":{"a":"b"},"annotations":{"c":"d"}}`, jobSpec, nil},
		"no metadata":                {"", jobSpec, nil},
		"null metadata":              {`null`, jobSpec, nil},
		"an empty time":              {`{"creationTimestamp":null}`, jobSpec, nil},
		"a field that is newer":      {"", pods(`,"notYetThere":{"a":1}`), nil},
		"OnFailure":                  {"", strings.Replace(jobSpec, "Never", "OnFailure", 1), nil},
		"an argument":                {"", strings.Replace(jobSpec, "Never", "{{args.policy}}", 1), nil},
		"no spec":                    {"", "", []string{spec}},
		"null":                       {"", "null", []string{spec}},
		"a list":                     {"", "[]", []string{spec}},
		"no container":               {"", `{"template":{"spec":{"restartPolicy":"Never"}}}`, []string{spec + ".template.spec.containers"}},
		"no policy":                  {"", `{"template":{"spec":{"containers":[{}]}}}`, []string{spec + ".template.spec.restartPolicy"}},
		"Always":                     {"", strings.Replace(jobSpec, "Never", "Always", 1), []string{spec + ".template.spec.restartPolicy"}},
		"a wrong type":               {"", `{"backoffLimit":"one"}`, []string{spec}},
		"a selector":                 {"", strings.Replace(jobSpec, "{", `{"selector":{},"manualSelector":true,`, 1), []string{spec + ".selector"}},
		"a version's label on pods":  {"", strings.Replace(jobSpec, `"template":{`, `"template":{"metadata":{"labels":{"pushback.dev/template-hash":"x"}},`, 1), []string{spec + ".template.metadata.labels[pushback.dev/template-hash]"}},
		"a name":                     {`{"name":"x"}`, jobSpec, []string{metadata + ".name"}},
		"a generated name":           {`{"generateName":"x"}`, jobSpec, []string{metadata + ".generateName"}},
		"owners and finalizers":      {`{"ownerReferences":[],"finalizers":["x"]}`, jobSpec, []string{metadata + ".finalizers", metadata + ".ownerReferences"}},
		"labels that are ours":       {`{"labels":{"pushback.dev/analysis-run-uid":"x"}}`, jobSpec, []string{metadata + ".labels[pushback.dev/analysis-run-uid]"}},
		"annotations that are ours":  {`{"annotations":{"pushback.dev/measurement":"x"}}`, jobSpec, []string{metadata + ".annotations[pushback.dev/measurement]"}},
		"a label that is a number":   {`{"labels":{"a":1}}`, jobSpec, []string{metadata + ".labels[a]"}},
		"labels that are a list":     {`{"labels":[]}`, jobSpec, []string{metadata + ".labels"}},
		"metadata that is no object": {`"x"`, jobSpec, []string{metadata}},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, p := range ValidateMetric(jobMetric(tc.metadata, tc.spec), "spec.metrics[0]") {
				fields = append(fields, p.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("fields that are refused (-want +got):\n%s", diff)
			}
		})
	}
}

// In C116 a Job names another namespace: no Job is made anywhere but in the run's own.
func TestC116_AJobNamesNoNamespace(t *testing.T) {
	m := jobMetric(`{"namespace":"{{args.n}}"}`, jobSpec)
	if ps := ValidateMetric(m, "m"); len(ps) != 1 || ps[0].Field != "m.provider.job.metadata.namespace" {
		t.Errorf("got %v", ps)
	}
	var invalid *InvalidError
	if _, err := ReadJob(*m.Provider.Job); !errors.As(err, &invalid) {
		t.Errorf("got %v, want an InvalidError", err)
	}
}

// A condition beside a provider's own verdict would be ignored.
func TestJudgingProvidersTakeNoConditions(t *testing.T) {
	m := jobMetric("", jobSpec)
	m.SuccessCondition, m.FailureCondition = "result > 1", "result < 1"
	var fields []string
	for _, p := range ValidateMetric(m, "m") {
		fields = append(fields, p.Field)
	}
	if !slices.Equal(fields, []string{"m.successCondition", "m.failureCondition"}) {
		t.Errorf("got %q", fields)
	}
}

// Whatever an argument's value is, it is text in its place, and all else stays as it was.
func TestAnArgumentIsDataInAJob(t *testing.T) {
	m := jobMetric(`{"labels":{"app":"{{args.v}}"}}`, `{"backoffLimit":3,"template":{"spec":{"restartPolicy":"Never","containers":[`+
		`{"name":"c","image":"i","args":["--at={{ args.v }}","{{args.v}}"],"env":[{"name":"V","value":"a {{args.v}}"}]}]}}}`)
	check := func(t interface {
		Helper()
		Fatalf(string, ...any)
	}, v string) {
		t.Helper()
		resolved, err := Substitute(m, map[string]string{"v": v})
		if err != nil {
			t.Fatalf("%q: %v", v, err)
		}
		got, err := ReadJob(*resolved.Provider.Job)
		if err != nil {
			t.Fatalf("%q: %v", v, err)
		}
		want := JobTemplate{Labels: map[string]string{"app": v}, Spec: map[string]any{"backoffLimit": int64(3), "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "i", "args": []any{"--at=" + v, v},
				"env": []any{map[string]any{"name": "V", "value": "a " + v}}}}}}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", v, diff)
		}
	}
	for _, v := range []string{`"`, `'`, "\n", `"], "image": "evil"`, "x\n  hostNetwork: true", `\`, `"}}`, "{{args.v}}", `","privileged":true,"x":"`, "${V}", "# c", "- x", "<>&", "\u2028", ""} {
		check(t, v)
	}
	rapid.Check(t, func(rt *rapid.T) { check(rt, rapid.String().Draw(rt, "value")) })
}
