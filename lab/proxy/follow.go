package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/httproute"
	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// RouteSource names the HTTPRoute that a gateway obeys.
type RouteSource struct {
	REST      *rest.Config
	Namespace string
	Name      string
	// Gateway is the name that the route's parentRefs call this gateway by.
	// Empty means that every parentRef to a Gateway means this one.
	Gateway string
}

// retryAfter is how long after a failed sync the next is tried.
const retryAfter = time.Second

// NewScheme knows the kinds that Follow and Sync need.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		return nil, fmt.Errorf("scheme of the gateway: %w", err)
	}
	return scheme, nil
}

// Follow watches the route, the Services and the EndpointSlices of its
// namespace and syncs at every change, until ctx ends. The program must have given
// controller-runtime a logger (log.SetLogger), or that complains on stderr.
func (g *Gateway) Follow(ctx context.Context, source RouteSource) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	writer, err := client.New(source.REST, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	store, err := cache.New(source.REST, cache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]cache.Config{source.Namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&gatewayv1.HTTPRoute{}: {Field: fields.OneTermEqualSelector("metadata.name", source.Name)},
		},
	})
	if err != nil {
		return fmt.Errorf("watch the API server: %w", err)
	}
	changed := make(chan struct{}, 1)
	if err := notify(ctx, store, changed); err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- store.Start(ctx) }()
	if !store.WaitForCacheSync(ctx) {
		return <-stopped
	}
	g.syncLoop(ctx, store, writer, source, changed)
	return <-stopped
}

// notify puts a token into changed at every event; one token stands for many.
func notify(ctx context.Context, store cache.Cache, changed chan<- struct{}) error {
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	}
	for _, kind := range []client.Object{&gatewayv1.HTTPRoute{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}} {
		informer, err := store.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

func (g *Gateway) syncLoop(ctx context.Context, reader client.Reader, writer client.Client, source RouteSource, changed <-chan struct{}) {
	for {
		var retry <-chan time.Time
		if err := g.Sync(ctx, reader, writer, source); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) { // the newer object is on its way
				g.log.Warn("sync with the HTTPRoute", "route", source.Namespace+"/"+source.Name, "error", err)
			}
			retry = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-retry:
		}
	}
}

// Sync reads the route and what it names from reader, serves it, and only then
// writes its status through writer, and only if that says something new. A route
// that is not there, or names another gateway, serves nothing: 404.
func (g *Gateway) Sync(ctx context.Context, reader client.Reader, writer client.StatusClient, source RouteSource) error {
	var route gatewayv1.HTTPRoute
	err := reader.Get(ctx, client.ObjectKey{Namespace: source.Namespace, Name: source.Name}, &route)
	if apierrors.IsNotFound(err) {
		return g.Serve(table.New(nil, nil))
	}
	if err != nil {
		return fmt.Errorf("read the HTTPRoute: %w", err)
	}
	objects, err := readObjects(ctx, reader, source.Namespace)
	if err != nil {
		return err
	}
	compiled := httproute.Compile(&route, objects)
	attached := httproute.Attached(&route, source.Gateway)
	if len(attached) == 0 {
		g.log.Warn("the HTTPRoute has no parentRef to this gateway and is not served",
			"route", source.Namespace+"/"+source.Name, "gateway", source.Gateway)
		compiled.Table = table.New(nil, nil)
	}
	if err := g.Serve(compiled.Table); err != nil {
		return fmt.Errorf("serve the HTTPRoute: %w", err)
	}
	parents := httproute.Parents(&route, attached, compiled, metav1.Now())
	if equality.Semantic.DeepEqual(parents, route.Status.Parents) {
		return nil
	}
	// The update carries the uid and the resourceVersion that were read, so it
	// can't overwrite what another controller wrote meanwhile.
	updated := route.DeepCopy()
	updated.Status.Parents = parents
	if err := writer.Status().Update(ctx, updated); err != nil {
		return fmt.Errorf("write the status of the HTTPRoute: %w", err)
	}
	return nil
}

func readObjects(ctx context.Context, reader client.Reader, namespace string) (httproute.Objects, error) {
	var services corev1.ServiceList
	if err := reader.List(ctx, &services, client.InNamespace(namespace)); err != nil {
		return httproute.Objects{}, fmt.Errorf("list the Services: %w", err)
	}
	var slices discoveryv1.EndpointSliceList
	if err := reader.List(ctx, &slices, client.InNamespace(namespace)); err != nil {
		return httproute.Objects{}, fmt.Errorf("list the EndpointSlices: %w", err)
	}
	return httproute.Objects{Services: services.Items, Slices: slices.Items}, nil
}
