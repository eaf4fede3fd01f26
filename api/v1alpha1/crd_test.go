package v1alpha1_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

var shared = clustertest.New(cluster.Options{}, clustertest.CRDs("manifests/crd"))

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func connect(t *testing.T) (client.Client, string) {
	t.Helper()
	c := shared.Cluster(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), autoscalingv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	live, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return live, clustertest.Namespace(t, c)
}

// parse reads an object, for a namespace.
func parse(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	u.SetNamespace(namespace)
	return u
}

const goodRollout = `
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
  strategy: {canary: {steps: [{setWeight: 20}, {pause: {}}]}}
`

const goodGitSync = `
apiVersion: pushback.dev/v1alpha1
kind: GitSync
metadata: {name: shop}
spec: {interval: 1m, url: "https://git.example.com/shop.git"}
`

const goodRevert = `
apiVersion: pushback.dev/v1alpha1
kind: Revert
metadata: {name: web-0123456789-1}
spec:
  rollout: {namespace: shop, name: web}
  gitSync: {namespace: shop, name: shop}
  rejected: "0123456789"
  attempt: 1
  reason: Failed
  abortedAt: "2026-11-30T10:00:00Z"
`

// refusals change a good object into one that the CRD's own rules refuse, by their
// messages. A change is made before the object is created, or after it where the
// rule is about changes.
var refusals = map[string]struct {
	good  string
	set   map[string]string // path -> YAML; empty removes
	later bool
}{
	"the name may have at most 52 characters: ReplicaSets, AnalysisRuns and Reverts add a suffix to it": {
		good: goodRollout, set: map[string]string{"metadata.name": strings.Repeat("a", 53)}},
	"set exactly one of template and workloadRef": {
		good: goodRollout, set: map[string]string{"spec.workloadRef": "{apiVersion: apps/v1, kind: Deployment, name: web}"}},
	"selector is required unless workloadRef is set": {
		good: goodRollout, set: map[string]string{"spec.selector": ""}},
	"a PodTemplate has no selector: set spec.selector": {
		good: goodRollout, set: map[string]string{"spec.selector": "", "spec.template": "", "spec.workloadRef": "{apiVersion: v1, kind: PodTemplate, name: web}"}},
	"apiVersion must be apps/v1 for a Deployment or ReplicaSet, and v1 for a PodTemplate": {
		good: goodRollout, set: map[string]string{"spec.template": "", "spec.workloadRef": "{apiVersion: v1, kind: Deployment, name: web}"}},
	"a PodTemplate has no pods that could be scaled down: leave scaleDown out": {
		good: goodRollout, set: map[string]string{"spec.template": "", "spec.workloadRef": "{apiVersion: v1, kind: PodTemplate, name: web, scaleDown: onsuccess}"}},
	"selector can't be changed: pods of the old selector would be taken for nobody's": {
		good: goodRollout, set: map[string]string{"spec.selector": "{matchLabels: {app: other}}"}, later: true},
	"progressDeadlineSeconds must be greater than minReadySeconds": {
		good: goodRollout, set: map[string]string{"spec.progressDeadlineSeconds": "30", "spec.minReadySeconds": "30"}},
	"set exactly one of canary and blueGreen": {
		good: goodRollout, set: map[string]string{"spec.strategy.blueGreen": "{activeService: web}"}},
	"a step has exactly one of setWeight, pause, setCanaryScale, analysis, experiment, setHeaderRoute, setMirrorRoute, plugin": {
		good: goodRollout, set: map[string]string{"spec.strategy.canary.steps": "[{setWeight: 20, pause: {}}]"}},
	"set exactly one of weight, replicas and matchTrafficWeight": {
		good: goodRollout, set: map[string]string{"spec.strategy.canary.steps": "[{setCanaryScale: {weight: 5, replicas: 1}}]"}},
	"set httpRoute or httpRoutes": {
		good: goodRollout, set: map[string]string{"spec.strategy.canary.trafficRouting": "{gatewayAPI: {namespace: shop}}"}},
	"a ref that is a tag, a semver range or a commit can't be reverted in place: set revert.branch, or revert.mode None": {
		good: goodGitSync, set: map[string]string{"spec.ref": "{tag: v1}"}},
	"a Revert can't be changed": {
		good: goodRevert, set: map[string]string{"spec.attempt": "2"}, later: true},
	"undo belongs to the reason Undo, and to no other": {
		good: goodRevert, set: map[string]string{"spec.undo": "{token: t}"}},
	"an undo names another template to bring back, in stable": {
		good: goodRevert, set: map[string]string{"spec.reason": "Undo", "spec.undo": "{token: t}", "spec.stable": ""}},
	"exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified": {
		good: goodGitSync, set: map[string]string{"spec.kubeConfig": "{}"}},
}

func edit(t *testing.T, u *unstructured.Unstructured, set map[string]string) {
	t.Helper()
	for path, text := range set {
		keys := strings.Split(path, ".")
		if text == "" {
			unstructured.RemoveNestedField(u.Object, keys...)
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(u.Object, value, keys...); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRulesOfTheCRDsRefuse(t *testing.T) {
	for message, tc := range refusals {
		t.Run(message, func(t *testing.T) {
			c, namespace := connect(t)
			good := parse(t, namespace, tc.good)
			if err := c.Create(t.Context(), good); err != nil {
				t.Fatalf("a good object: %v", err)
			}
			bad := good.DeepCopy()
			if !tc.later {
				bad = parse(t, namespace, tc.good)
				bad.SetName("another")
			}
			edit(t, bad, tc.set)
			write := func() error { return c.Create(t.Context(), bad) }
			if tc.later {
				write = func() error { return c.Update(t.Context(), bad) }
			}
			if err := write(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Every rule in the CRDs has its case above.
func TestEveryRuleIsTried(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "manifests", "crd", "pushback.dev_*.yaml"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d CRDs: %v", len(files), err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		messages(crd, found)
	}
	want := slices.Sorted(maps.Keys(found))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(refusals))); diff != "" {
		t.Errorf("rules of the CRDs (-) and cases (+):\n%s", diff)
	}
}

func messages(value any, found map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		if rules, ok := v["x-kubernetes-validations"].([]any); ok {
			for _, rule := range rules {
				found[rule.(map[string]any)["message"].(string)] = true
			}
		}
		for _, inner := range v {
			messages(inner, found)
		}
	case []any:
		for _, inner := range v {
			messages(inner, found)
		}
	}
}

// What Git declares in a template is stored as it is: no default, and every field of it.
func TestTemplateIsStoredAsDeclared(t *testing.T) {
	c, namespace := connect(t)
	declared := parse(t, namespace, goodRollout)
	template := `
metadata: {labels: {app: web}, annotations: {empty: ""}}
spec:
  fieldOfTomorrow: {deep: [1, 1.5, two, null, {}]}
  containers: [{name: web, image: "web:1", ports: [{containerPort: 80}], resources: {requests: {cpu: 0.5, memory: 1Gi}}}]
`
	edit(t, declared, map[string]string{"spec.template": template})
	want, _, err := unstructured.NestedFieldCopy(declared.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), declared); err != nil {
		t.Fatal(err)
	}
	live := parse(t, namespace, goodRollout)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(declared), live); err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedFieldCopy(live.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
		t.Errorf("(-declared +stored):\n%s", diff)
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	if keys := slices.Sorted(maps.Keys(spec)); !slices.Equal(keys, []string{"selector", "strategy", "template"}) {
		t.Errorf("the spec has %v: something was given a default", keys)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Fields outside the template that don't exist are dropped by the API server, and refused where asked.
func TestUnknownFieldsOutsideTheTemplate(t *testing.T) {
	c, namespace := connect(t)
	bad := parse(t, namespace, goodRollout)
	edit(t, bad, map[string]string{"spec.strategyy": "1"})
	err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), bad)
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.strategyy") {
		t.Errorf("got %v", err)
	}
}

func TestScaleSubresource(t *testing.T) {
	c, namespace := connect(t)
	rollout := parse(t, namespace, goodRollout)
	edit(t, rollout, map[string]string{"spec.replicas": "3"})
	if err := c.Create(t.Context(), rollout); err != nil {
		t.Fatal(err)
	}
	typed := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(rollout), typed); err != nil {
		t.Fatal(err)
	}
	typed.Status.HPAReplicas, typed.Status.Selector = 2, "app=web"
	if err := c.Status().Update(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(t.Context(), typed, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 2 || scale.Status.Selector != "app=web" {
		t.Errorf("scale is %+v", scale)
	}
	scale.Spec.Replicas = 5
	if err := c.SubResource("scale").Update(t.Context(), typed, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(typed), typed); err != nil {
		t.Fatal(err)
	}
	if typed.Spec.Replicas == nil || *typed.Spec.Replicas != 5 {
		t.Errorf("spec.replicas is %v", typed.Spec.Replicas)
	}
}

// The columns say why something is stuck.
func TestColumns(t *testing.T) {
	c, namespace := connect(t)
	rollout := parse(t, namespace, goodRollout)
	if err := c.Create(t.Context(), rollout); err != nil {
		t.Fatal(err)
	}
	typed := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(rollout), typed); err != nil {
		t.Fatal(err)
	}
	typed.Status.Phase, typed.Status.Step, typed.Status.Message = v1alpha1.RolloutPhaseDegraded, "1/2", "RolloutAborted: success-rate"
	typed.Status.Canary.Weights = &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: 20}}
	typed.Status.Git.Current = &v1alpha1.GitVersion{Hash: "0123456789", ShortCommit: "abcdef0"}
	if err := c.Status().Update(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	row := printed(t, namespace, "rollouts")
	for column, want := range map[string]any{
		"Phase": "Degraded", "Step": "1/2", "Weight": float64(20), "Commit": "abcdef0", "Message": "RolloutAborted: success-rate",
	} {
		if row[column] != want {
			t.Errorf("column %s is %v, want %v", column, row[column], want)
		}
	}
	for _, resource := range []string{"gitsyncs", "reverts", "analysisruns"} {
		if columns := printedColumns(t, resource); !slices.Contains(columns, "Message") {
			t.Errorf("kubectl get %s shows no message: %v", resource, columns)
		}
	}
}

// printed is the one row of a table as kubectl gets it.
func printed(t *testing.T, namespace, resource string) map[string]any {
	t.Helper()
	clients, err := kubernetes.NewForConfig(shared.Cluster(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	text, err := clients.RESTClient().Get().AbsPath("apis", v1alpha1.GroupVersion.String(), "namespaces", namespace, resource).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(text, table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	row := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name] = table.Rows[0].Cells[i]
	}
	return row
}

func printedColumns(t *testing.T, resource string) []string {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "manifests", "crd", "pushback.dev_"+resource+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		out = append(out, column.Name)
	}
	return out
}
