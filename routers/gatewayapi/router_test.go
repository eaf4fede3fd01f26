package gatewayapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// start creates the suite's objects in a fake cluster.
func start(t *testing.T) (client.Client, *Router) {
	t.Helper()
	c, namespace := fakeCluster(t)
	for _, object := range declared(namespace) {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return c, New(c, c)
}

func edit(t *testing.T, c client.Client, name string, change func(route map[string]any)) {
	t.Helper()
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(GroupVersionKind)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, route); err != nil {
		t.Fatal(err)
	}
	change(route.Object)
	if err := c.Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
}

// With routes that disagree, the largest canary share counts (law 2).
func TestObserveRoutesThatDisagree(t *testing.T) {
	c, router := start(t)
	if err := router.Apply(t.Context(), target("shop"), split(25)); err != nil {
		t.Fatal(err)
	}
	edit(t, c, "web-internal", func(route map[string]any) {
		refs := mapsIn(rulesOf(route)[0]["backendRefs"])
		refs[0]["weight"], refs[1]["weight"] = int64(10), int64(90)
	})
	got, err := router.Observe(t.Context(), target("shop"))
	if err != nil || got.Canary != 90 || got.Stable != 10 || got.Uniform {
		t.Errorf("got %+v, %v", got, err)
	}
}

// An abort writes to the routes that can be used, and says which can't.
func TestAbortReachesTheOtherRoute(t *testing.T) {
	c, router := start(t)
	if err := router.Apply(t.Context(), target("shop"), split(50)); err != nil {
		t.Fatal(err)
	}
	edit(t, c, "web", func(route map[string]any) { // the canary leaves the first route
		for _, rule := range rulesOf(route) {
			rule["backendRefs"] = []any{map[string]any{"name": "web-stable", "port": int64(80)}}
		}
	})
	var invalid *routers.InvalidError
	if err := router.Apply(t.Context(), target("shop"), split(75)); !errors.As(err, &invalid) {
		t.Fatalf("raising: want an InvalidError, got %v", err)
	}
	internal := target("shop")
	internal.Routing.GatewayAPI.HTTPRoutes = internal.Routing.GatewayAPI.HTTPRoutes[1:]
	if got, err := router.Observe(t.Context(), internal); err != nil || got.Canary != 50 {
		t.Errorf("a route was raised beside one that can't be used: %+v, %v", got, err)
	}
	if err := router.Apply(t.Context(), target("shop"), split(0)); !errors.As(err, &invalid) || invalid.Name.Name != "web" {
		t.Errorf("aborting: want an InvalidError about web, got %v", err)
	}
	if got, err := router.Observe(t.Context(), internal); err != nil || got.Canary != 0 {
		t.Errorf("the abort didn't reach the other route: %+v, %v", got, err)
	}
	if err := router.Release(t.Context(), target("shop")); err != nil {
		t.Errorf("releasing: %v", err)
	}
}

func TestObserveCarriesTheVerification(t *testing.T) {
	c, router := start(t)
	for _, name := range []string{"web", "web-internal"} {
		edit(t, c, name, func(route map[string]any) {
			ref := route["spec"].(map[string]any)["parentRefs"].([]any)[0]
			status := "True"
			if name == "web-internal" {
				status = "False"
			}
			condition := func(kind, status string) any {
				return map[string]any{"type": kind, "status": status, "reason": "Because", "observedGeneration": int64(1)}
			}
			route["metadata"].(map[string]any)["generation"] = int64(1)
			route["status"] = map[string]any{"parents": []any{map[string]any{"parentRef": ref,
				"conditions": []any{condition("Accepted", "True"), condition("ResolvedRefs", status)}}}}
		})
	}
	got, err := router.Observe(t.Context(), target("shop"))
	if err != nil || got.Verification != routers.VerificationPending {
		t.Fatalf("got %+v, %v", got, err)
	}
	if want := "HTTPRoute web-internal: Gateway internal: ResolvedRefs is False: Because"; got.Message != want {
		t.Errorf("message %q, want %q", got.Message, want)
	}
}

func TestSettingsThatCannotBeUsed(t *testing.T) {
	_, router := start(t)
	cases := map[string]*v1alpha1.RolloutTrafficRouting{
		"other namespace": {GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web", Namespace: "other"}},
		"no route":        {GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{}},
		"not set":         {},
		"nothing":         nil,
	}
	for name, routing := range cases {
		t.Run(name, func(t *testing.T) {
			tgt := target("shop")
			tgt.Routing = routing
			var config *routers.ConfigError
			if _, err := router.Observe(t.Context(), tgt); !errors.As(err, &config) {
				t.Errorf("observing: %v", err)
			}
			if err := router.Apply(t.Context(), tgt, split(0)); !errors.As(err, &config) {
				t.Errorf("applying: %v", err)
			}
			if got := len(router.Claims(tgt)); got != 2 {
				t.Errorf("%d claims, want those on the two Services", got)
			}
		})
	}
}

// noCRDs is a reader of a cluster without the Gateway API.
type noCRDs struct{ client.Reader }

func (noCRDs) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: Group, Kind: Kind}, SearchedVersions: []string{"v1"}}
}

func TestGatewayAPINotInstalled(t *testing.T) {
	c, _ := fakeCluster(t)
	_, err := New(c, noCRDs{}).Observe(t.Context(), target("shop"))
	var missing *routers.NotFoundError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "install the CRDs of the Gateway API") {
		t.Errorf("got %v", err)
	}
}

// Header routes are limited to the routes that ask for them; mirrors are not.
func TestHeaderRoutesOfChosenRoutes(t *testing.T) {
	c, router := start(t)
	chosen := target("shop")
	chosen.Routing.GatewayAPI.HTTPRoutes[1].UseHeaderRoutes = true
	s := with(0, toCanary("testers", tester), mirrored("shadow", 10, "GET", ""))
	if err := router.Apply(t.Context(), chosen, s); err != nil {
		t.Fatal(err)
	}
	got, err := router.Observe(t.Context(), chosen)
	if err != nil || !got.HasRoutes(s.Routes) {
		t.Errorf("saw %+v, %v", got, err)
	}
	for name, want := range map[string]int{"web": 1, "web-internal": 2} {
		edit(t, c, name, func(route map[string]any) {
			all, err := noted(route)
			if err != nil || len(all["web"]) != want {
				t.Errorf("%s holds %+v, %v", name, all, err)
			}
		})
	}
	if got, err := router.Observe(t.Context(), target("shop")); err != nil || !got.RoutesDiffer {
		t.Errorf("header routes are for every route, and one has none: %+v, %v", got, err)
	}
}

// Managed routes that can't be carried out in one route are in none.
func TestManagedRoutesInAllRoutesOrNone(t *testing.T) {
	c, router := start(t)
	edit(t, c, "web-internal", func(route map[string]any) {
		rule := rulesOf(route)[0]
		rule["matches"] = []any{map[string]any{"headers": []any{map[string]any{"name": "x-tester", "type": regex, "value": "a.*"}}}}
	})
	s := with(0, toCanary("testers", tester))
	var invalid *routers.InvalidError
	if err := router.Apply(t.Context(), target("shop"), s); !errors.As(err, &invalid) || invalid.Name.Name != "web-internal" {
		t.Fatalf("want an InvalidError about web-internal, got %v", err)
	}
	if got, err := router.Observe(t.Context(), target("shop")); err != nil || !got.NoRoutes() {
		t.Errorf("saw %+v, %v", got, err)
	}
	if err := router.Apply(t.Context(), target("shop"), routers.Split{Stable: 100, Routes: []routers.ManagedRoute{{Name: "x"}}}); err == nil {
		t.Error("a managed route of no kind was applied")
	}
}
