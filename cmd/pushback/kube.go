package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// clusterFlags are the flags of the verbs that talk about rollouts.
type clusterFlags struct{ kubeFlags }

func addClusterFlags(cmd *cobra.Command) *clusterFlags {
	f := &clusterFlags{}
	f.register(cmd.Flags())
	return f
}

// client returns a client for the built-in kinds and Pushback's, and the
// namespace that the user means.
func (f *clusterFlags) client() (client.Client, string, error) {
	config, namespace, err := f.connect()
	if err != nil {
		return nil, "", err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, "", fmt.Errorf("scheme: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connect to the API server: %w", err)
	}
	return c, namespace, nil
}

func readRollout(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1alpha1.Rollout, error) {
	var rollout v1alpha1.Rollout
	err := c.Get(ctx, key, &rollout)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Rollout %q in the namespace %q: %w", key.Name, key.Namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Rollout %s: %w", key, err)
	}
	return &rollout, nil
}
