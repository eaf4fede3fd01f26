package gatewayapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/dialtable"
	"github.com/pushback-dev/pushback/lab/proxy"
	"github.com/pushback-dev/pushback/lab/proxy/httproute"
	"github.com/pushback-dev/pushback/routers"
)

// shop is a gateway in front of the two versions of a Service.
type shop struct {
	gateway *proxy.Gateway
	objects httproute.Objects
	url     string
	seen    map[string]*atomic.Int64 // requests by backend, copies too
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{seen: map[string]*atomic.Int64{}}
	addresses := map[string]string{}
	for i, name := range []string{"web-stable", "web-canary"} {
		count := &atomic.Int64{}
		s.seen[name] = count
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			count.Add(1)
			fmt.Fprintf(w, "%s x-env=%s", name, r.Header.Get("X-Env"))
		}))
		t.Cleanup(server.Close)
		address := fmt.Sprintf("10.64.0.%d", i)
		addresses[address+":8080"] = server.Listener.Addr().String()
		port, portName := int32(8080), ""
		s.objects.Services = append(s.objects.Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		s.objects.Slices = append(s.objects.Slices, discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
		})
	}
	var pods dialtable.Table
	pods.Set(addresses)
	s.gateway = proxy.NewGateway(pods.DialContext, nil)
	server := httptest.NewServer(s.gateway)
	t.Cleanup(func() { server.Close(); s.gateway.Close() })
	s.url = server.URL
	return s
}

// serve makes the gateway obey a route.
func (s *shop) serve(t *testing.T, route map[string]any) {
	t.Helper()
	text, err := json.Marshal(route)
	if err != nil {
		t.Fatal(err)
	}
	var typed gatewayv1.HTTPRoute
	if err := json.Unmarshal(text, &typed); err != nil {
		t.Fatal(err)
	}
	compiled := httproute.Compile(&typed, s.objects)
	if len(compiled.Refused)+len(compiled.Unresolved) > 0 {
		t.Fatalf("the gateway can't serve it: %+v %+v", compiled.Refused, compiled.Unresolved)
	}
	if err := s.gateway.Serve(compiled.Table); err != nil {
		t.Fatal(err)
	}
}

// ask makes a hundred requests and counts the answers; copied is how many copies
// the canary got beside.
func (s *shop) ask(t *testing.T, method string, headers ...string) (answers map[string]int64, copied int64) {
	t.Helper()
	before := s.seen["web-canary"].Load()
	answers = map[string]int64{}
	for range 100 {
		r, err := http.NewRequestWithContext(t.Context(), method, s.url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.HasSuffix(string(body), "x-env=prod") {
			t.Fatalf("answered %q, %v: the filter of the rule is missing", body, err)
		}
		name, _, _ := strings.Cut(string(body), " ")
		answers[name]++
	}
	s.gateway.Close() // waits for copies
	return answers, s.seen["web-canary"].Load() - before - answers["web-canary"]
}

// Real requests: testers reach the canary at any weight, a mirror copies exactly
// its share and nothing is answered by it, everybody else follows the weight.
func TestRequestsFollowManagedRoutes(t *testing.T) {
	s := newShop(t)
	route := parse(t, "metadata: {name: web, namespace: shop}\nspec: {rules: [{filters: ["+envFilter+"], backendRefs: [{name: web-stable, port: 80, weight: 100}, {name: web-canary, port: 80, weight: 0}]}]}")
	all := []routers.ManagedRoute{
		toCanary("testers", header("x-build", routers.MatchPrefix, "v1.2"), header("x-tester", routers.MatchRegex, "y(es)?")),
		mirrored("shadow", 30, "POST", ""),
	}
	expect := func(what string, wantCanary, wantCopied int64, method string, headers ...string) {
		t.Helper()
		answers, copied := s.ask(t, method, headers...)
		if answers["web-canary"] != wantCanary || copied != wantCopied {
			t.Errorf("%s: the canary answered %d of 100 and got %d copies, want %d and %d", what, answers["web-canary"], copied, wantCanary, wantCopied)
		}
	}
	for _, canary := range []int32{0, 20, 75} {
		route = must(t, route, with(canary, all...))
		s.serve(t, route)
		at := fmt.Sprintf("at %d", canary)
		expect(at+", anybody", int64(canary), 0, "GET")
		expect(at+", testers", 100, 0, "GET", "X-Build", "v1.2.3", "X-Tester", "yes")
		expect(at+", testers' posts", 100, 0, "POST", "X-Build", "v1.2.3", "X-Tester", "y")
		expect(at+", another build", int64(canary), 0, "GET", "X-Build", "v1x2", "X-Tester", "yes")
		expect(at+", posts", 0, 30, "POST")
	}
	route = must(t, route, split(0))
	s.serve(t, route)
	expect("after an abort, testers", 0, 0, "GET", "X-Build", "v1.2.3", "X-Tester", "yes")
	expect("after an abort, posts", 0, 0, "POST")
}
