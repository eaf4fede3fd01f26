package lint

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/gitsync"
)

const rollout = `apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "web:v1"}]}
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      trafficRouting: {gatewayAPI: {httpRoute: web}}
      steps:
      - setWeight: 25
      - pause: {duration: 5m}
      - analysis:
          templates: [{templateName: errors}]
          args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}]
`

const template = `apiVersion: pushback.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec:
  args: [{name: hash}]
  metrics:
  - name: errors
    interval: 30s
    count: 4
    successCondition: result[0] < 0.01
    provider:
      prometheus:
        query: sum(rate(e{hash="{{args.hash}}",code="500"}[2m]) or vector(0)) / sum(rate(e{hash="{{args.hash}}"}[2m]))
`

const service = `apiVersion: v1
kind: Service
metadata: {name: web-canary}
spec: {selector: {app: web}}
`

const scaler = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: pushback.dev/v1alpha1, kind: Rollout, name: web}
`

func objects(t *testing.T, texts ...string) []gitsync.Object {
	t.Helper()
	var out []gitsync.Object
	for i, text := range texts {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, gitsync.Object{Unstructured: &unstructured.Unstructured{Object: object}, File: "web.yaml", Line: 1 + 100*i, Document: i + 1})
	}
	return out
}

// Each rule finds what it is for, and nothing else does: the first case is free of
// findings, and each other one is that with one change.
func TestRules(t *testing.T) {
	change := func(text, old, next string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in\n%s", old, text)
		}
		return strings.Replace(text, old, next, 1)
	}
	withoutAnalysis := rollout[:strings.Index(rollout, "      - analysis")]
	basic := change(change(change(rollout, "      trafficRouting: {gatewayAPI: {httpRoute: web}}\n", ""), "      stableService: web-stable\n", ""), "      canaryService: web-canary\n", "")
	for name, tc := range map[string]struct {
		texts []string
		want  []string
	}{
		"nothing":                    {[]string{rollout, template, service}, nil},
		"a scaler, no replicas":      {[]string{change(rollout, "  replicas: 4\n", ""), template, service, scaler}, nil},
		"a template elsewhere":       {[]string{rollout, service}, nil},
		"a guarded numerator":        {[]string{rollout, change(change(template, " or vector(0)", ""), "result[0] < 0.01", "len(result) == 0 || result[0] < 0.01")}, nil},
		"noData speaks of it":        {[]string{rollout, change(change(template, " or vector(0)", ""), "    count: 4\n", "    count: 4\n    noData: Pass\n")}, nil},
		"no replicas":                {[]string{change(withoutAnalysis, "replicas: 4", "replicas: 0")}, nil},
		"enough pods":                {[]string{basic, template}, nil},
		"share-is-rounded":           {[]string{change(basic, "setWeight: 25", "setWeight: 10"), template}, []string{"share-is-rounded"}},
		"nothing-is-measured":        {[]string{withoutAnalysis}, []string{"nothing-is-measured"}},
		"metric-stops-nothing":       {[]string{rollout, change(template, "    count: 4\n", "    count: 4\n    failureLimit: 4\n")}, []string{"metric-stops-nothing"}},
		"analysis-never-ends":        {[]string{rollout, change(template, "    count: 4\n", "")}, []string{"analysis-never-ends"}},
		"query-of-every-version":     {[]string{rollout, change(change(template, `{hash="{{args.hash}}"}`, ""), `hash="{{args.hash}}",`, "")}, []string{"query-of-every-version"}},
		"numerator-may-be-empty":     {[]string{rollout, change(template, " or vector(0)", "")}, []string{"numerator-may-be-empty"}},
		"window-is-not-filled":       {[]string{change(rollout, "duration: 5m", "duration: 30s"), template}, []string{"window-is-not-filled"}},
		"service-selects-nothing":    {[]string{rollout, template, change(service, "app: web", "app: wab")}, []string{"service-selects-nothing"}},
		"replicas-beside-a-scaler":   {[]string{rollout, template, scaler}, []string{"replicas-beside-a-scaler"}},
		"can-not-be-forecast":        {[]string{change(rollout, "args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}]", "args: []"), template}, []string{"can-not-be-forecast"}},
		"expr-has-a-form-in-cel":     {[]string{rollout, change(template, "    count: 4\n", "    count: 4\n    conditionLanguage: Expr\n")}, []string{"expr-has-a-form-in-cel"}},
		"expr without a form in CEL": {[]string{rollout, change(change(template, "    count: 4\n", "    count: 4\n    conditionLanguage: Expr\n"), "result[0] < 0.01", "sum(result) < now().Unix()")}, nil},
		"a query in another dialect": {[]string{rollout, change(template, "sum(rate(e", "sum_over(rate(e")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := Check(objects(t, tc.texts...), 5*time.Second)
			var got []string
			for _, f := range found {
				if f.File != "web.yaml" || f.Line == 0 || f.Object == "" || f.Reason == "" || f.Mend == "" || f.Severity != rules[f.ID] {
					t.Errorf("finding %+v", f)
				}
				got = append(got, f.ID)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("found %q, want %q\n%+v", got, tc.want, found)
			}
		})
	}
}

// Each rule has its section in the document, and the document no other.
func TestEachRuleIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/lint.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, line := range strings.Split(string(text), "\n") {
		if id, ok := strings.CutPrefix(line, "## "); ok {
			sections = append(sections, id)
		}
	}
	if !slices.Equal(sections, IDs()) {
		t.Errorf("sections %q, rules %q", sections, IDs())
	}
}
