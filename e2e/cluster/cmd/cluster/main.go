// Command cluster builds the test control plane and runs it for a person:
//
//	cluster build   builds etcd, kube-apiserver and kube-controller-manager into bin/k8s
//	cluster start   leaves a control plane and a local node running until Ctrl-C
//
// The kubeconfig of start is bin/cluster/kubeconfig. With -image name=path, which can be repeated, pods of that
// image run as processes of that binary; without it the node is hollow: pods become ready and run nothing. It may
// import e2e/cluster and e2e/node, and not the product.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// images is the value of the flag -image.
type images map[string]node.Image

func (i images) String() string { return "" }

func (i images) Set(value string) error {
	name, path, ok := strings.Cut(value, "=")
	if !ok {
		return errors.New("want name=path, such as ghcr.io/pushback-dev/pushback=bin/pushback")
	}
	i[name] = node.Image{Path: path}
	return nil
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "build":
		_, err := cluster.Build(ctx, os.Stderr)
		return err
	case len(args) >= 1 && args[0] == "start":
		flags := flag.NewFlagSet("cluster start", flag.ContinueOnError)
		known := images{}
		flags.Var(known, "image", "name=path: run pods of this image as processes of this binary (repeatable)")
		crds := flags.String("crds", "", "folder of CustomResourceDefinitions to install")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return start(ctx, known, *crds)
	default:
		return errors.New("usage: cluster build | cluster start [-image name=path] [-crds folder]")
	}
}

func start(ctx context.Context, known images, crds string) (err error) {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "bin", "cluster")
	assets, err := cluster.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	began := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Assets: assets})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	if err := c.InstallGatewayAPI(ctx); err != nil {
		return err
	}
	if crds != "" {
		if err := c.InstallCRDs(ctx, crds); err != nil {
			return err
		}
	}
	fmt.Printf("The control plane is up after %s. In another shell:\n\n\texport KUBECONFIG=%s\n\nIts logs are in %s.\n",
		time.Since(began).Round(100*time.Millisecond), filepath.Join(dir, "kubeconfig"), c.LogDir())
	return serve(ctx, c, known, dir)
}

// serve runs the node until ctx ends or a server does.
func serve(ctx context.Context, c *cluster.Cluster, known images, dir string) error {
	o := node.Options{Config: c.RESTConfig(), Images: known, LogDir: filepath.Join(dir, "pods"),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Serving: c.NodeTLS()}
	if len(known) == 0 {
		o.Images, o.Serving, o.Hollow = nil, nil, &node.Hollow{Ready: time.Second}
	}
	n, err := node.New(o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: n.Handler(), ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(listener) }()
	go func() { ended <- n.Run(ctx) }()
	if o.Hollow != nil {
		fmt.Println("The node is hollow: pods become ready and run nothing (see -image). Ctrl-C ends it.")
	} else {
		fmt.Printf("Pods are processes of this machine; where each listens: http://%s. Ctrl-C ends it.\n", listener.Addr())
	}
	select {
	case <-ctx.Done():
		return <-ended
	case err := <-ended:
		return err
	case err := <-c.Failed():
		return err
	}
}
