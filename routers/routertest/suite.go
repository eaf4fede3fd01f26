// Package routertest is the suite that every router runs, against a fake client
// and against an API server. It imports the port and no router.
package routertest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/routers"
)

// Suite is one router and the objects that it is tried on.
type Suite struct {
	// New makes the router.
	New func(c client.Client, live client.Reader) routers.Router
	// Cluster returns a client and the name of an empty namespace. It is called once for each test.
	Cluster func(t *testing.T) (client.Client, string)
	// Target that all objects belong to.
	Target func(namespace string) routers.Target
	// Objects as Git declares them: the routing objects that the Target names, with
	// much in them that isn't the router's, and both Services. The first one is a
	// routing object.
	Objects func(namespace string) []*unstructured.Unstructured
	// Can lists what the router can do beside weights. What isn't listed it must
	// refuse.
	Can []routers.Capability
	// Strip takes the router's weights and selectors out of an object, in place. What
	// remains must never change but for managed routes.
	Strip func(object map[string]any)
	// Edit changes something else in the first object, in place, as a person would,
	// and with it the filters or timeouts of a rule that is weighted.
	Edit func(object map[string]any)
}

// Run runs every test of the suite.
func (s Suite) Run(t *testing.T) {
	tests := map[string]func(*testing.T, *trial){
		"observe after apply":              observeAfterApply,
		"a second apply writes nothing":    secondApplyWritesNothing,
		"all else stays as it was":         allElseStays,
		"abort from any weight":            abortFromAnyWeight,
		"release leaves nothing behind":    releaseLeavesNothing,
		"missing object":                   missingObject,
		"somebody writes in between":       somebodyWritesInBetween,
		"apply rests on what was observed": applyRestsOnWhatWasObserved,
		"somebody re-creates in between":   somebodyRecreatesInBetween,
		"writes name their manager":        writesNameTheirManager,
		"claims cover the Target":          claimsCoverTheTarget,
		"overlay keeps weights and edits":  overlayKeepsWeightsAndEdits,
		"overlay of a new object":          overlayOfNewObject,

		"C26 managed routes are a set":             managedRoutesAreASet,
		"C26 a managed route is replaced":          managedRouteIsReplaced,
		"C07 weights leave managed routes alone":   weightsLeaveManagedRoutes,
		"release removes managed routes":           releaseRemovesManagedRoutes,
		"overlay keeps managed routes":             overlayKeepsManagedRoutes,
		"an edit of a live object is put right":    editOfALiveObjectIsPutRight,
		"what the router can't do is named":        lacksAreNamed,
		"maxTrafficWeight: another whole than 100": weightsOfAnotherWhole,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, s.start(t)) })
	}
}

// trial is a router with its objects in a namespace of their own.
type trial struct {
	Suite
	t        *testing.T
	client   client.Client
	router   routers.Router
	target   routers.Target
	declared []*unstructured.Unstructured
}

func (s Suite) start(t *testing.T) *trial {
	t.Helper()
	c, namespace := s.Cluster(t)
	tr := &trial{Suite: s, t: t, client: c, router: s.New(c, c), target: s.Target(namespace), declared: s.Objects(namespace)}
	for _, object := range tr.declared {
		if err := c.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	return tr
}

func split(canary int32) routers.Split {
	return routers.Split{Stable: routers.MaxWeight - canary, Canary: canary}
}

func (tr *trial) apply(canary int32) {
	tr.t.Helper()
	if err := tr.router.Apply(tr.t.Context(), tr.target, split(canary)); err != nil {
		tr.t.Fatalf("applying %d: %v", canary, err)
	}
}

// expect fails unless the weights are seen everywhere.
func (tr *trial) expect(canary int32) {
	tr.t.Helper()
	seen, err := tr.router.Observe(tr.t.Context(), tr.target)
	if err != nil {
		tr.t.Fatalf("observing: %v", err)
	}
	if seen.Stable != routers.MaxWeight-canary || seen.Canary != canary || !seen.Uniform {
		tr.t.Fatalf("want %d/%d everywhere, saw %+v", routers.MaxWeight-canary, canary, seen)
	}
	switch seen.Verification {
	case routers.Verified, routers.VerificationPending, routers.VerificationUnknown:
	default:
		tr.t.Fatalf("verification is %q", seen.Verification)
	}
}

func (tr *trial) live(declared *unstructured.Unstructured) *unstructured.Unstructured {
	tr.t.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(declared.GroupVersionKind())
	if err := tr.client.Get(tr.t.Context(), client.ObjectKeyFromObject(declared), out); err != nil {
		tr.t.Fatal(err)
	}
	return out
}

// versions are the resourceVersions of all objects, by kind and name.
func (tr *trial) versions() map[string]string {
	tr.t.Helper()
	out := map[string]string{}
	for _, object := range tr.declared {
		out[object.GetKind()+" "+object.GetName()] = tr.live(object).GetResourceVersion()
	}
	return out
}

// unchanged fails when anything was written since before.
func (tr *trial) unchanged(before map[string]string) {
	tr.t.Helper()
	if diff := cmp.Diff(before, tr.versions()); diff != "" {
		tr.t.Errorf("something was written (resourceVersions, -before +after):\n%s", diff)
	}
}

// foreign is what of an object isn't the router's, without what the server counts.
func (tr *trial) foreign(object map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(object)
	tr.Strip(out)
	if metadata, ok := out["metadata"].(map[string]any); ok {
		for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(metadata, field)
		}
		if annotations, _ := metadata["annotations"].(map[string]any); len(annotations) == 0 {
			delete(metadata, "annotations") // as a server does when the last one goes
		}
		if metadata["uid"] == "" { // a fake client gives none, and keeps the one that a patch carries
			delete(metadata, "uid")
		}
	}
	return out
}

// interfere is a reader that lets somebody act after the first read.
type interfere struct {
	client.Reader
	act func()
}

func (i *interfere) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := i.Reader.Get(ctx, key, object, options...)
	if act := i.act; act != nil {
		i.act = nil
		act()
	}
	return err
}
