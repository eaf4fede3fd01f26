package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
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
