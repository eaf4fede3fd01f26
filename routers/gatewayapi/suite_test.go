package gatewayapi

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/routertest"
)

// suite runs against any cluster.
func suite(cluster func(t *testing.T) (client.Client, string)) routertest.Suite {
	return routertest.Suite{
		New:     func(c client.Client, live client.Reader) routers.Router { return New(c, live) },
		Cluster: cluster,
		Target:  target,
		Objects: declared,
		Can:     routers.GatewayAPICan,
		Strip:   stripWeights,
		Edit: func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			spec["hostnames"] = []any{"shop.example.com", "www.example.com"}
			for _, rule := range spec["rules"].([]any) {
				if rule := rule.(map[string]any); rule["name"] == "api" {
					rule["timeouts"] = map[string]any{"request": "9s"}
				}
			}
		},
	}
}

func target(namespace string) routers.Target {
	return routers.Target{
		Rollout:       types.NamespacedName{Namespace: namespace, Name: "web"},
		StableService: "web-stable",
		CanaryService: "web-canary",
		Routing: &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{
			HTTPRoutes: []v1alpha1.GatewayAPIRoute{{Name: "web"}, {Name: "web-internal"}},
		}},
	}
}

func declared(namespace string) []*unstructured.Unstructured {
	data, err := os.ReadFile("testdata/suite.yaml")
	if err != nil {
		panic(err)
	}
	var out []*unstructured.Unstructured
	for _, document := range strings.Split(string(data), "\n---\n") {
		object := &unstructured.Unstructured{Object: parse(panicker{}, document)}
		object.SetNamespace(namespace)
		out = append(out, object)
	}
	return out
}

// panicker lets parse serve where there is no test at hand.
type panicker struct{ testing.TB }

func (panicker) Helper()           {}
func (panicker) Fatal(args ...any) { panic(args) }

// stripWeights takes out the weights in rules that name both Services, by its own
// reading of the rules, and the hash in selectors.
func stripWeights(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	if selector, ok := spec["selector"].(map[string]any); ok {
		delete(selector, v1alpha1.TemplateHashLabel)
	}
	rules, _ := spec["rules"].([]any)
	for _, rule := range rules {
		ours := map[string]map[string]any{}
		for _, ref := range rule.(map[string]any)["backendRefs"].([]any) {
			ref := ref.(map[string]any)
			if name := ref["name"].(string); name == "web-stable" || name == "web-canary" {
				ours[name] = ref
			}
		}
		if len(ours) == 2 {
			delete(ours["web-stable"], "weight")
			delete(ours["web-canary"], "weight")
		}
	}
}

// fakeCluster keeps objects as they come: HTTPRoute isn't in its scheme, so that
// it can't drop fields.
func fakeCluster(*testing.T) (client.Client, string) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build(), "shop"
}

func TestConformance(t *testing.T) { suite(fakeCluster).Run(t) }

// weightsOnly is a router without capabilities.
type weightsOnly struct{ *Router }

func (r weightsOnly) Apply(ctx context.Context, t routers.Target, s routers.Split) error {
	if err := routers.Refuse("weightsOnly", s); err != nil {
		return err
	}
	return r.Router.Apply(ctx, t, s)
}

// The suite holds for a router that can do nothing beside two weights, too.
func TestConformanceWithoutCapabilities(t *testing.T) {
	s := suite(fakeCluster)
	s.Can = nil
	s.New = func(c client.Client, live client.Reader) routers.Router { return weightsOnly{New(c, live)} }
	s.Run(t)
}
