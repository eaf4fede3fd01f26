package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
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

// completionTimeout is short: a shell waits for it.
const completionTimeout = 3 * time.Second

// complete names the Rollouts of the namespace to a shell.
func (f *clusterFlags) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.completeNames(cmd.Context(), &v1alpha1.RolloutList{})
}

// completeNames names the objects of a kind to a shell.
func (f *clusterFlags) completeNames(ctx context.Context, list client.ObjectList) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, namespace, err := f.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	names, err := namesOf(ctx, c, namespace, list)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func namesOf(ctx context.Context, c client.Reader, namespace string, list client.ObjectList) ([]string, error) {
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing: %w", explained(err))
	}
	var names []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err == nil {
			names = append(names, object.GetName())
		}
		return err
	})
	return names, err
}

// oneRollout wants the name of one Rollout; with a least of 0 none will do.
func oneRollout(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= 1 {
			return nil
		}
		return fmt.Errorf("%s takes the name of one Rollout, and got %d: see '%s --help'", cmd.Name(), len(args), cmd.CommandPath())
	}
}

// explained says what to do where a server knows no Rollouts at all.
func explained(err error) error {
	if meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("this cluster has no %s: install it with 'kubectl apply --server-side -k manifests/install': %w", v1alpha1.GroupVersion, err)
	}
	return err
}

func readRollout(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1alpha1.Rollout, error) {
	var rollout v1alpha1.Rollout
	err := c.Get(ctx, key, &rollout)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Rollout %q in the namespace %q: %w", key.Name, key.Namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Rollout %s: %w", key, explained(err))
	}
	return &rollout, nil
}
