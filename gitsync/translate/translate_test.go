package translate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/gitsync"
)

func object(t *testing.T, text string) gitsync.Object {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	return gitsync.Object{Unstructured: u.DeepCopy(), File: "f.yaml", Document: 1}
}

const analysisTemplate = `
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: rate}
spec:
  metrics:
  - {name: a, successCondition: "result[0] > 1", provider: {prometheus: {query: x}}}
  - {name: b, provider: {prometheus: {query: y}}}
`

func TestTree(t *testing.T) {
	tests := map[string]struct {
		in   []string
		want []string
	}{
		"a Rollout changes its group and keeps its fields": {
			in:   []string{"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, annotations: {a: b}}, spec: {replicas: 2, template: {x: y}, strategy: {canary: {trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: web}}}}}}, status: {phase: Healthy}}"},
			want: []string{"{apiVersion: pushback.dev/v1alpha1, kind: Rollout, metadata: {name: web, annotations: {a: b, pushback.dev/translated-from: argoproj.io/v1alpha1}}, spec: {replicas: 2, template: {x: y}, strategy: {canary: {trafficRouting: {plugins: {argoproj-labs/gatewayAPI: {httpRoute: web}}}}}}}"},
		},
		"conditions of an AnalysisTemplate are Argo's language": {
			in: []string{analysisTemplate},
			want: []string{`
apiVersion: pushback.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: rate, annotations: {pushback.dev/translated-from: argoproj.io/v1alpha1}}
spec:
  metrics:
  - {name: a, successCondition: "result[0] > 1", conditionLanguage: Expr, provider: {prometheus: {query: x}}}
  - {name: b, conditionLanguage: Expr, provider: {prometheus: {query: y}}}
`},
		},
		"an Experiment keeps its fields": {
			in:   []string{"{apiVersion: argoproj.io/v1alpha1, kind: Experiment, metadata: {name: e}, spec: {duration: 1h, templates: [{name: a, template: {x: y}}]}, status: {phase: Running}}"},
			want: []string{"{apiVersion: pushback.dev/v1alpha1, kind: Experiment, metadata: {name: e, annotations: {pushback.dev/translated-from: argoproj.io/v1alpha1}}, spec: {duration: 1h, templates: [{name: a, template: {x: y}}]}}"},
		},
		"a scaler follows a translated Rollout of its namespace, and no other": {
			in: []string{
				"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {}}",
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}}",
				"{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}}",
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: other}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}}",
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: api}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: api}}}",
			},
			want: []string{
				"{apiVersion: pushback.dev/v1alpha1, kind: Rollout, metadata: {name: web, annotations: {pushback.dev/translated-from: argoproj.io/v1alpha1}}, spec: {}}",
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: shop}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: pushback.dev/v1alpha1, kind: Rollout, name: web}}}",
				"{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: pushback.dev/v1alpha1, kind: Rollout, name: web}}}",
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: other}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}}",
				"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: api}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: api}}}",
			},
		},
		"other objects, other projects of Argo's group and our own pass through": {
			in:   []string{"{apiVersion: v1, kind: Service, metadata: {name: a}}", "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}}", "{apiVersion: pushback.dev/v1alpha1, kind: Rollout, metadata: {name: a}, spec: {supersede: Wait}}"},
			want: []string{"{apiVersion: v1, kind: Service, metadata: {name: a}}", "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}}", "{apiVersion: pushback.dev/v1alpha1, kind: Rollout, metadata: {name: a}, spec: {supersede: Wait}}"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var in, before []gitsync.Object
			for _, text := range tc.in {
				in, before = append(in, object(t, text)), append(before, object(t, text))
			}
			got, err := Tree(in, "shop")
			if err != nil {
				t.Fatal(err)
			}
			var want []gitsync.Object
			for _, text := range tc.want {
				want = append(want, object(t, text))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("the argument was changed:\n%s", diff)
			}
		})
	}
}

func TestTree_Refused(t *testing.T) {
	tests := map[string]struct{ in, field string }{
		"Flagger's Canary":            {"{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: a}}", "apiVersion"},
		"Flagger's MetricTemplate":    {"{apiVersion: flagger.app/v1beta1, kind: MetricTemplate, metadata: {name: a}}", "apiVersion"},
		"Argo's AnalysisRun":          {"{apiVersion: argoproj.io/v1alpha1, kind: AnalysisRun, metadata: {name: a}}", "kind"},
		"another version":             {"{apiVersion: argoproj.io/v2, kind: Rollout, metadata: {name: a}}", "apiVersion"},
		"our field in Argo's Rollout": {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a}, spec: {revert: {}}}", "spec.revert"},
		"our router in Argo's":        {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a}, spec: {strategy: {canary: {trafficRouting: {gatewayAPI: {}}}}}}", "spec.strategy.canary.trafficRouting.gatewayAPI"},
		"our field in Argo's metric":  {"{apiVersion: argoproj.io/v1alpha1, kind: AnalysisTemplate, metadata: {name: a}, spec: {metrics: [{conditionLanguage: CEL}]}}", "spec.metrics[0].conditionLanguage"},
		"metrics that are none":       {"{apiVersion: argoproj.io/v1alpha1, kind: ClusterAnalysisTemplate, metadata: {name: a}, spec: {metrics: {}}}", "spec.metrics"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Tree([]gitsync.Object{object(t, tc.in)}, "shop")
			var wrong *gitsync.ManifestError
			if !errors.As(err, &wrong) {
				t.Fatalf("want a ManifestError, got %v", err)
			}
			if wrong.Field != tc.field || wrong.File != "f.yaml" || wrong.Document != 1 {
				t.Errorf("want f.yaml, document 1, %s; got %v", tc.field, wrong)
			}
		})
	}
}

// items reads a fixture: documents of YAML, or JSON with Lists.
func items(t *testing.T, file string) []gitsync.Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []gitsync.Object
	for _, text := range splitDocuments(string(data)) {
		o := object(t, text)
		if o.IsList() {
			list, err := o.ToList()
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				out = append(out, gitsync.Object{Unstructured: &list.Items[i]})
			}
			continue
		}
		out = append(out, gitsync.Object{Unstructured: o.Unstructured})
	}
	return out
}

func TestFixturesGiveTheSameInYAMLAndJSON(t *testing.T) {
	for _, name := range []string{"argo/rollout", "argo/analysis"} {
		fromYAML, err := Tree(items(t, name+".yaml"), "shop")
		if err != nil {
			t.Fatal(err)
		}
		fromJSON, err := Tree(items(t, name+".json"), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fromYAML, fromJSON); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, o := range fromYAML {
			if o.GetAPIVersion() != "pushback.dev/v1alpha1" {
				t.Errorf("%s is still %s", gitsync.Describe(o.Unstructured), o.GetAPIVersion())
			}
		}
	}
	var refused *gitsync.ManifestError
	if _, err := Tree(items(t, "flagger/canary.yaml"), "shop"); !errors.As(err, &refused) {
		t.Errorf("want Flagger's Canary refused, got %v", err)
	}
}

func splitDocuments(text string) []string {
	var out []string
	for _, part := range strings.Split("\n"+text, "\n---\n") {
		if strings.TrimSpace(part) != "" {
			out = append(out, part+"\n")
		}
	}
	return out
}
