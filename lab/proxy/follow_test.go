package proxy

import (
	"context"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/dialtable"
)

var source = RouteSource{Namespace: "shop", Name: "web", Gateway: "lab"}

func newAdminServer(t *testing.T, g *Gateway, httpRoute string) string {
	t.Helper()
	server := httptest.NewServer(g.AdminHandler(httpRoute))
	t.Cleanup(server.Close)
	return server.URL
}

func route(generation int64, stable, canary int32) *gatewayv1.HTTPRoute {
	ref := func(name string, weight int32) gatewayv1.HTTPBackendRef {
		var r gatewayv1.HTTPBackendRef
		r.Name, r.Port, r.Weight = gatewayv1.ObjectName(name), new(gatewayv1.PortNumber(80)), &weight
		return r
	}
	r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: generation}}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "lab"}}
	r.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{ref("stable", stable), ref("canary", canary)}}}
	return r
}

// fakeCluster is an API server with the two Services and no ready endpoints, so that
// the gateway answers 503 for each of them.
func fakeCluster(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stable", "canary"} {
		objects = append(objects, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&gatewayv1.HTTPRoute{}).
		WithObjects(objects...).WithInterceptorFuncs(hooks).Build()
}

func endpoints(service, address string, port int32) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: &port}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}

func servedWeights(g *Gateway) (weights []int64) {
	for _, b := range g.Table().Rules()[0].Backends {
		weights = append(weights, b.Weight)
	}
	return weights
}

func TestStatusIsWrittenAfterTheTableIsServed(t *testing.T) {
	g := NewGateway(nil, nil)
	writes := 0
	api := fakeCluster(t, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			if g.Table() == nil || len(g.Table().Rules()) == 0 || servedWeights(g)[1] != 25 {
				t.Error("the status was written before the weights were served")
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}, route(7, 75, 25))

	for range 3 {
		if err := g.Sync(t.Context(), api, api, source); err != nil {
			t.Fatal(err)
		}
	}
	if writes != 1 {
		t.Errorf("%d status writes for one change, want 1", writes)
	}
	var got gatewayv1.HTTPRoute
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Parents) != 1 {
		t.Fatalf("parents: %+v", got.Status.Parents)
	}
	for _, kind := range []string{"Accepted", "ResolvedRefs"} {
		c := meta.FindStatusCondition(got.Status.Parents[0].Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != 7 {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}

// What can't be served is not reported as served.
func TestNoStatusForAGenerationThatIsNotServed(t *testing.T) {
	g := NewGateway(nil, nil)
	bad := route(2, -1, 25) // the API server would refuse it; the split does too
	api := fakeCluster(t, interceptor.Funcs{}, bad)
	if err := g.Sync(t.Context(), api, api, source); err == nil {
		t.Fatal("a negative weight was served")
	}
	var got gatewayv1.HTTPRoute
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(bad), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Parents) != 0 {
		t.Errorf("parents: %+v", got.Status.Parents)
	}
}

func TestStatusConflictIsReturnedAndTheTableStands(t *testing.T) {
	g := NewGateway(nil, nil)
	api := fakeCluster(t, interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "httproutes"}, "web", nil)
		},
	}, route(1, 60, 40))
	if err := g.Sync(t.Context(), api, api, source); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	if got := servedWeights(g); got[0] != 60 || got[1] != 40 {
		t.Errorf("weights %v", got)
	}
}

func TestSyncFollowsTheCluster(t *testing.T) {
	pod := version(t, "v1")
	var pods dialtable.Table
	pods.Set(map[string]string{"10.64.0.7:8080": pod})
	g := NewGateway(pods.DialContext, nil)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	api := fakeCluster(t, interceptor.Funcs{}, route(1, 1, 0))
	sync := func() {
		t.Helper()
		if err := g.Sync(t.Context(), api, api, source); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, code int) {
		t.Helper()
		if got := get(t, server.URL); got.code != code {
			t.Errorf("%s: %d %q, want %d", when, got.code, got.body, code)
		}
	}
	sync()
	expect("without endpoints", 503)
	slice := endpoints("stable", "10.64.0.7", 8080)
	must(t, api.Create(t.Context(), slice))
	sync()
	expect("with an endpoint", 200)
	must(t, api.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stable"}}))
	sync()
	expect("without the Service", 500)

	var live gatewayv1.HTTPRoute
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, &live))
	if c := meta.FindStatusCondition(live.Status.Parents[0].Conditions, "ResolvedRefs"); c.Status != metav1.ConditionFalse || c.Reason != "BackendNotFound" {
		t.Errorf("ResolvedRefs: %+v", c)
	}
	live.Spec.ParentRefs[0].Name = "another"
	must(t, api.Update(t.Context(), &live))
	sync()
	expect("for another gateway", 404)
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(&live), &live))
	if len(live.Status.Parents) != 0 {
		t.Errorf("parents after leaving: %+v", live.Status.Parents)
	}
	must(t, api.Delete(t.Context(), &live))
	sync()
	expect("without the route", 404)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
