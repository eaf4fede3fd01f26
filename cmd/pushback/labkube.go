package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/lab/dialtable"
)

// kubeFlags say which API server a lab server talks to.
type kubeFlags struct{ kubeconfig, context, namespace string }

func (k *kubeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&k.kubeconfig, "kubeconfig", "", "kubeconfig file (default $KUBECONFIG, ~/.kube/config, or the pod's own account)")
	flags.StringVar(&k.context, "context", "", "context of the kubeconfig (default its current one)")
	flags.StringVarP(&k.namespace, "namespace", "n", "", "namespace (default that of the context)")
}

func (k *kubeFlags) used() bool { return *k != kubeFlags{} }

// connect reads the kubeconfig; it does not talk to the API server yet.
func (k *kubeFlags) connect() (config *rest.Config, namespace string, err error) {
	// controller-runtime complains loudly when nobody gave it a logger.
	ctrllog.SetLogger(logr.Discard())
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: k.context}
	overrides.Context.Namespace = k.namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	if config, err = loader.ClientConfig(); clientcmd.IsEmptyConfig(err) {
		return nil, "", fmt.Errorf("no cluster to talk to: none of %s exists or names one; set KUBECONFIG or --kubeconfig: %w",
			strings.Join(rules.GetLoadingPrecedence(), ", "), err)
	} else if err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", fmt.Errorf("kubeconfig: %w", err)
	}
	return config, namespace, nil
}

func registerDialTable(flags *pflag.FlagSet, url *string) {
	flags.StringVar(url, "dial-table", "", `URL of a JSON object that maps "ip:port" of pods to the "host:port" where they listen`)
}

// followDialTable returns nil, which dials addresses as they are, without a URL.
func followDialTable(ctx context.Context, url string, log *slog.Logger) dialtable.DialFunc {
	if url == "" {
		return nil
	}
	table := &dialtable.Table{URL: url}
	go table.Follow(ctx, 0, func(err error) {
		if err != nil {
			log.Warn("the dial table can't be read; the last one stands", "error", err)
			return
		}
		log.Info("the dial table can be read again")
	})
	return table.DialContext
}
