package apply

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

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
	if _, err := r.write(t.Context(), prepared.declared, stale, nil); !apierrors.IsConflict(err) {
		t.Errorf("a write from a stale read: want a conflict, got %v", err)
	}
	if err := b.client.Delete(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	if _, err := r.write(t.Context(), prepared.declared, newer, nil); !apierrors.IsConflict(err) {
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
