// Package cluster builds, starts and stops a real Kubernetes control plane for tests, for the demo and for
// people: etcd, kube-apiserver and the controllers of kube-controller-manager that the project needs, as
// child processes on ports of 127.0.0.1. It has no nodes: package e2e/node is one. It needs no root, no
// container runtime and no network. It must not import the product's packages, so that any test may use it.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pushback-dev/pushback/e2e/ports"
)

// StartTimeout bounds each of the three servers' starts. An idle machine needs seconds; this is for a loaded one.
const StartTimeout = 120 * time.Second

// ErrInUse says that another cluster runs in the folder.
var ErrInUse = errors.New("another cluster runs in this folder")

// Options of Start. The zero value is a cluster in a temporary folder, built if need be.
type Options struct {
	// Assets are the binaries to run. The default is what Build returns.
	Assets Assets
	// Dir takes keys, data and logs and is created. The default is a temporary folder that Stop removes;
	// a folder that is given stays.
	Dir string
	// Progress is told of builds. The default is os.Stderr.
	Progress io.Writer
	// AuditWrites records every write request; see Cluster.Writes.
	AuditWrites bool
	// APIServerArgs and ControllerManagerArgs are appended to the flags, so that they win over ours.
	APIServerArgs, ControllerManagerArgs []string
}

// Cluster is a control plane that runs. It is safe for concurrent use.
type Cluster struct {
	dir      string
	ownDir   bool
	pki      *pki
	host     string
	owned    *os.File // the lock on dir, nil before it is taken
	audit    string   // path of the audit log, empty without one
	auditLog auditLog
	leases   []*ports.Lease
	failed   chan error
	mu       sync.Mutex
	servers  []*server // in the order in which they started
	stopped  bool
}

// Start runs a control plane and returns when it answers, its built-in roles exist and its controllers work.
// When ctx ends meanwhile it stops and fails; later, ctx has no meaning: call Stop.
// An error of a server that doesn't start holds the end of its log.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.Assets == (Assets{}) {
		assets, err := Build(ctx, o.Progress)
		if err != nil {
			return nil, fmt.Errorf("building the control plane: %w", err)
		}
		o.Assets = assets
	}
	c := &Cluster{failed: make(chan error, 3)}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	if err := c.prepare(o); err != nil {
		return err
	}
	client, err := c.lease()
	if err != nil {
		return err
	}
	peer, err := c.lease()
	if err != nil {
		return err
	}
	secure, err := c.lease()
	if err != nil {
		return err
	}
	c.host = "https://" + secure.Address()
	admin := filepath.Join(c.dir, "kubeconfig")
	if err := c.WriteKubeconfig(admin); err != nil {
		return err
	}
	steps := []struct {
		name, path string
		args       []string
		ready      func(context.Context) error
	}{
		{"etcd", o.Assets.Etcd, etcdArgs(c.dir, client, peer), c.etcdReady("http://" + client.Address())},
		{"kube-apiserver", o.Assets.APIServer, append(c.apiServerArgs(client, secure), o.APIServerArgs...), c.apiServerReady},
		{"kube-controller-manager", o.Assets.ControllerManager, append(c.controllerManagerArgs(admin), o.ControllerManagerArgs...), c.controllersReady},
	}
	for _, s := range steps {
		if err := c.launch(ctx, s.name, s.path, s.args, s.ready); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) prepare(o Options) error {
	c.dir = o.Dir
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "pushback-cluster-")
		if err != nil {
			return fmt.Errorf("making a folder for the cluster: %w", err)
		}
		c.dir, c.ownDir = dir, true
	}
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return err
	}
	c.dir = dir
	if err := c.own(); err != nil {
		return err
	}
	// The data of an earlier run holds objects signed with keys that are gone, and its logs are of other servers.
	for _, old := range []string{"etcd", "logs", "audit.log"} {
		if err := os.RemoveAll(filepath.Join(c.dir, old)); err != nil {
			return fmt.Errorf("removing what an earlier run left: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		return fmt.Errorf("making the folder of logs: %w", err)
	}
	if c.pki, err = newPKI(c.dir); err != nil {
		return err
	}
	if o.AuditWrites {
		return c.prepareAudit()
	}
	return nil
}

// own makes the folder and locks it until Stop. Errors: ErrInUse.
func (c *Cluster) own() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the cluster: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(c.dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the folder of the cluster: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return fmt.Errorf("%w: %s", ErrInUse, c.dir)
	}
	c.owned = file
	return nil
}

func (c *Cluster) lease() (*ports.Lease, error) {
	l, err := ports.Take()
	if err != nil {
		return nil, err
	}
	c.leases = append(c.leases, l)
	return l, nil
}

// Failed gives an error for each server that ends while it should run; the error holds the end of its log.
func (c *Cluster) Failed() <-chan error { return c.failed }

// LogDir is the folder of the servers' logs: etcd.log, kube-apiserver.log, kube-controller-manager.log.
func (c *Cluster) LogDir() string { return filepath.Join(c.dir, "logs") }

// Stop kills the control plane and forgets its data. Stopping twice is harmless.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	servers, was := c.servers, c.stopped
	c.stopped = true
	c.mu.Unlock()
	if was {
		return nil
	}
	var errs []error
	// The last one first, so that none complains of another's end. The data is thrown away: there is nothing to end with grace.
	for i := len(servers) - 1; i >= 0; i-- {
		errs = append(errs, servers[i].process.Kill())
		<-servers[i].process.Done()
	}
	for _, l := range c.leases {
		l.Release()
	}
	if c.owned != nil && !c.ownDir {
		errs = append(errs, os.RemoveAll(filepath.Join(c.dir, "etcd")))
	}
	if c.ownDir {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if c.owned != nil {
		errs = append(errs, c.owned.Close())
	}
	return errors.Join(errs...)
}

// RESTConfig is a new configuration of a client that may do everything (group system:masters), without a
// limit of requests on the client's side.
func (c *Cluster) RESTConfig() *rest.Config {
	return c.configWithToken(c.pki.adminToken)
}

func (c *Cluster) configWithToken(token string) *rest.Config {
	return &rest.Config{
		Host: c.host, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: append([]byte{}, c.pki.ca...)},
	}
}
