// Package world sets up everything that a rollout needs on one machine: a
// control plane, a node, a Git repository, a gateway, a Prometheus API and the
// controller, which runs as a process of its own with exactly the rights that
// manifests/rbac gives it. The demo and the end-to-end stories live in it.
//
// It may import the lab and e2e/*, and of the product the API types only: all
// else is used from outside, as a user would.
package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/child"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/node"
	"github.com/pushback-dev/pushback/e2e/podforward"
	"github.com/pushback-dev/pushback/e2e/ports"
	"github.com/pushback-dev/pushback/lab/prom"
	"github.com/pushback-dev/pushback/lab/proxy"
)

// Image is the repository of the project's own image, which the node maps to the CLI.
const Image = "ghcr.io/pushback-dev/pushback"

// Options of a World.
type Options struct {
	// Dir takes repositories, logs and keys. Required.
	Dir string
	// Progress is told what is being built and started. Default os.Stderr.
	Progress io.Writer
	// Hollow, if set, makes a node that runs no processes: pods become Ready as it says.
	Hollow *node.Hollow
	// Existing, if set, is a cluster to use instead of one of the World's own, with
	// the nodes that it has. It excludes Hollow and AuditWrites.
	Existing *Existing
	// AuditWrites records every write to the API server.
	AuditWrites bool
}

// World is everything, running.
type World struct {
	Dir      string
	Root     string
	Cluster  *cluster.Cluster // nil on an existing cluster
	Node     *node.Node       // nil on an existing cluster
	REST     *rest.Config     // of an administrator
	Client   client.WithWatch
	PromURL  string
	progress io.Writer
	binaries binaries

	ctx    context.Context
	cancel context.CancelFunc
	parts  sync.WaitGroup
	failed chan error
	leases []*ports.Lease

	controllers map[string]*child.Process
	dial        func(ctx context.Context, network, address string) (net.Conn, error)

	// On an existing cluster:
	existing *Existing
	pods     *podforward.Dialer
	made     []client.Object
	crds     []string // those that were installed
}

type binaries struct{ controller, cli string }

// systemNamespace is where the controller's ServiceAccount lives.
const systemNamespace = "pushback-system"

// accountName is that ServiceAccount.
const accountName = "pushback"

// New starts a control plane, a node and a Prometheus API, and installs the
// CRDs and the rights. Stop ends them all.
func New(ctx context.Context, o Options) (*World, error) {
	root, err := cluster.Root()
	if err != nil {
		return nil, err
	}
	// The gateway and the clients log through this; what matters comes back as an error.
	ctrllog.SetLogger(logr.Discard())
	if o.Existing != nil && (o.Hollow != nil || o.AuditWrites) {
		return nil, errors.New("world: Existing excludes Hollow and AuditWrites")
	}
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	w := &World{Dir: dir, Root: root, progress: o.Progress, failed: make(chan error, 8), controllers: map[string]*child.Process{}, existing: o.Existing}
	var old []client.Object // what an earlier World left, looked for before anything is built or written
	if w.existing != nil {
		if old, err = w.examine(ctx); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if w.binaries, err = build(ctx, root, o.Progress); err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if w.existing != nil {
		err = w.startExisting(ctx, old)
	} else {
		err = w.start(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// build makes the product's binaries; Go's cache makes it quick when nothing changed.
func build(ctx context.Context, root string, progress io.Writer) (binaries, error) {
	fmt.Fprintln(progress, "building the controller and the CLI")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", "bin/", "./cmd/controller", "./cmd/pushback")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return binaries{}, fmt.Errorf("building the controller and the CLI: %w", err)
	}
	return binaries{controller: filepath.Join(root, "bin", "controller"), cli: filepath.Join(root, "bin", "pushback")}, nil
}

func (w *World) start(ctx context.Context, o Options) error {
	fmt.Fprintln(w.progress, "starting etcd, kube-apiserver and kube-controller-manager")
	var err error
	w.Cluster, err = cluster.Start(ctx, cluster.Options{Progress: w.progress, AuditWrites: o.AuditWrites})
	if err != nil {
		return err
	}
	w.run("the control plane", w.watchCluster)
	w.REST = w.Cluster.RESTConfig()
	if w.Client, err = connect(w.REST); err != nil {
		return err
	}
	if err := w.Cluster.InstallCRDs(ctx, filepath.Join(w.Root, "manifests", "crd")); err != nil {
		return err
	}
	if err := w.Cluster.InstallGatewayAPI(ctx); err != nil {
		return err
	}
	if err := w.installRights(ctx); err != nil {
		return err
	}
	if err := w.startNode(o); err != nil {
		return err
	}
	return w.startProm()
}

func connect(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

func (w *World) startNode(o Options) error {
	options := node.Options{
		Config: w.REST,
		Images: map[string]node.Image{Image: {Path: w.binaries.cli}},
		LogDir: filepath.Join(w.Dir, "pods"), Serving: w.Cluster.NodeTLS(),
		Hollow: o.Hollow,
	}
	if o.Hollow != nil {
		options.Images, options.LogDir, options.Serving = nil, "", nil
	}
	var err error
	if w.Node, err = node.New(options); err != nil {
		return err
	}
	w.dial = w.Node.Dial
	w.run("the node", w.Node.Run)
	return nil
}

// run keeps a part going until the World stops; its failure ends up in Failed.
func (w *World) run(name string, part func(context.Context) error) {
	w.parts.Go(func() {
		if err := part(w.ctx); err != nil && w.ctx.Err() == nil {
			w.failed <- fmt.Errorf("%s ended: %w", name, err)
		}
	})
}

// watchCluster ends when a server of the control plane does.
func (w *World) watchCluster(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.Cluster.Failed():
		return err
	}
}

// Failed gives an error for each part that ends while it should run.
func (w *World) Failed() <-chan error { return w.failed }

func (w *World) startProm() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.PromURL = "http://" + listener.Addr().String()
	options := prom.Options{
		Interval: 500 * time.Millisecond,
		Dial:     w.dial,
		Pods:     &prom.PodSource{REST: w.REST},
	}
	if w.existing != nil {
		options.Pods.Namespace = w.existing.Namespace
	}
	w.run("the Prometheus API", func(ctx context.Context) error {
		return prom.Run(ctx, options, prom.ListenOptions{Listener: listener})
	})
	return nil
}

// StartGateway serves an HTTPRoute on a port of its own and returns its URL.
func (w *World) StartGateway(namespace, route string) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	options := proxy.Options{
		Route:    &proxy.RouteSource{REST: w.REST, Namespace: namespace, Name: route},
		Dial:     w.dial,
		Listener: listener,
		Grace:    time.Second,
	}
	w.run("the gateway of "+namespace+"/"+route, func(ctx context.Context) error { return proxy.Run(ctx, options) })
	return "http://" + listener.Addr().String(), nil
}

// Stop ends everything that New started, and deletes what was made on an existing
// cluster.
func (w *World) Stop() error {
	var errs []error
	for name := range w.controllers {
		errs = append(errs, w.StopController(name))
	}
	w.cancel()
	w.parts.Wait()
	if w.pods != nil {
		errs = append(errs, w.pods.Close())
	}
	if w.existing != nil {
		errs = append(errs, w.clean())
	}
	if w.Cluster != nil {
		errs = append(errs, w.Cluster.Stop())
	}
	for _, lease := range w.leases {
		lease.Release()
	}
	return errors.Join(errs...)
}
