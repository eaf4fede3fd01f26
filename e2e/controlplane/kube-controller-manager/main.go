// Command kube-controller-manager is the controller manager of the test control plane: the real controllers
// of Kubernetes, linked one by one instead of through cmd/kube-controller-manager/app, which would pull in
// every volume plugin and cloud provider. It runs no leader election and serves nothing.
//
// Flags keep their upstream names, so that a reader finds their meaning where they would look for it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kube-controller-manager:", err)
		os.Exit(1)
	}
}

// options are the flags of this command.
type options struct {
	kubeconfig  string
	signingKey  string // PEM private key of service account tokens
	rootCA      string // PEM bundle put into service account token secrets
	controllers string // comma separated names, "*" for all, "-name" to leave one out
	hpa         hpaOptions
}

// hpaOptions are the clocks of the HPA controller, which tests shorten.
type hpaOptions struct {
	syncPeriod, stabilization, cpuInitialization, initialReadiness time.Duration
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("kube-controller-manager", flag.ContinueOnError)
	klog.InitFlags(fs)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the API server (required)")
	fs.StringVar(&o.signingKey, "service-account-private-key-file", "", "PEM private key that signs service account tokens (required)")
	fs.StringVar(&o.rootCA, "root-ca-file", "", "PEM bundle published to service accounts (required)")
	fs.StringVar(&o.controllers, "controllers", "*", "comma separated controllers; * means all, -name leaves one out")
	fs.DurationVar(&o.hpa.syncPeriod, "horizontal-pod-autoscaler-sync-period", 15*time.Second, "how often an HPA is evaluated")
	fs.DurationVar(&o.hpa.stabilization, "horizontal-pod-autoscaler-downscale-stabilization", 5*time.Minute, "how far back a downscale looks")
	fs.DurationVar(&o.hpa.cpuInitialization, "horizontal-pod-autoscaler-cpu-initialization-period", 5*time.Minute, "time after pod start in which CPU samples may be skipped")
	fs.DurationVar(&o.hpa.initialReadiness, "horizontal-pod-autoscaler-initial-readiness-delay", 30*time.Second, "time after pod start in which readiness changes count as initial readiness")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for name, value := range map[string]string{
		"--kubeconfig": o.kubeconfig, "--service-account-private-key-file": o.signingKey, "--root-ca-file": o.rootCA,
	} {
		if value == "" {
			return o, fmt.Errorf("%s is required", name)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	names, err := selected(o.controllers)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// Upstream defaults of 20 and 30 make tests with thousands of pods wait for the client, not for the server.
	config.QPS, config.Burst = 500, 1000
	config.UserAgent = rest.DefaultKubernetesUserAgent()

	p, err := newPlant(ctx, config, o)
	if err != nil {
		return err
	}
	return p.run(ctx, names)
}

// selected reads the value of --controllers.
func selected(value string) ([]string, error) {
	on := map[string]bool{}
	for _, word := range strings.Split(value, ",") {
		word = strings.TrimSpace(word)
		name, off := strings.CutPrefix(word, "-")
		switch {
		case word == "*":
			for _, c := range constructors {
				on[c.name] = true
			}
		case !known(name):
			return nil, fmt.Errorf("--controllers: %q is not linked in; there are %s", name, strings.Join(knownNames(), ", "))
		default:
			on[name] = !off
		}
	}
	var names []string
	for _, c := range constructors {
		if on[c.name] {
			names = append(names, c.name)
		}
	}
	return names, nil
}

func known(name string) bool {
	for _, c := range constructors {
		if c.name == name {
			return true
		}
	}
	return false
}

func knownNames() []string {
	var names []string
	for _, c := range constructors {
		names = append(names, c.name)
	}
	return names
}
