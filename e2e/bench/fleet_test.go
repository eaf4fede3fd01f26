package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/node"
	"github.com/pushback-dev/pushback/e2e/ports"
	"github.com/pushback-dev/pushback/e2e/world"
)

const (
	controller = "controller"
	podsEach   = 4
	// patience bounds each phase of a benchmark.
	patience = 30 * time.Minute
)

// fleet is a world with many Rollouts in one namespace.
type fleet struct {
	*testing.B
	*world.World
	ctx       context.Context
	namespace string
	size      int
	metrics   string // the controller's address
}

// fleetOptions are what a benchmark asks for beside the Rollouts.
type fleetOptions struct {
	named []client.Object // what the Rollouts name
	flags []string        // of the controller
	// countWrites makes the API server write down every write before it answers,
	// which costs it a good part of its time.
	countWrites bool
}

// newFleet brings up size Rollouts of one version, each with two Services and an
// HTTPRoute. The controller runs with its default limits.
func newFleet(b *testing.B, size int, strategy v1alpha1.CanaryStrategy, o fleetOptions) *fleet {
	b.Helper()
	dir, err := os.MkdirTemp("", "pushback-bench-")
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	w, err := world.New(ctx, world.Options{Dir: dir, Hollow: &node.Hollow{}, AuditWrites: o.countWrites})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Stop(); err != nil {
			b.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	lease, err := ports.Take()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { lease.Release() })
	f := &fleet{B: b, World: w, ctx: ctx, namespace: "fleet", size: size, metrics: lease.Address()}
	f.must(w.AddTenant(ctx, f.namespace))
	f.must(w.StartController(ctx, controller, append([]string{"--leader-elect=false", "--metrics-addr=" + f.metrics}, o.flags...)...))
	for _, object := range o.named {
		object.SetNamespace(f.namespace)
		f.must(f.Client.Create(ctx, object))
	}
	f.each(func(i int) error { return f.create(name(i), strategy) })
	f.await("healthy", func(o *v1alpha1.Rollout) bool { return o.Status.Phase == v1alpha1.RolloutPhaseHealthy })
	if o.countWrites {
		f.quiet()
	}
	return f
}

func name(i int) string { return fmt.Sprintf("web-%04d", i) }

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// each does something for all of the fleet, some at a time.
func (f *fleet) each(do func(i int) error) {
	f.Helper()
	const atOnce = 16
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	var first sync.Once
	var failed error
	for i := range f.size {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := do(i); err != nil {
				first.Do(func() { failed = err })
			}
		})
	}
	group.Wait()
	f.must(failed)
}

func (f *fleet) create(name string, strategy v1alpha1.CanaryStrategy) error {
	strategy.StableService, strategy.CanaryService = name+"-stable", name+"-canary"
	strategy.TrafficRouting = &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: name}}
	replicas := int32(podsEach)
	objects := []client.Object{
		service(name, strategy.StableService), service(name, strategy.CanaryService), route(name),
		&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RolloutSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, "v1"), Strategy: v1alpha1.RolloutStrategy{Canary: &strategy},
		}},
	}
	for _, o := range objects {
		o.SetNamespace(f.namespace)
		if err := f.Client.Create(f.ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

func service(app, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
}

func route(name string) *gatewayv1.HTTPRoute {
	port := gatewayv1.PortNumber(80)
	backend := func(side string) gatewayv1.HTTPBackendRef {
		ref := gatewayv1.HTTPBackendRef{}
		ref.Name, ref.Port = gatewayv1.ObjectName(name+"-"+side), &port
		return ref
	}
	out := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: name}}
	out.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "gateway"}}
	out.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend("stable"), backend("canary")}}}
	return out
}

func template(app, version string) *runtime.RawExtension {
	text := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}},"spec":{"containers":[{"name":"web","image":"example.test/app:%s"}]}}`, app, version)
	return &runtime.RawExtension{Raw: []byte(text)}
}

// release gives every Rollout a new version.
func (f *fleet) release(version string) {
	f.Helper()
	f.each(func(i int) error {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template(name(i), version)}})
		if err != nil {
			return err
		}
		o := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name(i)}}
		return f.Client.Patch(f.ctx, o, client.RawPatch("application/merge-patch+json", patch))
	})
}

// await waits until all are as wanted, and says how it goes.
func (f *fleet) await(what string, is func(*v1alpha1.Rollout) bool) {
	f.Helper()
	said := time.Now()
	err := wait.PollUntilContextTimeout(f.ctx, 250*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.RolloutList
		if err := f.Client.List(ctx, &list, client.InNamespace(f.namespace)); err != nil {
			return false, err
		}
		count := 0
		for i := range list.Items {
			if is(&list.Items[i]) && list.Items[i].Status.ObservedGeneration == list.Items[i].Generation {
				count++
			}
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d are %s\n", count, f.size, what)
		}
		return count == f.size, nil
	})
	if err != nil {
		f.Fatalf("waiting until all are %s: %v; the log is %s", what, err, f.ControllerLog(controller))
	}
}

// written are the controller's writes so far, by resource. Events and Leases are
// not among them.
func (f *fleet) written() map[string]int {
	f.Helper()
	writes, err := f.Cluster.Writes()
	f.must(err)
	out := map[string]int{}
	for _, w := range writes {
		if w.Agent == "" || w.DryRun() || w.User != "system:serviceaccount:pushback-system:pushback" || w.Resource == "subjectaccessreviews" {
			continue
		}
		resource := w.Resource
		if w.Subresource != "" {
			resource += "." + w.Subresource
		}
		out[resource]++
		out["all"]++
	}
	return out
}

// requests are those that the controller has sent to the API server so far, reads too.
func (f *fleet) requests() float64 { return f.metric("rest_client_requests_total", "", "") }

// passes are those that the controller has made over Rollouts so far.
func (f *fleet) passes() float64 {
	return f.metric("controller_runtime_reconcile_total", "controller", "rollout")
}

// metric sums the series of a counter of the controller that have a label, or all of them.
func (f *fleet) metric(name, label, value string) float64 {
	f.Helper()
	response, err := http.Get("http://" + f.metrics + "/metrics")
	f.must(err)
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	f.must(err)
	sum := 0.0
	for _, metric := range families[name].GetMetric() {
		has := label == ""
		for _, pair := range metric.GetLabel() {
			has = has || pair.GetName() == label && pair.GetValue() == value
		}
		if has {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}

// quiet waits until nothing has been written for a while.
func (f *fleet) quiet() {
	f.Helper()
	const still = 40 * time.Second // longer than the delay after which old pods go
	last, since := -1, time.Now()
	err := wait.PollUntilContextTimeout(f.ctx, time.Second, patience, true, func(context.Context) (bool, error) {
		if now := f.written()["all"]; now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > still, nil
	})
	f.must(err)
}

// gauge is a Prometheus API that answers every query with one number, and notes
// when it first gave the bad one to whom.
type gauge struct {
	*httptest.Server
	mu    sync.Mutex
	value string
	bad   map[string]time.Time // by query
}

func newGauge() *gauge {
	g := &gauge{value: "1", bad: map[string]time.Time{}}
	g.Server = httptest.NewServer(http.HandlerFunc(g.answer))
	return g
}

func (g *gauge) answer(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	g.mu.Lock()
	value := g.value
	g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,%q]}]}}`, time.Now().Unix(), value)
	if value == "1" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, noted := g.bad[query]; !noted {
		g.bad[query] = time.Now()
	}
}

func (g *gauge) turnBad() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.value = "0"
}
