package check

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/gitsync"
)

func object(t *testing.T, file, text string) gitsync.Object {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return gitsync.Object{Unstructured: &unstructured.Unstructured{Object: content}, File: file, Document: 1}
}

const rollout = `
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {newer: than this build, containers: [{name: a, image: a}]}}
  strategy: {canary: {steps: [{setWeight: 20}]}}
`

func TestTree(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web}}"
	tests := map[string]struct {
		objects    []gitsync.Object
		namespaces Namespaces
		want       []string // file and field of each error
	}{
		"good": {
			objects: []gitsync.Object{object(t, "a.yaml", rollout), object(t, "b.yaml", service)}, want: nil,
		},
		"one object in two files": {
			objects: []gitsync.Object{object(t, "a.yaml", service), object(t, "b.yaml", service)}, want: []string{"b.yaml "},
		},
		"the same in two versions of the API, and by the default namespace": {
			objects:    []gitsync.Object{object(t, "a.yaml", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"), object(t, "b.yaml", "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: web, namespace: shop}}")},
			namespaces: Namespaces{Default: "shop"}, want: []string{"b.yaml "},
		},
		"the same once the target namespace is set": {
			objects:    []gitsync.Object{object(t, "a.yaml", "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}}"), object(t, "b.yaml", "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: b}}")},
			namespaces: Namespaces{Target: "shop"}, want: []string{"b.yaml "},
		},
		"two namespaces": {
			objects: []gitsync.Object{object(t, "a.yaml", "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}}"), object(t, "b.yaml", "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: b}}")},
		},
		"fields that don't exist outside the template": {
			objects: []gitsync.Object{object(t, "a.yaml", "{apiVersion: pushback.dev/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: []}}, strategy: {canary: {step: []}}}}")},
			want:    []string{"a.yaml spec.strategy.canary.step"},
		},
		"records of the controllers": {
			objects: []gitsync.Object{object(t, "a.yaml", "{apiVersion: pushback.dev/v1alpha1, kind: AnalysisRun, metadata: {name: a}}"), object(t, "b.yaml", "{apiVersion: pushback.dev/v1alpha1, kind: Revert, metadata: {name: a}}")},
			want:    []string{"a.yaml kind", "b.yaml kind"},
		},
		"a source annotation from Git": {
			objects: []gitsync.Object{object(t, "a.yaml", "{apiVersion: pushback.dev/v1alpha1, kind: AnalysisTemplate, metadata: {name: a, annotations: {pushback.dev/source: '{}'}}, spec: {metrics: [{name: a, successCondition: 'true', provider: {prometheus: {address: 'http://p:9090', query: x}}}]}}")},
			want:    []string{"a.yaml metadata.annotations[pushback.dev/source]"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := Tree(tc.objects, tc.namespaces)
			var errs gitsync.ManifestErrors
			errors.As(err, &errs)
			var got []string
			for _, e := range errs {
				got = append(got, e.File+" "+e.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, err)
			}
		})
	}
}
