package proxy

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/lab/dialtable"
)

var shared = clustertest.New(cluster.Options{}, (*cluster.Cluster).InstallGatewayAPI)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

// follow starts a gateway that obeys the route "web" of a new namespace with two
// Services, each with a pod that names itself v1 or v2.
func follow(t *testing.T) (api client.Client, namespace, url string) {
	t.Helper()
	c := shared.Cluster(t)
	namespace = clustertest.Namespace(t, c)
	scheme, err := NewScheme()
	must(t, err)
	api, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)
	var pods dialtable.Table
	pods.Set(map[string]string{"10.64.0.1:8080": version(t, "v1"), "10.64.0.2:8080": version(t, "v2"), "10.64.0.3:8080": version(t, "v3")})
	for service, address := range map[string]string{"stable": "10.64.0.1", "canary": "10.64.0.2"} {
		must(t, api.Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}))
		slice := endpoints(service, address, 8080)
		slice.Namespace = namespace
		must(t, api.Create(t.Context(), slice))
	}
	g := NewGateway(pods.DialContext, nil)
	server := httptest.NewServer(g)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- g.Follow(ctx, RouteSource{REST: c.RESTConfig(), Namespace: namespace, Name: "web", Gateway: "lab"})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Follow: %v", err)
		}
		server.Close()
		g.Close()
	})
	return api, namespace, server.URL
}

// served waits until the route's status says that the generation is served.
func served(t *testing.T, api client.Client, route *gatewayv1.HTTPRoute) {
	t.Helper()
	clustertest.Eventually(t, 30*time.Second, func() error {
		var live gatewayv1.HTTPRoute
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(route), &live); err != nil {
			return err
		}
		for _, parent := range live.Status.Parents {
			accepted := meta.FindStatusCondition(parent.Conditions, "Accepted")
			resolved := meta.FindStatusCondition(parent.Conditions, "ResolvedRefs")
			if accepted.ObservedGeneration == route.Generation && resolved.ObservedGeneration == route.Generation && resolved.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("generation %d is not served yet: %+v", route.Generation, live.Status)
	})
}

// From the moment at which the status names a generation, every request follows
// its weights, however often they change.
func TestStatusOnARealAPIServerMeansServed(t *testing.T) {
	api, namespace, url := follow(t)
	web := route(0, 100, 0)
	web.Namespace = namespace
	must(t, api.Create(t.Context(), web))
	served(t, api, web)
	for _, canary := range []int32{0, 25, 50, 100, 10} {
		var live gatewayv1.HTTPRoute
		must(t, api.Get(t.Context(), client.ObjectKeyFromObject(web), &live))
		stable := 100 - canary
		live.Spec.Rules[0].BackendRefs[0].Weight, live.Spec.Rules[0].BackendRefs[1].Weight = &stable, &canary
		must(t, api.Update(t.Context(), &live))
		served(t, api, &live)
		counts := map[string]int32{}
		for range 100 {
			counts[get(t, url).version]++
		}
		if counts["v1"] != stable || counts["v2"] != canary {
			t.Errorf("canary weight %d: %v of 100", canary, counts)
		}
	}
}

// In steady state the gateway writes nothing.
func TestNoWritesInSteadyState(t *testing.T) {
	api, namespace, url := follow(t)
	web := route(0, 75, 25)
	web.Namespace = namespace
	must(t, api.Create(t.Context(), web))
	served(t, api, web)
	var before gatewayv1.HTTPRoute
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(web), &before))

	// An endpoint that comes and goes makes the gateway sync twice. Syncs are one
	// after the other, so when the second serves, the first is over.
	extra := endpoints("stable", "10.64.0.3", 8080)
	extra.Namespace, extra.Name = namespace, "stable-extra"
	must(t, api.Create(t.Context(), extra))
	reaches(t, url, "v3", true)
	must(t, api.Delete(t.Context(), extra))
	reaches(t, url, "v3", false)
	var after gatewayv1.HTTPRoute
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(web), &after))
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the route was written again: %+v", after.Status)
	}
}

// reaches waits until some of a few requests, or none, are answered by a version.
func reaches(t *testing.T, url, version string, want bool) {
	t.Helper()
	clustertest.Eventually(t, 30*time.Second, func() error {
		got := false
		for range 8 {
			got = get(t, url).version == version || got
		}
		if got != want {
			return fmt.Errorf("%s answers: %v, want %v", version, got, want)
		}
		return nil
	})
}
