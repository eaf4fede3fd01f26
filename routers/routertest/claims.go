package routertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/routers"
)

// claim on an object; it fails when there is none.
func (tr *trial) claim(object *unstructured.Unstructured) routers.Claim {
	tr.t.Helper()
	for _, claim := range tr.router.Claims(tr.target) {
		kind := schema.GroupKind{Group: claim.Group, Kind: claim.Kind}
		if kind == object.GroupVersionKind().GroupKind() && claim.Namespace == object.GetNamespace() && claim.Name == object.GetName() {
			return claim
		}
	}
	tr.t.Fatalf("nothing is claimed in %s %s", object.GetKind(), object.GetName())
	return routers.Claim{}
}

func (tr *trial) overlay(declared, live map[string]any) map[string]any {
	tr.t.Helper()
	claim := tr.claim(&unstructured.Unstructured{Object: declared})
	declaredBefore, liveBefore := runtime.DeepCopyJSON(declared), runtime.DeepCopyJSON(live)
	out, err := claim.Overlay(declared, live)
	if err != nil {
		tr.t.Fatalf("overlaying %s %s: %v", claim.Kind, claim.Name, err)
	}
	if diff := cmp.Diff(declaredBefore, declared); diff != "" {
		tr.t.Errorf("the declared object was changed:\n%s", diff)
	}
	if diff := cmp.Diff(liveBefore, live); diff != "" {
		tr.t.Errorf("the live object was changed:\n%s", diff)
	}
	return out
}

func claimsCoverTheTarget(t *testing.T, tr *trial) {
	for _, object := range tr.declared {
		if claim := tr.claim(object); len(claim.Fields) == 0 || claim.Overlay == nil {
			t.Errorf("the claim on %s %s names no fields or can't overlay: %+v", claim.Kind, claim.Name, claim)
		}
	}
	if got := len(tr.router.Claims(tr.target)); got != len(tr.declared) {
		t.Errorf("%d claims for %d objects", got, len(tr.declared))
	}
}

func overlayKeepsWeightsAndEdits(t *testing.T, tr *trial) {
	tr.apply(25)
	for _, object := range tr.declared {
		declared := runtime.DeepCopyJSON(object.Object)
		if object == tr.declared[0] {
			tr.Edit(declared) // Git has moved on
		}
		live := tr.live(object)
		merged := tr.overlay(declared, live.Object)
		if diff := cmp.Diff(tr.foreign(declared), tr.foreign(merged)); diff != "" {
			t.Errorf("%s: something declared was lost (-declared +overlaid):\n%s", object.GetName(), diff)
		}
		if diff := cmp.Diff(merged, tr.overlay(merged, live.Object)); diff != "" {
			t.Errorf("%s: a second overlay differs:\n%s", object.GetName(), diff)
		}
		tr.replace(live, merged)
	}
	tr.expect(25)
}

// replace makes an object what Git and the router want together.
func (tr *trial) replace(live *unstructured.Unstructured, merged map[string]any) {
	tr.t.Helper()
	next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(merged)}
	next.SetResourceVersion(live.GetResourceVersion())
	if live.GetKind() == "Service" { // the server gave it an address
		return
	}
	if err := tr.client.Update(tr.t.Context(), next); err != nil {
		tr.t.Fatal(err)
	}
}

// replaceKeeping is replace, with the metadata that Git doesn't declare left as it
// is: an apply touches what it names.
func (tr *trial) replaceKeeping(live *unstructured.Unstructured, merged map[string]any) {
	tr.t.Helper()
	next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(merged)}
	annotations := live.GetAnnotations()
	for key, value := range next.GetAnnotations() {
		annotations[key] = value
	}
	if len(annotations) > 0 {
		next.SetAnnotations(annotations)
	}
	tr.replace(live, next.Object)
}

// A new object sends the canary nothing, whatever Git says: it has no pods yet.
func overlayOfNewObject(t *testing.T, tr *trial) {
	tr.apply(75)
	for _, object := range tr.declared {
		asExported := tr.overlay(tr.live(object).Object, nil) // declared with a weight of 75
		exported := &unstructured.Unstructured{Object: asExported}
		exported.SetResourceVersion("")
		exported.SetUID("")
		if object.GetKind() == "Service" {
			continue
		}
		if err := tr.client.Delete(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := tr.client.Create(t.Context(), exported); err != nil {
			t.Fatal(err)
		}
	}
	tr.expect(0)
}
