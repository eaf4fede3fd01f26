package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/datadog"
	"github.com/pushback-dev/pushback/analysis/graphite"
	"github.com/pushback-dev/pushback/analysis/influxdb"
	"github.com/pushback-dev/pushback/analysis/newrelic"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/analysis/skywalking"
	"github.com/pushback-dev/pushback/analysis/wavefront"
	"github.com/pushback-dev/pushback/internal/egress"
)

// vendors are the providers whose addresses and keys are in Secrets or given with the
// metric, by the names of their fields.
func vendors(secrets providersecret.Finder, policy egress.Policy, getenv func(string) string) map[string]analysis.Provider {
	return map[string]analysis.Provider{
		"datadog":    datadog.New(datadog.Options{Secrets: secrets, Environment: datadogKeys(getenv), Egress: policy}),
		"newRelic":   newrelic.New(newrelic.Options{Secrets: secrets, Egress: policy}),
		"influxdb":   influxdb.New(influxdb.Options{Secrets: secrets, Egress: policy}),
		"wavefront":  wavefront.New(wavefront.Options{Secrets: secrets, Egress: policy}),
		"skywalking": skywalking.New(skywalking.Options{Egress: policy}),
		"graphite":   graphite.New(graphite.Options{Egress: policy}),
	}
}

// datadogKeys are Argo's and Datadog's own variables.
func datadogKeys(getenv func(string) string) datadog.Credentials {
	return datadog.Credentials{Address: getenv("DD_ADDRESS"), APIKey: getenv("DD_API_KEY"), AppKey: getenv("DD_APP_KEY")}
}

const (
	// noNamespace is the setting that shares no Secrets; no namespace can be called so.
	noNamespace = "-"
	// podNamespaceFile tells a pod its namespace.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// sharedSecrets is the namespace whose Secrets the providers of every run may use: the
// one that is set, else the pod's own as the file tells it, else none.
func sharedSecrets(set, file string) (string, error) {
	switch set {
	case noNamespace:
		return "", nil
	case "":
		own, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("reading the pod's namespace: %w", err)
		}
		return strings.TrimSpace(string(own)), nil
	}
	return set, nil
}

// secretReader reads Secrets from the API server, past any cache.
func secretReader(live client.Reader) providersecret.Read {
	return func(ctx context.Context, namespace, name string) (map[string][]byte, error) {
		secret := &corev1.Secret{}
		err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			return nil, providersecret.ErrNotFound
		}
		return secret.Data, err
	}
}
