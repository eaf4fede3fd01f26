package gatewayapi

import (
	"context"
	"errors"
	"os"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/selector"
)

// withoutCRDs is what the router said before the CRDs were installed.
var withoutCRDs error

var shared = clustertest.New(cluster.Options{}, observeWithoutCRDs, (*cluster.Cluster).InstallGatewayAPI)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func observeWithoutCRDs(c *cluster.Cluster, ctx context.Context) error {
	live, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	_, withoutCRDs = New(live, live).Observe(ctx, target("default"))
	return nil
}

func serverCluster(t *testing.T) (client.Client, string) {
	t.Helper()
	c := shared.Cluster(t)
	live, err := client.New(c.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return live, clustertest.Namespace(t, c)
}

func TestConformanceOnAPIServer(t *testing.T) {
	s := suite(serverCluster)
	s.Strip = func(object map[string]any) {
		stripWeights(object)
		stripDefaults(object)
	}
	s.Run(t)
}

// stripDefaults takes out what the API server adds to the suite's objects, so
// that what Git declares and what is stored can be compared.
func stripDefaults(object map[string]any) {
	delete(object, "status")
	metadata := object["metadata"].(map[string]any)
	delete(metadata, "uid")
	delete(metadata, "creationTimestamp")
	spec := object["spec"].(map[string]any)
	if object["kind"] == "Service" {
		object["spec"] = map[string]any{"selector": spec["selector"]}
		return
	}
	for _, parent := range mapsIn(spec["parentRefs"]) {
		dropDefaults(parent, map[string]any{"group": Group, "kind": "Gateway"})
	}
	for _, rule := range rulesOf(object) {
		rule["matches"] = matchesOf(rule)
		for _, ref := range mapsIn(rule["backendRefs"]) {
			dropDefaults(ref, map[string]any{"group": "", "kind": "Service", "weight": int64(1)})
		}
	}
}

func dropDefaults(object, defaults map[string]any) {
	for key, value := range defaults {
		if object[key] == value {
			delete(object, key)
		}
	}
}

func TestAPIServerWithoutTheGatewayAPI(t *testing.T) {
	shared.Cluster(t)
	var missing *routers.NotFoundError
	if !errors.As(withoutCRDs, &missing) || missing.Advice == "" {
		t.Errorf("want a NotFoundError with advice, got %v", withoutCRDs)
	}
}

// gitsync applies an object as Git declares it, with the claims overlaid and what
// was read carried along.
func gitsync(t *testing.T, c client.Client, router *Router, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	wanted := overlaid(t, c, router, object)
	if err := forceApply(t, c, wanted); err != nil {
		t.Fatalf("applying %s: %v", object.GetName(), err)
	}
	return wanted
}

func overlaid(t *testing.T, c client.Client, router *Router, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), live); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		live.Object = nil
	}
	for _, claim := range router.Claims(target(object.GetNamespace())) {
		if claim.Kind != object.GetKind() || claim.Name != object.GetName() {
			continue
		}
		out, err := claim.Overlay(object.Object, live.Object)
		if err != nil {
			t.Fatal(err)
		}
		wanted := &unstructured.Unstructured{Object: out}
		if live.Object != nil {
			wanted.SetUID(live.GetUID())
			wanted.SetResourceVersion(live.GetResourceVersion())
		}
		return wanted
	}
	t.Fatalf("nothing is claimed in %s %s", object.GetKind(), object.GetName())
	return nil
}

func forceApply(t *testing.T, c client.Client, object *unstructured.Unstructured) error {
	t.Helper()
	return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(v1alpha1.FieldManagerGitSync), client.ForceOwnership)
}

func resourceVersion(t *testing.T, c client.Client, object *unstructured.Unstructured) string {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
		t.Fatal(err)
	}
	return live.GetResourceVersion()
}

// Git's applies and the router's weights live together: a forced apply with the
// overlay keeps the weights, the next one writes nothing, and one that was
// overlaid on an older read is refused.
func TestC35_AppliesFromGitKeepTheWeights(t *testing.T) {
	c, namespace := serverCluster(t)
	router := New(c, c)
	objects := declared(namespace)
	for _, object := range objects {
		gitsync(t, c, router, object)
	}
	observe := func(want int32) {
		t.Helper()
		got, err := router.Observe(t.Context(), target(namespace))
		if err != nil || got.Canary != want || !got.Uniform {
			t.Fatalf("want canary %d everywhere, saw %+v, %v", want, got, err)
		}
	}
	observe(0)
	if err := router.Apply(t.Context(), target(namespace), split(25)); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects[:2] {
		gitsync(t, c, router, object) // may take ownership back, once
		before := resourceVersion(t, c, object)
		for range 5 {
			gitsync(t, c, router, object)
		}
		if after := resourceVersion(t, c, object); after != before {
			t.Errorf("%s: syncs of the same commit wrote (%s to %s)", object.GetName(), before, after)
		}
	}
	observe(25)

	stale := overlaid(t, c, router, objects[0])
	if err := router.Apply(t.Context(), target(namespace), split(0)); err != nil {
		t.Fatal(err)
	}
	if err := forceApply(t, c, stale); !apierrors.IsConflict(err) {
		t.Errorf("an apply with the weights of an older read: want a conflict, got %v", err)
	}
	observe(0)
}

func TestSelectorOnAPIServer(t *testing.T) {
	c, namespace := serverCluster(t)
	router := New(c, c)
	service := declared(namespace)[2]
	gitsync(t, c, router, service)
	name := types.NamespacedName{Namespace: namespace, Name: service.GetName()}
	selected := func() map[string]any {
		t.Helper()
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(service.GroupVersionKind())
		if err := c.Get(t.Context(), name, live); err != nil {
			t.Fatal(err)
		}
		out, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
		return out
	}
	if err := selector.Apply(t.Context(), c, c, name, "0123456789"); err != nil {
		t.Fatal(err)
	}
	gitsync(t, c, router, service)
	before := resourceVersion(t, c, service)
	gitsync(t, c, router, service)
	if err := selector.Apply(t.Context(), c, c, name, "0123456789"); err != nil {
		t.Fatal(err)
	}
	if after := resourceVersion(t, c, service); after != before {
		t.Errorf("a selector that is right was written")
	}
	if got := selected(); len(got) != 2 || got[v1alpha1.TemplateHashLabel] != "0123456789" || got["app"] != "web" {
		t.Errorf("selector %v", got)
	}
	stale := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(overlaid(t, c, router, service).Object)}
	if err := selector.Apply(t.Context(), c, c, name, ""); err != nil {
		t.Fatal(err)
	}
	if got := selected(); len(got) != 1 || got["app"] != "web" {
		t.Errorf("selector %v after the hash was taken out", got)
	}
	if err := forceApply(t, c, stale); !apierrors.IsConflict(err) {
		t.Errorf("an apply with the selector of an older read: want a conflict, got %v", err)
	}
}
