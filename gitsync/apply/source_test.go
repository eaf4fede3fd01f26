package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

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
