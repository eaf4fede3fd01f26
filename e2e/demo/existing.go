package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pushback-dev/pushback/e2e/world"
)

// sampleImage is the image that the committed manifest names.
const sampleImage = "ghcr.io/pushback-dev/pushback:v0.1.0"

// imageName is what may be put into the manifest: a reference, with nothing in it
// that YAML would read as more.
var imageName = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._/:@-]*[a-zA-Z0-9]$`)

var errNoKubeconfig = errors.New("--cluster needs KUBECONFIG to name the file: without it nothing is assumed, so that no cluster is used by mistake")

// target is the cluster that the demo uses instead of one of its own.
type target struct {
	context string
	config  *rest.Config
}

// findTarget is the current context of KUBECONFIG. Errors: errNoKubeconfig.
func findTarget() (*target, error) {
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		return nil, errNoKubeconfig
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	if raw.CurrentContext == "" {
		return nil, fmt.Errorf("KUBECONFIG=%s has no current context: choose one with `kubectl config use-context`", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, raw.CurrentContext, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading context %s of KUBECONFIG: %w", raw.CurrentContext, err)
	}
	config.QPS, config.Burst = 50, 100 // the default of 5 a second is slower than the demo's reader
	return &target{context: raw.CurrentContext, config: config}, nil
}

func (t *target) existing(keep bool) *world.Existing {
	return &world.Existing{Config: t.config, Namespace: namespace, Keep: keep}
}

// announce says what will be used and made, before anything is.
func (t *target) announce(keep bool) {
	fmt.Printf("Using context %s of KUBECONFIG, server %s.\n", t.context, t.config.Host)
	fmt.Printf("On it, the demo makes the namespaces %s and %s, the cluster roles and the binding that the controller needs, "+
		"and the CustomResourceDefinitions of Pushback and HTTPRoute where they are missing.\n", namespace, "pushback-system")
	if keep {
		fmt.Println("They stay when it ends (--keep); the next run deletes them.")
	} else {
		fmt.Println("It deletes them when it ends. Controller, repository, gateway and Prometheus run on this machine.")
	}
}
