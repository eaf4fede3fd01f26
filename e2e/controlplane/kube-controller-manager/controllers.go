package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	saccounts "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// constructors are the controllers that are linked in, in the order in which they start.
// The wiring of each is that of cmd/kube-controller-manager/app of the same Kubernetes version.
var constructors = []struct {
	name  string
	build func(ctx context.Context, p *plant) (loop, error)
}{
	{"serviceaccount-token-controller", tokens},
	{"serviceaccount-controller", serviceAccounts},
	{"namespace-controller", namespaces},
	{"clusterrole-aggregation-controller", clusterRoles},
	{"replicaset-controller", replicaSets},
	{"deployment-controller", deployments},
	{"job-controller", jobs},
	{"endpointslice-controller", endpointSlices},
	{"garbage-collector-controller", garbage},
	{"horizontal-pod-autoscaler-controller", podAutoscaler},
	{"disruption-controller", disruptions},
}

func tokens(ctx context.Context, p *plant) (loop, error) {
	key, err := keyutil.PrivateKeyFromFile(p.options.signingKey)
	if err != nil {
		return nil, fmt.Errorf("reading --service-account-private-key-file: %w", err)
	}
	ca, err := os.ReadFile(p.options.rootCA)
	if err != nil {
		return nil, fmt.Errorf("reading --root-ca-file: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	core := p.informers.Core().V1()
	c, err := saccounts.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), p.client,
		saccounts.TokensControllerOptions{TokenGenerator: generator, RootCA: ca})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}

func serviceAccounts(ctx context.Context, p *plant) (loop, error) {
	core := p.informers.Core().V1()
	c, err := saccounts.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), p.client,
		saccounts.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { c.Run(ctx, 1) }, nil
}

func namespaces(ctx context.Context, p *plant) (loop, error) {
	// Emptying a namespace takes many discovery and delete calls: upstream raises the limits for it too.
	config := rest.CopyConfig(p.config)
	config.QPS *= 20
	config.Burst *= 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		p.informers.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	return func(ctx context.Context) { c.Run(ctx, 10) }, nil
}

// clusterRoles fills the aggregated roles admin, edit and view, which GitSyncs are impersonated with.
func clusterRoles(_ context.Context, p *plant) (loop, error) {
	c := clusterroleaggregation.NewClusterRoleAggregation(p.informers.Rbac().V1().ClusterRoles(), p.client.RbacV1())
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}

func replicaSets(ctx context.Context, p *plant) (loop, error) {
	c := replicaset.NewReplicaSetController(ctx, p.informers.Apps().V1().ReplicaSets(), p.informers.Core().V1().Pods(),
		p.client, replicaset.BurstReplicas)
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}

func deployments(ctx context.Context, p *plant) (loop, error) {
	apps := p.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), p.informers.Core().V1().Pods(), p.client)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}

func jobs(ctx context.Context, p *plant) (loop, error) {
	// The last two informers belong to the alpha feature WorkloadWithJob, which is off.
	c, err := job.NewController(ctx, p.client, p.informers.Core().V1().Pods(), p.informers.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}

func endpointSlices(ctx context.Context, p *plant) (loop, error) {
	core := p.informers.Core().V1()
	const maxEndpointsPerSlice = 100
	c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), p.informers.Discovery().V1().EndpointSlices(),
		maxEndpointsPerSlice, p.client, 0)
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}

func garbage(ctx context.Context, p *plant) (loop, error) {
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, p.metadata, p.mapper, garbagecollector.DefaultIgnoredResources(), p.objects, p.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, p.client, p.metadata, p.mapper, graph)
	if err != nil {
		return nil, err
	}
	const workers = 20
	return both(
		func(ctx context.Context) { c.Run(ctx, workers, 30*time.Second) },
		func(ctx context.Context) { c.Sync(ctx, p.discovery, discoveryPeriod) },
	), nil
}

// both runs two loops side by side until both have ended.
func both(a, b loop) loop {
	return func(ctx context.Context) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			a(ctx)
		}()
		b(ctx)
		<-done
	}
}
