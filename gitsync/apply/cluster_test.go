package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/gatewayapi"
)

var shared = clustertest.New(cluster.Options{AuditWrites: true}, (*cluster.Cluster).InstallGatewayAPI, clustertest.CRDs("manifests/crd"))

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// bench is a namespace of a real API server, with what a GitSync there applies.
type bench struct {
	*testing.T
	cluster   *cluster.Cluster
	client    client.Client
	namespace string
	applier   *Applier
	in        In
}

func newBench(t *testing.T) *bench {
	t.Helper()
	c := shared.Cluster(t)
	b := &bench{T: t, cluster: c, namespace: clustertest.Namespace(t, c)}
	b.client = newClient(t, c.RESTConfig())
	b.applier = &Applier{Client: b.client, Own: b.client, Claims: func(target routers.Target) []routers.Claim {
		if target.Routing == nil {
			return routers.ServiceClaims(target)
		}
		return gatewayapi.New(nil, nil).Claims(target)
	}}
	b.in = In{
		GitSync: types.NamespacedName{Namespace: b.namespace, Name: "sync"}, Prune: true,
		Commit: Commit{Revision: revision("a"), Subject: "First"},
		Sources: func(o gitsync.Object) []File {
			return []File{{Path: o.File, Mode: "100644", Data: []byte("# " + o.File)}}
		},
	}
	return b
}

func revision(digit string) gitsync.Revision {
	return gitsync.Revision{Branch: "main", Hash: strings.Repeat(digit, 40)}
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// declare makes objects of YAML documents, each in a file of its own.
func declare(t *testing.T, docs ...string) []gitsync.Object {
	t.Helper()
	var out []gitsync.Object
	for i, doc := range docs {
		text, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		out = append(out, gitsync.Object{Unstructured: u, File: fmt.Sprintf("%d.yaml", i), Document: 1})
	}
	return out
}

// apply applies documents over what was applied before, and keeps the inventory.
func (b *bench) apply(docs ...string) Out {
	b.Helper()
	b.in.Objects = declare(b.T, docs...)
	out, err := b.applier.Apply(b.Context(), b.in)
	if err != nil {
		b.Fatal(err)
	}
	b.in.Inventory = out.Inventory
	return out
}

// mustApply is apply without failures.
func (b *bench) mustApply(docs ...string) Out {
	b.Helper()
	out := b.apply(docs...)
	for _, failure := range out.Failures {
		b.Fatal(failure)
	}
	return out
}

// writes counts the writes to the namespace and to objects of the cluster since the last call.
func (b *bench) writesDuring(work func()) []string {
	b.Helper()
	list := func() []string {
		writes, err := b.cluster.Writes()
		if err != nil {
			b.Fatal(err)
		}
		var out []string
		for _, w := range writes {
			if w.Namespace == b.namespace && !w.DryRun() {
				out = append(out, w.Verb+" "+w.Resource+"/"+w.Name+"/"+w.Subresource)
			}
		}
		return out
	}
	before := len(list())
	work()
	return list()[before:]
}

func (b *bench) get(apiVersion, kind, name string) *unstructured.Unstructured {
	b.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if err := b.client.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, u); err != nil {
		b.Fatal(err)
	}
	return u
}

func (b *bench) exists(apiVersion, kind, name string) bool {
	b.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := b.client.Get(b.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, u)
	if client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	return err == nil && u.GetDeletionTimestamp() == nil
}

func actions(out Out) map[string]Action {
	got := map[string]Action{}
	for _, change := range out.Changes {
		parts := strings.Split(change.Object, "/")
		got[parts[0]+"/"+parts[len(parts)-1]] = change.Action
	}
	return got
}

func failures(out Out) map[string]string {
	got := map[string]string{}
	for _, failure := range out.Failures {
		parts := strings.Split(failure.Object, "/")
		got[parts[0]+"/"+parts[len(parts)-1]] = failure.Err.Error()
	}
	return got
}

const (
	stableService = "{apiVersion: v1, kind: Service, metadata: {name: web-stable}, spec: {selector: {app: web}, ports: [{port: 80}]}}"
	canaryService = "{apiVersion: v1, kind: Service, metadata: {name: web-canary}, spec: {selector: {app: web}, ports: [{port: 80}]}}"
	route         = "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: web-stable, port: 80}, {name: web-canary, port: 80, weight: 0}]}]}}"
	settings      = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, creationTimestamp: null}, data: {a: b}}"
	webRollout    = `
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata: {name: web, creationTimestamp: null}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - {name: app, image: "app:1", envFrom: [{configMapRef: {name: settings}}], resources: {}}
  strategy:
    canary:
      stableService: web-stable
      canaryService: web-canary
      trafficRouting: {gatewayAPI: {httpRoute: web}}
      steps: [{setWeight: 20}]
status: {}
`
)

func TestC35_C109_TheSecondApplyWritesNothing(t *testing.T) {
	b := newBench(t)
	docs := []string{
		stableService, canaryService, route, settings, webRollout,
		"{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {user: a}, data: {b: Yw==}}",
		"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: other}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}, status: {}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: other, creationTimestamp: null}, spec: {replicas: 0, strategy: {}, selector: {matchLabels: {app: o}}, template: {metadata: {labels: {app: o}, creationTimestamp: null}, spec: {containers: [{name: a, image: a, resources: {}, ports: [{containerPort: 80}]}]}}}, status: {}}",
	}
	for object, action := range actions(b.mustApply(docs...)) {
		if action != Created {
			t.Errorf("%s was %s by the first apply", object, action)
		}
	}
	var out Out
	wrote := b.writesDuring(func() {
		for range 3 {
			out = b.mustApply(docs...)
		}
	})
	for object, action := range actions(out) {
		if action != Unchanged {
			t.Errorf("%s was %s by a later apply", object, action)
		}
	}
	for _, write := range wrote {
		if !strings.Contains(write, "deployments/other/status") && !strings.Contains(write, "horizontalpodautoscalers/other/status") && !strings.Contains(write, "endpoint") {
			t.Errorf("a later apply wrote %s", write)
		}
	}
}

// steer sets the weights as a router does.
func (b *bench) steer(stable, canary int64) {
	b.Helper()
	live := b.get("gateway.networking.k8s.io/v1", "HTTPRoute", "web")
	rules, _, _ := unstructured.NestedSlice(live.Object, "spec", "rules")
	backends := rules[0].(map[string]any)["backendRefs"].([]any)
	backends[0].(map[string]any)["weight"], backends[1].(map[string]any)["weight"] = stable, canary
	if err := unstructured.SetNestedSlice(live.Object, rules, "spec", "rules"); err != nil {
		b.Fatal(err)
	}
	if err := b.client.Update(b.Context(), live, client.FieldOwner(v1alpha1.FieldManagerRouter)); err != nil {
		b.Fatal(err)
	}
	service := b.get("v1", "Service", "web-canary")
	if err := unstructured.SetNestedField(service.Object, "c1c1c1c1c1", "spec", "selector", v1alpha1.TemplateHashLabel); err != nil {
		b.Fatal(err)
	}
	if err := b.client.Update(b.Context(), service, client.FieldOwner(v1alpha1.FieldManagerRouter)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) weights() []int64 {
	b.Helper()
	rules, _, _ := unstructured.NestedSlice(b.get("gateway.networking.k8s.io/v1", "HTTPRoute", "web").Object, "spec", "rules")
	var out []int64
	for _, backend := range rules[0].(map[string]any)["backendRefs"].([]any) {
		out = append(out, backend.(map[string]any)["weight"].(int64))
	}
	return out
}

func TestWeightsAndSelectorsSurviveSyncsAndEdits(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, webRollout}
	b.mustApply(docs...)
	b.steer(75, 25)
	wrote := b.writesDuring(func() {
		for range 3 {
			b.mustApply(docs...)
		}
	})
	if len(wrote) > 0 {
		t.Errorf("syncs during a canary wrote %v", wrote)
	}
	docs[2] = strings.Replace(route, "parentRefs", "hostnames: [shop.example.com], parentRefs", 1)
	docs[1] = strings.Replace(canaryService, "app: web", "app: web, tier: front", 1)
	if got := actions(b.mustApply(docs...)); got["HTTPRoute/web"] != Configured || got["Service/web-canary"] != Configured {
		t.Errorf("edits in Git were not applied: %v", got)
	}
	if diff := cmp.Diff([]int64{75, 25}, b.weights()); diff != "" {
		t.Error(diff)
	}
	selector, _, _ := unstructured.NestedStringMap(b.get("v1", "Service", "web-canary").Object, "spec", "selector")
	if diff := cmp.Diff(map[string]string{"app": "web", "tier": "front", v1alpha1.TemplateHashLabel: "c1c1c1c1c1"}, selector); diff != "" {
		t.Error(diff)
	}
	b.mustApply(stableService, canaryService, route, settings, webRollout)
	if _, found, _ := unstructured.NestedSlice(b.get("gateway.networking.k8s.io/v1", "HTTPRoute", "web").Object, "spec", "hostnames"); found {
		t.Error("a field that left Git is still there")
	}
	if diff := cmp.Diff([]int64{75, 25}, b.weights()); diff != "" {
		t.Error(diff)
	}
}

func TestDriftIsCorrectedOnceAndThenQuiet(t *testing.T) {
	b := newBench(t)
	b.mustApply(settings)
	live := b.get("v1", "ConfigMap", "settings")
	live.Object["data"] = map[string]any{"a": "edited", "mine": "kept"}
	if err := b.client.Update(t.Context(), live, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	if got := actions(b.mustApply(settings)); got["ConfigMap/settings"] != Configured {
		t.Errorf("drift was %v", got)
	}
	data, _, _ := unstructured.NestedStringMap(b.get("v1", "ConfigMap", "settings").Object, "data")
	if diff := cmp.Diff(map[string]string{"a": "b", "mine": "kept"}, data); diff != "" {
		t.Error(diff)
	}
	if wrote := b.writesDuring(func() { b.mustApply(settings) }); len(wrote) > 0 {
		t.Errorf("wrote %v", wrote)
	}
}

func (b *bench) replicas() int64 {
	b.Helper()
	n, _, err := unstructured.NestedInt64(b.get("pushback.dev/v1alpha1", "Rollout", "web").Object, "spec", "replicas")
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// scale changes the size as an autoscaler does.
func (b *bench) scale(n int64) {
	b.Helper()
	scale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": "web", "namespace": b.namespace}, "spec": map[string]any{"replicas": n},
	}}
	err := b.client.SubResource("scale").Update(b.Context(), b.get("pushback.dev/v1alpha1", "Rollout", "web"), client.WithSubResourceBody(scale), client.FieldOwner("autoscaler"))
	if err != nil {
		b.Fatal(err)
	}
}

func TestReplicasThatGitOmitsBelongToOthers(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, webRollout}
	b.mustApply(docs...)
	if got := b.replicas(); got != 1 {
		t.Errorf("a new Rollout without replicas has %d", got)
	}
	b.scale(5)
	if wrote := b.writesDuring(func() { b.mustApply(docs...); b.mustApply(docs...) }); len(wrote) > 0 {
		t.Errorf("wrote %v", wrote)
	}
	docs[4] = strings.Replace(webRollout, "setWeight: 20", "setWeight: 30", 1)
	b.mustApply(docs...)
	if got := b.replicas(); got != 5 {
		t.Errorf("an edit of the steps brought replicas from 5 to %d", got)
	}
	docs[4] = strings.Replace(webRollout, "spec:", "spec:\n  replicas: 3", 1)
	b.mustApply(docs...)
	if got := b.replicas(); got != 3 {
		t.Errorf("Git says 3, and there are %d", got)
	}
	docs[4] = webRollout
	b.mustApply(docs...)
	if got := b.replicas(); got != 3 {
		t.Errorf("the size that Git no longer says went from 3 to %d", got)
	}
}

func TestReplicasOfAScaledRolloutBelongToTheScaler(t *testing.T) {
	b := newBench(t)
	scaler := "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: pushback.dev/v1alpha1, kind: Rollout, name: web}}}"
	sized := strings.Replace(webRollout, "spec:", "spec:\n  replicas: 4", 1)
	docs := []string{stableService, canaryService, route, settings, sized, scaler}
	b.mustApply(docs...)
	if got := b.replicas(); got != 4 {
		t.Errorf("the first size is Git's 4, not %d", got)
	}
	b.scale(7)
	b.mustApply(docs...)
	if got := b.replicas(); got != 7 {
		t.Errorf("a sync took the scaler's 7 to %d", got)
	}
}

func (b *bench) source() v1alpha1.Source {
	b.Helper()
	var source v1alpha1.Source
	text := b.get("pushback.dev/v1alpha1", "Rollout", "web").GetAnnotations()[v1alpha1.SourceAnnotation]
	if err := json.Unmarshal([]byte(text), &source); err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	return source
}

func TestSourceIsWrittenWhenTheTemplateChanges(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, webRollout}
	b.mustApply(docs...)
	first := b.source()
	want := v1alpha1.Source{Hash: first.Hash, Revision: "main@sha1:" + strings.Repeat("a", 40), Subject: "First", GitSync: b.namespace + "/sync", File: "4.yaml"}
	if diff := cmp.Diff(want, first); diff != "" || len(first.Hash) != 10 {
		t.Error(diff)
	}

	b.in.Commit = Commit{Revision: revision("b"), Subject: "Unrelated"}
	if wrote := b.writesDuring(func() { b.mustApply(docs...) }); len(wrote) > 0 {
		t.Errorf("an unrelated commit wrote %v", wrote)
	}

	b.in.Commit = Commit{Revision: revision("c"), Subject: strings.Repeat("x", 200), Irreversible: []string{"web"}}
	docs[4] = strings.Replace(webRollout, "app:1", "app:2", 1)
	b.mustApply(docs...)
	second := b.source()
	if second.Hash == first.Hash || second.Revision != "main@sha1:"+strings.Repeat("c", 40) || len([]rune(second.Subject)) != 100 || !second.Irreversible {
		t.Errorf("the new template's source is %+v", second)
	}

	// A trailer lifts the hold on the declared hash although the template is the same.
	b.in.Commit = Commit{Revision: revision("d"), Subject: "Try again", Retry: []string{second.Hash, "0000000000"}}
	b.mustApply(docs...)
	if got := b.source(); !cmp.Equal(got.Retry, []string{second.Hash}) || got.Revision != "main@sha1:"+strings.Repeat("d", 40) {
		t.Errorf("the trailer gave %+v", got)
	}
	if wrote := b.writesDuring(func() { b.mustApply(docs...) }); len(wrote) > 0 {
		t.Errorf("the same commit again wrote %v", wrote)
	}
	b.in.Commit = Commit{Revision: revision("e"), Subject: "Unrelated"}
	if wrote := b.writesDuring(func() { b.mustApply(docs...) }); len(wrote) > 0 {
		t.Errorf("an unrelated commit after it wrote %v", wrote)
	}

	for _, source := range []v1alpha1.Source{first, second} {
		kept := b.get("apps/v1", "ControllerRevision", SourceName("web", source.Hash))
		data, err := json.Marshal(kept.Object["data"])
		if err != nil {
			t.Fatal(err)
		}
		files, err := UnpackSource(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]File{{Path: "4.yaml", Mode: "100644", Data: []byte("# 4.yaml")}}, files); diff != "" {
			t.Error(diff)
		}
		if !metav1.IsControlledBy(kept, b.get("pushback.dev/v1alpha1", "Rollout", "web")) {
			t.Error("the kept source doesn't belong to the Rollout")
		}
	}
}

func TestHistoryIsBoundedAndKeepsTheStableSource(t *testing.T) {
	b := newBench(t)
	sized := strings.Replace(webRollout, "spec:", "spec:\n  revisionHistoryLimit: 2", 1)
	b.mustApply(stableService, canaryService, route, settings, sized)
	first := b.source().Hash
	live := b.get("pushback.dev/v1alpha1", "Rollout", "web")
	live.Object["status"] = map[string]any{"stableRS": first}
	if err := b.client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		b.mustApply(stableService, canaryService, route, settings, strings.Replace(sized, "app:1", fmt.Sprintf("app:%d", i+2), 1))
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps/v1")
	list.SetKind("ControllerRevisionList")
	if err := b.client.List(t.Context(), list, client.InNamespace(b.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 3 {
		t.Errorf("want the stable source and 2 more, got %d", len(list.Items))
	}
	if !b.exists("apps/v1", "ControllerRevision", SourceName("web", first)) {
		t.Error("the stable source is gone")
	}
}

// TestAKeptSourceTakesPatches of its metadata, as the garbage collector makes them
// when a Rollout is deleted without what it owns.
func TestAKeptSourceTakesPatches(t *testing.T) {
	b := newBench(t)
	b.in.Commit.Revision.Branch = "a&b<c>"
	b.mustApply(webRollout, stableService, canaryService, route, settings)
	var kept appsv1.ControllerRevisionList
	if err := b.client.List(t.Context(), &kept, client.InNamespace(b.namespace)); err != nil || len(kept.Items) != 1 {
		t.Fatalf("want one kept source, have %d, %v", len(kept.Items), err)
	}
	for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
		patch := client.RawPatch(kind, []byte(`{"metadata": {"annotations": {"patched": "`+string(kind)+`"}}}`))
		if err := b.client.Patch(t.Context(), &kept.Items[0], patch); err != nil {
			t.Errorf("%s: %.300v", kind, err)
		}
	}
}

func TestC128_DefinitionsFirstAndFailuresAlone(t *testing.T) {
	b := newBench(t)
	group := strings.ReplaceAll(b.namespace, "test-", "g") + ".example.com"
	out := b.apply(
		"{apiVersion: "+group+"/v1, kind: Thing, metadata: {name: t}, spec: {}}",
		"{apiVersion: nowhere.example.com/v1, kind: Other, metadata: {name: o}}",
		settings,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: inside, namespace: "+b.namespace+"-x}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+b.namespace+"-x}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things."+group+"}, spec: {group: "+group+", scope: Namespaced, names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}, status: {acceptedNames: {kind: '', plural: ''}, conditions: [], storedVersions: []}}",
	)
	t.Cleanup(func() {
		for _, doc := range []string{"{apiVersion: v1, kind: Namespace, metadata: {name: " + b.namespace + "-x}}", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things." + group + "}}"} {
			_ = b.client.Delete(context.Background(), declare(t, doc)[0].Unstructured)
		}
	})
	if diff := cmp.Diff(map[string]Action{"Thing/t": Created, "ConfigMap/settings": Created, "ConfigMap/inside": Created, "Namespace/" + b.namespace + "-x": Created, "CustomResourceDefinition/things." + group: Created}, actions(out)); diff != "" {
		t.Error(diff)
	}
	if got := failures(out); len(got) != 1 || !strings.Contains(got["Other/o"], "no kind Other") {
		t.Errorf("want only Other/o to fail, got %v", got)
	}
}

func TestC28_NoRolloutBeforeWhatItNames(t *testing.T) {
	b := newBench(t)
	broken := strings.Replace(settings, "data: {a: b}", "data: {'not/a key': b}", 1)
	out := b.apply(webRollout, stableService, canaryService, route, broken)
	got := failures(out)
	if len(got) != 2 || !strings.Contains(got["Rollout/web"], "ConfigMap/"+b.namespace+"/settings") {
		t.Errorf("want the ConfigMap and the Rollout that names it to fail, got %v", got)
	}
	for _, failure := range out.Failures {
		if strings.HasPrefix(failure.Object, "Rollout/") && !errors.Is(failure, ErrNamedFailed) {
			t.Errorf("want ErrNamedFailed, got %v", failure)
		}
	}
	if b.exists("pushback.dev/v1alpha1", "Rollout", "web") || !b.exists("v1", "Service", "web-stable") {
		t.Error("want the Service there and the Rollout not")
	}
	b.mustApply(webRollout, stableService, canaryService, route, settings)
}

func TestATemplateThatMakesNoPodsIsRefused(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, strings.Replace(webRollout, `image: "app:1"`, `image: "app:1", imagePullPolice: Always`, 1)}
	got := failures(b.apply(docs...))
	if !strings.Contains(got["Rollout/web"], "imagePullPolice") {
		t.Errorf("want an error that names the unknown field, got %v", got)
	}
	if b.exists("pushback.dev/v1alpha1", "Rollout", "web") {
		t.Error("the Rollout was applied")
	}
}

func TestC56_ATenantStaysInItsNamespace(t *testing.T) {
	b := newBench(t)
	other := newBench(t)
	b.mustApply(
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: tenant}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tenant}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: tenant}]}",
	)
	config := rest.CopyConfig(b.cluster.RESTConfig())
	config.Impersonate.UserName = "system:serviceaccount:" + b.namespace + ":tenant"
	b.applier.Client = newClient(t, config)
	b.in.Inventory = nil
	wrote := other.writesDuring(func() {
		out := b.apply(settings,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+other.namespace+"}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: evil-"+b.namespace+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: tenant, namespace: "+b.namespace+"}]}")
		forbidden := 0
		for _, failure := range out.Failures {
			if apierrors.IsForbidden(failure) {
				forbidden++
			}
		}
		if forbidden != 2 || len(out.Failures) != 2 || actions(out)["ConfigMap/settings"] != Created {
			t.Errorf("want two Forbidden and one created, got %v and %v", failures(out), actions(out))
		}
	})
	for _, write := range wrote {
		if strings.Contains(write, "configmaps/theirs") && other.exists("v1", "ConfigMap", "theirs") {
			t.Errorf("the tenant wrote %s", write)
		}
	}
	// What was refused was never made: once it has left Git there is nothing to prune.
	if out := b.apply(settings); len(out.Failures) > 0 || len(out.Inventory) != 1 {
		t.Errorf("want the tree to be in order again, got %v and the inventory %v", failures(out), out.Inventory)
	}
}

func TestTargetNamespaceOverridesAll(t *testing.T) {
	b, target := newBench(t), newBench(t)
	b.in.TargetNamespace = target.namespace
	b.mustApply(settings, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: elsewhere}}")
	if !target.exists("v1", "ConfigMap", "settings") || !target.exists("v1", "ConfigMap", "other") || b.exists("v1", "ConfigMap", "settings") {
		t.Error("the objects are not in the target namespace")
	}
}

// template is a ReplicaSet of a version that may be gone back to.
func (b *bench) makeSet() {
	b.Helper()
	set := declare(b.T, "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-old, namespace: "+b.namespace+", labels: {pushback.dev/template-hash: aaaaaaaaaa}}, spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: runner, volumes: [{name: s, secret: {secretName: login}}], containers: [{name: a, image: a, env: [{name: X, valueFrom: {configMapKeyRef: {name: old-settings, key: x}}}]}]}}}}")[0]
	if err := b.client.Create(b.Context(), set.Unstructured); err != nil {
		b.Fatal(err)
	}
}

func TestPrune(t *testing.T) {
	b := newBench(t)
	maps := func(names ...string) []string {
		var out []string
		for _, name := range names {
			out = append(out, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}")
		}
		return out
	}
	rest := []string{stableService, canaryService, route, settings, webRollout}
	all := append(append([]string{}, rest...), maps("free", "old-settings", "theirs")...)
	all = append(all,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: guarded, annotations: {pushback.dev/prune: disabled}}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: login}}", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner}}")
	b.mustApply(all...)
	b.makeSet()
	foreign := b.get("v1", "ConfigMap", "theirs")
	foreign.SetLabels(map[string]string{v1alpha1.GitSyncNameLabel: "another", v1alpha1.GitSyncNamespaceLabel: b.namespace})
	if err := b.client.Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}

	if out := b.apply(append(rest, "{apiVersion: nowhere.example.com/v1, kind: Other, metadata: {name: o}}")...); len(out.Failures) != 1 || !b.exists("v1", "ConfigMap", "free") {
		t.Error("something was pruned although something failed")
	}
	b.in.Rejected = gitsync.ManifestErrors{{File: "x"}}
	if b.mustApply(rest...); !b.exists("v1", "ConfigMap", "free") {
		t.Error("something was pruned although something was rejected")
	}
	b.in.Rejected = nil
	out := b.mustApply(rest...)
	if diff := cmp.Diff(map[string]Action{"ConfigMap/free": Pruned, "ConfigMap/old-settings": Kept, "Secret/login": Kept, "ServiceAccount/runner": Kept,
		"Service/web-stable": Unchanged, "Service/web-canary": Unchanged, "HTTPRoute/web": Unchanged, "ConfigMap/settings": Unchanged, "Rollout/web": Unchanged}, actions(out)); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"old-settings", "theirs", "guarded"} {
		if !b.exists("v1", "ConfigMap", name) {
			t.Errorf("%s was pruned", name)
		}
	}
	if !out.Waits() {
		t.Error("what is kept is to be looked at again")
	}

	// A live Rollout keeps what it names; when the ReplicaSet is gone its names are free.
	if err := b.client.Delete(t.Context(), b.get("apps/v1", "ReplicaSet", "web-old")); err != nil {
		t.Fatal(err)
	}
	out = b.mustApply(settings, webRollout)
	if got := actions(out); got["Service/web-stable"] != Kept || got["HTTPRoute/web"] != Kept || got["ConfigMap/old-settings"] != Pruned {
		t.Errorf("got %v", got)
	}
	out = b.mustApply(settings)
	if got := actions(out); got["Rollout/web"] != Pruned || got["Service/web-stable"] != Pruned {
		t.Errorf("want the Rollout and then its Services pruned, got %v", got)
	}
}

func TestReconcileDisabledLeavesAnObjectAlone(t *testing.T) {
	b := newBench(t)
	b.mustApply(settings)
	live := b.get("v1", "ConfigMap", "settings")
	live.SetAnnotations(map[string]string{v1alpha1.ReconcileAnnotation: "disabled"})
	live.Object["data"] = map[string]any{"a": "by hand"}
	if err := b.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if got := actions(b.mustApply(settings)); got["ConfigMap/settings"] != Skipped {
		t.Errorf("got %v", got)
	}
	data, _, _ := unstructured.NestedStringMap(b.get("v1", "ConfigMap", "settings").Object, "data")
	if data["a"] != "by hand" {
		t.Errorf("the object was changed to %v", data)
	}
}

func TestForceRecreatesButNeverARollout(t *testing.T) {
	b := newBench(t)
	fixed := "{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: '1'}}"
	docs := []string{stableService, canaryService, route, settings, webRollout, fixed}
	b.mustApply(docs...)
	docs[5] = strings.Replace(fixed, "'1'", "'2'", 1)
	docs[4] = strings.ReplaceAll(webRollout, "app: web", "app: web2")
	if got := failures(b.apply(docs...)); len(got) != 2 {
		t.Errorf("without force want both refused, got %v", got)
	}
	uid := b.get("pushback.dev/v1alpha1", "Rollout", "web").GetUID()
	b.in.Force = true
	out := b.apply(docs...)
	if got := actions(out); got["ConfigMap/fixed"] != Recreated || len(out.Failures) != 1 {
		t.Errorf("with force got %v and %v", got, failures(out))
	}
	if b.get("pushback.dev/v1alpha1", "Rollout", "web").GetUID() != uid {
		t.Error("the Rollout was re-created")
	}
}

// Law 17: a write that follows from a read never lands on another object, nor
// brings a deleted one back.
func TestAWriteIsBoundToWhatWasRead(t *testing.T) {
	b := newBench(t)
	b.mustApply(settings)
	r := &run{Applier: b.applier, in: b.in, failed: refs{}}
	prepared, err := b.applier.prepare(b.in, declare(t, strings.Replace(settings, "a: b", "a: c", 1))[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	stale := b.get("v1", "ConfigMap", "settings")
	newer := stale.DeepCopy()
	newer.SetAnnotations(map[string]string{"x": "y"})
	if err := b.client.Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.write(t.Context(), prepared.declared, stale, nil); !apierrors.IsConflict(err) {
		t.Errorf("a write from a stale read: want a conflict, got %v", err)
	}
	if err := b.client.Delete(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.write(t.Context(), prepared.declared, newer, nil); !apierrors.IsConflict(err) {
		t.Errorf("a write to a deleted object: want a conflict, got %v", err)
	}
	if b.exists("v1", "ConfigMap", "settings") {
		t.Error("the deleted object is back")
	}
	failure := &Failure{Err: apierrors.NewConflict(corev1.Resource("configmaps"), "settings", errors.New("x"))}
	if !failure.Conflict() {
		t.Error("a conflict isn't seen as one")
	}
}

func TestWordsAboutASecretAreNotShown(t *testing.T) {
	b := newBench(t)
	got := failures(b.apply("{apiVersion: v1, kind: Secret, metadata: {name: login}, data: {password: 'hunter2 is not base64'}}"))
	if text := got["Secret/login"]; text == "" || strings.Contains(text, "hunter2") {
		t.Errorf("got %q", text)
	}
}
