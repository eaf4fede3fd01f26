package gatewayapi

import (
	"context"
	"errors"
	"os"
	"strings"
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

// Syncs of the same commit keep managed routes and write nothing; a commit that
// edits the base rule takes its copies along in the one write of the sync.
func TestC35_AppliesFromGitKeepTheManagedRoutes(t *testing.T) {
	c, namespace := serverCluster(t)
	router := New(c, c)
	objects := declared(namespace)[:2]
	for _, object := range objects {
		gitsync(t, c, router, object)
	}
	s := split(0)
	s.Routes = []routers.ManagedRoute{toCanary("testers", tester, header("x-build", routers.MatchPrefix, "v1.")), mirrored("shadow", 25, "GET", "")}
	if err := router.Apply(t.Context(), target(namespace), s); err != nil {
		t.Fatal(err)
	}
	settled := func() {
		t.Helper()
		for _, object := range objects {
			gitsync(t, c, router, object) // may take ownership back, once
			before := resourceVersion(t, c, object)
			for range 3 {
				gitsync(t, c, router, object)
			}
			if err := router.Apply(t.Context(), target(namespace), s); err != nil {
				t.Fatal(err)
			}
			if after := resourceVersion(t, c, object); after != before {
				t.Errorf("%s: something was written in steady state (%s to %s)", object.GetName(), before, after)
			}
		}
		got, err := router.Observe(t.Context(), target(namespace))
		if err != nil || !got.HasRoutes(s.Routes) {
			t.Fatalf("saw %+v, %v", got, err)
		}
	}
	settled()
	suite(serverCluster).Edit(objects[0].Object)
	settled()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(GroupVersionKind)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(objects[0]), live); err != nil {
		t.Fatal(err)
	}
	followed := 0
	for _, rule := range rulesOf(live.Object) {
		if timeouts, _ := rule["timeouts"].(map[string]any); timeouts["request"] == "9s" {
			followed++
		}
	}
	if followed != 4 { // one match a rule, where a prefix is rewritten: two rules for the testers
		t.Errorf("%d rules have the new timeout, want the rule and its three copies", followed)
	}
}

// A server whose CRDs don't know a field would drop it silently, and with it what
// tells our rules from others.
func TestManagedRulesAreWrittenWholeOrNotAtAll(t *testing.T) {
	c, namespace := serverCluster(t)
	router := New(c, c)
	object := declared(namespace)[0]
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	for _, managed := range []bool{true, false} {
		wanted := runtime.DeepCopyJSON(object.Object)
		rulesOf(wanted)[0]["unheardOf"] = "x"
		err := router.write(t.Context(), change{live: object, wanted: wanted, managed: managed})
		var invalid *routers.InvalidError
		if errors.As(err, &invalid) != managed || (err != nil) != managed {
			t.Errorf("managed %v: got %v", managed, err)
		}
		if managed && !strings.Contains(err.Error(), "unheardOf") {
			t.Errorf("the error doesn't name the field: %v", err)
		}
	}
}
