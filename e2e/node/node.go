// Package node is the local node of the test control plane: it registers a Node, is the scheduler of every
// unscheduled pod, and runs pods as processes of this machine, or, in hollow mode, runs nothing and only says
// that it does, for tests with thousands of pods. Statuses, conditions, probes, restarts and deletions are those
// of a kubelet, so that the controllers of Kubernetes and this project see nothing unusual.
//
// What a local process can't have is refused, with an event and a container that waits with reason
// CreateContainerConfigError and names the field: see refuse.go. The package must not import the product.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// Addressing says where the processes of pods listen.
type Addressing int

const (
	// Loopback processes listen on ports of 127.0.0.1 and pods have addresses that nothing routes: who wants
	// to reach a pod dials through Node.Dial or the table that Node.Handler serves.
	Loopback Addressing = iota
	// Routed processes listen on the pod's address itself. All of Options.PodRange must be local addresses, as
	// after "ip route add local 10.244.0.0/16 dev lo" in a network namespace of one's own.
	Routed
)

// Image is what runs for an image's name.
type Image struct {
	Path string   // the binary: the image's entrypoint
	Args []string // come before the container's args
	Env  []string // "NAME=value", weaker than the container's env
}

// Options of a Node. Config is required, and so is Images or Hollow.
type Options struct {
	Config *rest.Config
	// Name of the Node object. The default is "local".
	Name string
	// Images maps repositories without tag and digest to what runs for them. Pods of other images end in ImagePullBackOff.
	Images map[string]Image
	// LogDir takes the logs of processes; see LogFile. It is required with Images.
	LogDir string
	// Hollow, if set, runs no processes.
	Hollow *Hollow
	// Addressing of processes. The default is Loopback.
	Addressing Addressing
	// PodRange is where pods get their addresses from, IPv4, at most /30. The default is 10.244.0.0/16.
	PodRange netip.Prefix
	// Restart is the back-off of restarts and image pulls. The default is DefaultBackoff.
	Restart Backoff
	// StopGrace is how long processes have to end when Run ends. The default is 2 s. Their pods are left as they are.
	StopGrace time.Duration
	// Serving, if set, makes the node answer the API server over TLS, so that port-forward and logs of pods work:
	// Cluster.NodeTLS. It needs Images. The default is that both are refused by the API server.
	Serving *tls.Config
	// Logger takes what goes wrong with requests. The default discards it.
	Logger *slog.Logger
}

// Node runs the pods that are bound to it.
type Node struct {
	name     string
	options  Options
	client   kubernetes.Interface
	launcher launcher
	log      *slog.Logger
	queue    workqueue.TypedRateLimitingInterface[string]
	pods     corelisters.PodLister
	events   record.EventRecorder
	pool     *pool
	table    *table
	kubelet  *kubelet // nil without Options.Serving, and before Run

	mu      sync.Mutex
	records map[string]*podRecord // by namespace/name
}

const workers = 16

// New checks the options and makes a node. Nothing is written before Run.
func New(o Options) (*Node, error) {
	if o.Config == nil {
		return nil, errors.New("node: Options.Config is missing")
	}
	if (o.Hollow == nil) == (len(o.Images) == 0) {
		return nil, errors.New("node: exactly one of Options.Images and Options.Hollow must be set")
	}
	if o.Hollow == nil && o.LogDir == "" {
		return nil, errors.New("node: Options.LogDir is missing: it takes the logs of processes")
	}
	if o.Hollow != nil && o.Serving != nil {
		return nil, errors.New("node: Options.Serving is set on a hollow node: its pods have no ports and no logs")
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("node: making a client: %w", err)
	}
	pool, err := newPool(o.PodRange)
	if err != nil {
		return nil, err
	}
	n := &Node{
		name: o.Name, options: o, client: client, log: o.Logger, pool: pool, records: map[string]*podRecord{},
		table: newTable(o.PodRange, o.Addressing),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 10*time.Second)),
	}
	if o.Hollow != nil {
		n.launcher = hollowLauncher{*o.Hollow}
	} else {
		n.launcher = &processLauncher{client: client, images: o.Images, logs: logs(o.LogDir), table: n.table, events: n}
	}
	return n, nil
}

func (o *Options) setDefaults() error {
	if o.Name == "" {
		o.Name = "local"
	}
	if o.PodRange == (netip.Prefix{}) {
		o.PodRange = netip.MustParsePrefix("10.244.0.0/16")
	}
	if o.Restart == (Backoff{}) {
		o.Restart = DefaultBackoff
	}
	if err := o.Restart.check(); err != nil {
		return err
	}
	if o.StopGrace == 0 {
		o.StopGrace = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Run registers the node and runs pods until ctx ends; then it ends their processes and returns nil. Pods that
// were bound to a node of this name before are taken over: see adopt.
func (n *Node) Run(ctx context.Context) error {
	if n.options.Serving != nil {
		var err error
		if n.kubelet, err = n.listen(); err != nil {
			return fmt.Errorf("node: listening for the API server: %w", err)
		}
		defer n.kubelet.close()
	}
	if err := n.register(ctx); err != nil {
		return fmt.Errorf("node: registering %s: %w", n.name, err)
	}
	stopEvents := n.startEvents()
	defer stopEvents()
	if err := n.watch(ctx); err != nil {
		return err
	}
	n.reserveAddresses()
	if n.kubelet != nil {
		n.kubelet.serve()
	}

	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for n.work(ctx) {
			}
		})
	}
	<-ctx.Done()
	n.queue.ShutDown()
	group.Wait()
	n.stopAll()
	return nil
}

// watch starts the informer of all pods: the bound ones to run them, the unbound ones to bind them.
func (n *Node) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithTransform(slim))
	pods := factory.Core().V1().Pods()
	n.pods = pods.Lister()
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			n.queue.Add(key)
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }, DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		return fmt.Errorf("node: reading the pods: %w", context.Cause(ctx))
	}
	return nil
}

// slim drops what the node never reads, for the memory of thousands of pods.
func slim(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}

func (n *Node) work(ctx context.Context) bool {
	key, down := n.queue.Get()
	if down {
		return false
	}
	defer n.queue.Done(key)
	if err := n.sync(ctx, key); err != nil && ctx.Err() == nil {
		n.log.Warn("pod will be tried again", "pod", key, "error", err)
		n.queue.AddRateLimited(key)
		return true
	}
	n.queue.Forget(key)
	return true
}

// stopAll ends every process, after the workers have ended.
func (n *Node) stopAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.records {
		r.stop(n.options.StopGrace)
	}
	for _, r := range n.records {
		r.wait()
		n.table.remove(r.uid)
	}
}
