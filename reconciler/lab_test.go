package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/e2e/cluster/fakemetrics"
	"github.com/pushback-dev/pushback/e2e/node"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/gatewayapi"
	"github.com/pushback-dev/pushback/templatehash"
)

var (
	// loads are what the HPA controller is told of pods.
	loads  = &fakemetrics.Server{}
	shared = clustertest.New(cluster.Options{ControllerManagerArgs: fakemetrics.ControllerManagerArgs()},
		(*cluster.Cluster).InstallGatewayAPI, clustertest.CRDs("manifests/crd"), startNode, loads.Install)
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // what goes wrong is in statuses, which the tests read
	os.Exit(shared.Run(m))
}

// startNode makes every pod Ready at once, until the process ends.
func startNode(c *cluster.Cluster, ctx context.Context) error {
	n, err := node.New(node.Options{Config: c.RESTConfig(), Hollow: &node.Hollow{}})
	if err != nil {
		return err
	}
	go func() { _ = n.Run(ctx) }() // pods that never become ready fail the tests
	return nil
}

const patience = 60 * time.Second

// lab is a namespace, and a manager that watches it.
type lab struct {
	*testing.T
	client    client.Client // without a cache
	namespace string
	manager   manager.Manager
	// reconciler is the one under test: run by the manager after watch, or by hand.
	reconciler *Reconciler
	// stop ends the manager and waits for it; nil before it was started.
	stop func()
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	return labIn(t, clustertest.Namespace(t, shared.Cluster(t)))
}

// labIn is one more controller in a namespace, with options of its manager.
func labIn(t *testing.T, namespace string, options ...func(*ctrl.Options)) *lab {
	t.Helper()
	c := shared.Cluster(t)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(gatewayv1.Install(scheme))
	l := &lab{T: t, namespace: namespace}
	var err error
	if l.client, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	settings := ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{l.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
	for _, option := range options {
		option(&settings)
	}
	if l.manager, err = ctrl.NewManager(c.RESTConfig(), settings); err != nil {
		t.Fatal(err)
	}
	l.reconciler = &Reconciler{
		Client: l.manager.GetClient(), Live: l.manager.GetAPIReader(), Events: events.NewFakeRecorder(1000),
		RouterFor: func(tr *v1alpha1.RolloutTrafficRouting) (routers.Router, error) {
			if settings, err := routers.GatewayAPI(tr); err != nil || settings == nil {
				return nil, err
			}
			return gatewayapi.New(l.manager.GetClient(), l.manager.GetAPIReader()), nil
		},
		Now: func() time.Time { return metav1.Now().Rfc3339Copy().Time },
	}
	return l
}

// watch lets the manager run the reconciler.
func (l *lab) watch() {
	l.Helper()
	if err := l.reconciler.SetupWithManager(l.manager, controller.Options{MaxConcurrentReconciles: 2}, gatewayapi.GroupVersionKind); err != nil {
		l.Fatal(err)
	}
	l.start()
}

// byHand starts the cache alone: the test makes the passes.
func (l *lab) byHand() {
	l.Helper()
	for _, owned := range []client.Object{&appsv1.ReplicaSet{}, &v1alpha1.AnalysisRun{}, &v1alpha1.Experiment{}} {
		if err := l.manager.GetFieldIndexer().IndexField(l.Context(), owned, ownerIndex, ownerOf); err != nil {
			l.Fatal(err)
		}
	}
	if err := indexServices(l.Context(), l.manager.GetFieldIndexer()); err != nil {
		l.Fatal(err)
	}
	l.start()
	if !l.manager.GetCache().WaitForCacheSync(l.Context()) {
		l.Fatal("the cache doesn't sync")
	}
}

func (l *lab) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.manager.Start(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.Error(err)
		}
	})
	l.Cleanup(l.stop)
}

func (l *lab) create(objects ...client.Object) {
	l.Helper()
	for _, object := range objects {
		object.SetNamespace(l.namespace)
		if err := l.client.Create(l.Context(), object); err != nil {
			l.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

func (l *lab) get(name string, into client.Object) error {
	return l.client.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, into)
}

func (l *lab) rollout() *v1alpha1.Rollout {
	l.Helper()
	rollout := &v1alpha1.Rollout{}
	if err := l.get("web", rollout); err != nil {
		l.Fatal(err)
	}
	return rollout
}

// change edits the Rollout, and its status.
func (l *lab) change(edit func(*v1alpha1.Rollout)) {
	l.Helper()
	clustertest.Eventually(l, patience, func() error {
		rollout := l.rollout()
		edit(rollout)
		return l.client.Update(l.Context(), rollout)
	})
}

// reach waits until the Rollout is as wanted, and returns it.
func (l *lab) reach(what string, timeout time.Duration, is func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	l.Helper()
	var rollout *v1alpha1.Rollout
	clustertest.Eventually(l, timeout, func() error {
		if rollout = l.rollout(); is(rollout) {
			return nil
		}
		return fmt.Errorf("not %s: phase %s, step %s, message %q", what, rollout.Status.Phase, rollout.Status.Step, rollout.Status.Message)
	})
	return rollout
}

func healthy(r *v1alpha1.Rollout) bool {
	return r.Status.Phase == v1alpha1.RolloutPhaseHealthy && r.Status.ObservedGeneration == r.Generation
}

// pass makes one pass by hand.
func (l *lab) pass() (ctrl.Result, error) {
	return l.reconciler.Reconcile(l.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: l.namespace, Name: "web"}})
}

// passesUntil makes passes by hand, each as soon as the last one asked for it.
func (l *lab) passesUntil(what string, is func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	l.Helper()
	var rollout *v1alpha1.Rollout
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			l.Fatal(err)
		}
		if rollout = l.rollout(); is(rollout) {
			return nil
		}
		return fmt.Errorf("not %s: phase %s, step %s, message %q", what, rollout.Status.Phase, rollout.Status.Step, rollout.Status.Message)
	})
	return rollout
}

func (l *lab) sets() []appsv1.ReplicaSet {
	l.Helper()
	var list appsv1.ReplicaSetList
	if err := l.client.List(l.Context(), &list, client.InNamespace(l.namespace)); err != nil {
		l.Fatal(err)
	}
	return list.Items
}

func podTemplate(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
	}
}

func rawTemplate(template map[string]any) *runtime.RawExtension {
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // maps of strings
	}
	return &runtime.RawExtension{Raw: text}
}

// hashOf is the hash of a template as it is declared.
func (l *lab) hashOf(template map[string]any) string {
	l.Helper()
	hash, err := templatehash.Hash(templatehash.Version, rawTemplate(template).Raw)
	if err != nil {
		l.Fatal(err)
	}
	return hash
}

// webRollout is one of two pods and these steps, by pod counts.
func webRollout(steps ...v1alpha1.CanaryStep) *v1alpha1.Rollout {
	return &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1alpha1.RolloutSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: rawTemplate(podTemplate("web:1")),
			Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{Steps: steps}},
		},
	}
}

// routedRollout routes through the HTTPRoute web.
func routedRollout(steps ...v1alpha1.CanaryStep) *v1alpha1.Rollout {
	rollout := webRollout(steps...)
	canary := rollout.Spec.Strategy.Canary
	canary.StableService, canary.CanaryService = "web-stable", "web-canary"
	canary.TrafficRouting = &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}}
	return rollout
}

func webService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func webRoute() *gatewayv1.HTTPRoute {
	backend := func(name string) gatewayv1.HTTPBackendRef {
		ref := gatewayv1.HTTPBackendRef{}
		ref.Name, ref.Port = gatewayv1.ObjectName(name), ptr.To[gatewayv1.PortNumber](80)
		return ref
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "gateway"}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend("web-stable"), backend("web-canary")}}}
	return route
}

// routed creates a Rollout with a router and all that it names.
func (l *lab) routed(steps ...v1alpha1.CanaryStep) {
	l.Helper()
	l.create(webService("web-stable"), webService("web-canary"), webRoute(), routedRollout(steps...))
}

// weights of the canary in the live route.
func (l *lab) canaryWeight() int32 {
	l.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := l.get("web", route); err != nil {
		l.Fatal(err)
	}
	weight := route.Spec.Rules[0].BackendRefs[1].Weight
	if weight == nil {
		return 1
	}
	return *weight
}

func setWeight(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }

var untilPromoted = v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
