package apply

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/templatehash"
)

const (
	oldDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: old}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - {name: app, image: "app:1", envFrom: [{configMapRef: {name: settings}}], resources: {limits: {cpu: 1000m}}}
`
	referringRollout = `
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: old, scaleDown: progressively}
  strategy: {canary: {}}
`
)

// The version is the Deployment's template as Git declares it, whatever the API
// server makes of it, and the commit is that which changes the Deployment.
func TestTheSourceOfAWorkload(t *testing.T) {
	b := newBench(t)
	docs := []string{settings, oldDeployment, referringRollout}
	b.mustApply(docs...)
	first := b.source()
	template, _, err := unstructured.NestedMap(declare(t, strings.Replace(oldDeployment, ", creationTimestamp: null", "", 1))[0].Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := templatehash.Hash(templatehash.Version, raw)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.Source{Hash: hash, Revision: "main@sha1:" + strings.Repeat("a", 40), Subject: "First", GitSync: b.namespace + "/sync", File: "1.yaml", Template: raw}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	kept := &appsv1.ControllerRevision{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: SourceName("web", hash)}, kept); err != nil {
		t.Fatal(err)
	}
	files, err := UnpackSource(kept.Data.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]File{{"2.yaml", "100644", []byte("# 2.yaml")}, {"1.yaml", "100644", []byte("# 1.yaml")}}, files); diff != "" {
		t.Error(diff)
	}
	b.in.Memory = NewMemory()
	b.in.Commit = Commit{Revision: revision("b"), Subject: "Unrelated"}
	b.quiet(docs...)
	b.in.Commit = Commit{Revision: revision("c"), Subject: "Second", Irreversible: []string{"web"}}
	docs[1] = strings.Replace(oldDeployment, "app:1", "app:2", 1)
	b.eventually(docs...)
	second := b.source()
	if second.Hash == hash || second.Subject != "Second" || !second.Irreversible || !strings.Contains(string(second.Template), "app:2") {
		t.Errorf("the new template's source is %+v", second)
	}
}

// A Rollout that moves its template to a Deployment keeps its version.
func TestATemplateMovesToAWorkload(t *testing.T) {
	b := newBench(t)
	own := strings.Replace(referringRollout, "workloadRef: {apiVersion: apps/v1, kind: Deployment, name: old, scaleDown: progressively}",
		"selector: {matchLabels: {app: web}}\n  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: \"app:1\", envFrom: [{configMapRef: {name: settings}}], resources: {limits: {cpu: 1000m}}}]}}", 1)
	b.mustApply(settings, own)
	before := b.source()
	if len(before.Template) > 0 {
		t.Errorf("the template is in the Rollout, and in its source: %s", before.Template)
	}
	refers := strings.Replace(referringRollout, "spec:", "spec:\n  selector: {matchLabels: {app: web}}", 1)
	b.in.Commit = Commit{Revision: revision("b"), Subject: "Move"}
	b.mustApply(settings, oldDeployment, refers)
	after := b.source()
	if after.Hash != before.Hash || after.Revision != before.Revision || len(after.Template) == 0 {
		t.Errorf("the source went from %+v to %+v", before, after)
	}
	b.eventually(settings, own)
	if got := b.source(); got.Hash != before.Hash || len(got.Template) > 0 {
		t.Errorf("back in the Rollout the source is %+v", got)
	}
}

func (b *bench) deploymentSize() int64 {
	b.Helper()
	n, _, err := unstructured.NestedInt64(b.get("apps/v1", "Deployment", "old").Object, "spec", "replicas")
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// eventually applies without failures, where controllers write to the objects too.
func (b *bench) eventually(docs ...string) {
	b.Helper()
	clustertest.Eventually(b.TB, time.Minute, func() error {
		if out := b.apply(docs...); len(out.Failures) > 0 {
			return out.Failures[0]
		}
		return nil
	})
}

// quiet fails when a sync writes. What controllers write is not counted.
func (b *bench) quiet(docs ...string) {
	b.Helper()
	for _, wrote := range b.writesDuring(func() { b.eventually(docs...); b.eventually(docs...) }) {
		if wrote == "patch deployments/old/" || strings.Contains(wrote, "rollouts") {
			b.Errorf("a sync wrote: %s", wrote)
		}
	}
}

// size writes the Deployment as the Rollout's controller does: held, or given back.
func (b *bench) size(n int64, held bool) {
	b.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": n}}}
	u.SetNamespace(b.namespace)
	u.SetName("old")
	if held {
		u.SetAnnotations(map[string]string{v1alpha1.WorkloadAnnotation: `{"rollout":"web","replicas":5,"set":0}`})
		u.SetLabels(map[string]string{v1alpha1.RolloutNameLabel: "web"})
	}
	if err := b.client.Apply(b.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(v1alpha1.FieldManagerRollout), client.ForceOwnership); err != nil {
		b.Fatal(err)
	}
}

// C88: a sync doesn't bring back the pods of a workload that was scaled down.
func TestC88_ASyncLeavesTheSizeOfAHeldWorkload(t *testing.T) {
	b := newBench(t)
	docs := []string{settings, oldDeployment, referringRollout}
	b.eventually(docs...)
	b.size(0, true)
	b.quiet(docs...)
	docs[1] = strings.Replace(strings.Replace(oldDeployment, "app:1", "app:2", 1), "replicas: 5", "replicas: 6", 1)
	b.eventually(docs...)
	image, _, _ := unstructured.NestedSlice(b.get("apps/v1", "Deployment", "old").Object, "spec", "template", "spec", "containers")
	if got := b.deploymentSize(); got != 0 || list(image)[0]["image"] != "app:2" {
		t.Errorf("size %d, containers %v", got, image)
	}
	b.size(5, false)
	b.eventually(docs...)
	if got := b.deploymentSize(); got != 6 {
		t.Errorf("given back, it has size %d instead of Git's 6", got)
	}
	b.quiet(docs...)
}

func TestAWorkloadOfARolloutIsNotPruned(t *testing.T) {
	b := newBench(t)
	b.mustApply(settings, oldDeployment, referringRollout)
	before := b.source()
	out := b.mustApply(settings, referringRollout)
	if got := actions(out)["Deployment/old"]; got != Kept {
		t.Errorf("the Deployment that the Rollout names was %s", got)
	}
	if diff := cmp.Diff(before, b.source()); diff != "" {
		t.Errorf("no version has changed, and the source has:\n%s", diff)
	}
}

func TestBothGo(t *testing.T) {
	b := newBench(t)
	b.mustApply(settings, oldDeployment, referringRollout)
	b.mustApply(settings)
	if b.exists("apps/v1", "Deployment", "old") || b.exists("pushback.dev/v1alpha1", "Rollout", "web") {
		t.Error("one of the two is left")
	}
}

func TestNoRolloutBeforeItsWorkload(t *testing.T) {
	b := newBench(t)
	out := b.apply(settings, strings.Replace(oldDeployment, "replicas: 5", "replicas: -1", 1), referringRollout)
	if got := failures(out)["Rollout/web"]; !strings.Contains(got, "it names Deployment/"+b.namespace+"/old, which failed") {
		t.Errorf("the Rollout says %q", got)
	}
	if b.exists("pushback.dev/v1alpha1", "Rollout", "web") {
		t.Error("the Rollout is there")
	}
}

// A workload that is left alone brings no version, whatever Git says of it.
func TestAWorkloadThatIsLeftAlone(t *testing.T) {
	b := newBench(t)
	b.mustApply(settings, oldDeployment, referringRollout)
	before := b.source()
	b.in.Commit = Commit{Revision: revision("b"), Subject: "Second"}
	alone := strings.Replace(strings.Replace(oldDeployment, "app:1", "app:2", 1), "{name: old}", "{name: old, annotations: {pushback.dev/reconcile: disabled}}", 1)
	if got := actions(b.mustApply(settings, alone, referringRollout))["Deployment/old"]; got != Skipped {
		t.Errorf("the Deployment was %s", got)
	}
	if diff := cmp.Diff(before, b.source()); diff != "" {
		t.Error(diff)
	}
}
