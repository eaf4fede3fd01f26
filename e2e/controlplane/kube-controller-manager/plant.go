package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
)

// discoveryPeriod is how soon the garbage collector and the HPA controller learn of a new CRD (upstream: 30 s).
const discoveryPeriod = 5 * time.Second

// plant is what the controllers share.
type plant struct {
	options   options
	config    *rest.Config
	client    kubernetes.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	mapper    meta.ResettableRESTMapper
	informers informers.SharedInformerFactory
	objects   informerfactory.InformerFactory
	started   chan struct{} // closed when the informers run; the garbage collector waits for it
}

// loop runs one controller until its context ends.
type loop func(ctx context.Context)

func newPlant(ctx context.Context, config *rest.Config, o options) (*plant, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a metadata client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery()))
	go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, discoveryPeriod)
	shared := informers.NewSharedInformerFactoryWithOptions(client, 12*time.Hour, informers.WithTransform(withoutManagedFields))
	objects := metadatainformer.NewSharedInformerFactoryWithOptions(meta, 12*time.Hour, metadatainformer.WithTransform(withoutManagedFields))
	return &plant{
		options: o, config: config, client: client, metadata: meta, discovery: client.Discovery(), mapper: mapper,
		informers: shared, objects: informerfactory.NewInformerFactory(shared, objects), started: make(chan struct{}),
	}, nil
}

// withoutManagedFields drops what no controller reads, for memory, as upstream does.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// run builds the named controllers, then starts the informers, then the controllers, and returns when all ended.
func (p *plant) run(ctx context.Context, names []string) error {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var loops []loop
	for _, c := range constructors {
		if !wanted[c.name] {
			continue
		}
		run, err := c.build(klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), c.name)), p)
		if err != nil {
			return fmt.Errorf("building controller %s: %w", c.name, err)
		}
		loops = append(loops, run)
	}
	p.objects.Start(ctx.Done())
	p.informers.Start(ctx.Done())
	close(p.started)
	klog.InfoS("Controllers started", "controllers", names)

	var group sync.WaitGroup
	for _, run := range loops {
		group.Go(func() { run(ctx) })
	}
	group.Wait()
	return nil
}
