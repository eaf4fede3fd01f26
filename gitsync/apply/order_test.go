package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
