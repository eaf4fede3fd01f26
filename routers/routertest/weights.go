package routertest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// walk is a canary's way up, and back at once.
var walk = []int32{0, 25, 50, 75, 100, 0}

func observeAfterApply(_ *testing.T, tr *trial) {
	for _, canary := range walk {
		tr.apply(canary)
		tr.expect(canary)
	}
}

func secondApplyWritesNothing(_ *testing.T, tr *trial) {
	for _, canary := range walk {
		tr.apply(canary)
		before := tr.versions()
		tr.apply(canary)
		tr.unchanged(before)
	}
}

func allElseStays(t *testing.T, tr *trial) {
	before := map[string]map[string]any{}
	for _, object := range tr.declared {
		before[object.GetName()] = tr.foreign(tr.live(object).Object)
	}
	for _, canary := range walk {
		tr.apply(canary)
		for _, object := range tr.declared {
			if diff := cmp.Diff(before[object.GetName()], tr.foreign(tr.live(object).Object)); diff != "" {
				t.Errorf("%s %s at %d (-before +after):\n%s", object.GetKind(), object.GetName(), canary, diff)
			}
		}
	}
}

func abortFromAnyWeight(_ *testing.T, tr *trial) {
	for _, canary := range []int32{25, 75, 100} {
		tr.apply(canary)
		tr.apply(0)
		tr.expect(0)
	}
}

func releaseLeavesNothing(t *testing.T, tr *trial) {
	tr.apply(0)
	want := tr.foreign(tr.live(tr.declared[0]).Object)
	tr.apply(75)
	for range 2 {
		if err := tr.router.Release(t.Context(), tr.target); err != nil {
			t.Fatalf("releasing: %v", err)
		}
		tr.expect(0)
	}
	before := tr.versions()
	if err := tr.router.Release(t.Context(), tr.target); err != nil {
		t.Fatalf("releasing again: %v", err)
	}
	tr.unchanged(before)
	if diff := cmp.Diff(want, tr.foreign(tr.live(tr.declared[0]).Object)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

func missingObject(t *testing.T, tr *trial) {
	if err := tr.client.Delete(t.Context(), tr.declared[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	var missing *routers.NotFoundError
	if _, err := tr.router.Observe(t.Context(), tr.target); !errors.As(err, &missing) {
		t.Errorf("observing: want a NotFoundError, got %v", err)
	} else if missing.Name.Name != tr.declared[0].GetName() {
		t.Errorf("the error names %s", missing.Name)
	}
	if err := tr.router.Apply(t.Context(), tr.target, split(25)); !errors.As(err, &missing) {
		t.Errorf("applying: want a NotFoundError, got %v", err)
	}
	if err := tr.router.Release(t.Context(), tr.target); err != nil {
		t.Errorf("releasing what is gone: %v", err)
	}
}

func somebodyWritesInBetween(t *testing.T, tr *trial) {
	tr.apply(25)
	var edited map[string]any
	reader := &interfere{Reader: tr.client, act: func() {
		live := tr.live(tr.declared[0])
		tr.Edit(live.Object)
		if err := tr.client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		edited = tr.foreign(live.Object)
	}}
	router := tr.New(tr.client, reader)
	if err := router.Apply(t.Context(), tr.target, split(50)); !apierrors.IsConflict(err) {
		t.Fatalf("want a conflict, got %v", err)
	}
	if err := router.Apply(t.Context(), tr.target, split(50)); err != nil {
		t.Fatalf("trying again: %v", err)
	}
	tr.expect(50)
	if diff := cmp.Diff(edited, tr.foreign(tr.live(tr.declared[0]).Object)); diff != "" {
		t.Errorf("the edit was lost (-edited +live):\n%s", diff)
	}
}

// What lowers the weight from where it was seen may raise it from where it is now.
func applyRestsOnWhatWasObserved(t *testing.T, tr *trial) {
	tr.apply(75)
	pass := tr.New(tr.client, tr.client)
	if _, err := pass.Observe(t.Context(), tr.target); err != nil {
		t.Fatal(err)
	}
	tr.apply(0)
	before := tr.versions()
	if err := pass.Apply(t.Context(), tr.target, split(50)); !apierrors.IsConflict(err) {
		t.Fatalf("want a conflict, got %v", err)
	}
	tr.unchanged(before)
	tr.expect(0)
}

func somebodyRecreatesInBetween(t *testing.T, tr *trial) {
	if tr.live(tr.declared[0]).GetUID() == "" {
		t.Skip("this client gives no uids")
	}
	before := ""
	reader := &interfere{Reader: tr.client, act: func() {
		before = string(tr.live(tr.declared[0]).GetUID())
		if err := tr.client.Delete(t.Context(), tr.declared[0].DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := tr.client.Create(t.Context(), tr.declared[0].DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}}
	if err := tr.New(tr.client, reader).Apply(t.Context(), tr.target, split(50)); !apierrors.IsConflict(err) {
		t.Fatalf("want a conflict, got %v", err)
	}
	if string(tr.live(tr.declared[0]).GetUID()) == before {
		t.Fatal("the object was not re-created, so this test shows nothing")
	}
}

func writesNameTheirManager(t *testing.T, tr *trial) {
	tr.apply(25)
	fields := tr.live(tr.declared[0]).GetManagedFields()
	if len(fields) == 0 {
		t.Skip("this client keeps no managed fields")
	}
	for _, entry := range fields {
		if entry.Manager == v1alpha1.FieldManagerRouter && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			return
		}
	}
	t.Errorf("no entry of %s in %+v", v1alpha1.FieldManagerRouter, fields)
}
