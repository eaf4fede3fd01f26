// Command cluster builds the test control plane and runs it for a person: "cluster build" only builds,
// "cluster" leaves it running until Ctrl-C and writes the kubeconfig to bin/cluster/kubeconfig. It may import
// e2e/cluster and e2e/node.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pushback-dev/pushback/e2e/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "build":
		_, err = cluster.Build(ctx, os.Stderr)
	case len(os.Args) == 1:
		err = run(ctx)
	default:
		err = fmt.Errorf("usage: cluster [build]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "bin", "cluster")
	assets, err := cluster.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	started := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Assets: assets})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := c.Stop(); err == nil {
			err = stopErr
		}
	}()
	fmt.Printf("The control plane is up after %s. In another shell:\n\n\texport KUBECONFIG=%s\n\nLogs are in %s. Ctrl-C ends it.\n",
		time.Since(started).Round(100*time.Millisecond), filepath.Join(dir, "kubeconfig"), c.LogDir())
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.Failed():
		return err
	}
}
