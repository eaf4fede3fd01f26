package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// scales makes a client of the scale subresource of any kind, CRDs included.
func (p *plant) scales() (scale.ScalesGetter, error) {
	kinds := scale.NewDiscoveryScaleKindResolver(p.discovery)
	c, err := scale.NewForConfig(p.config, p.mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, fmt.Errorf("making a scale client: %w", err)
	}
	return c, nil
}

func podAutoscaler(ctx context.Context, p *plant) (loop, error) {
	scales, err := p.scales()
	if err != nil {
		return nil, err
	}
	resources, err := resourceclient.NewForConfig(p.config)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(p.config)
	if err != nil {
		return nil, err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(p.discovery)
	source := metrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(p.config, p.mapper, versions), external)
	const tolerance = 0.1
	clocks := p.options.hpa
	c := podautoscaler.NewHorizontalController(ctx, p.client.CoreV1(), scales, p.client.AutoscalingV2(), p.mapper, source,
		p.informers.Autoscaling().V2().HorizontalPodAutoscalers(), p.informers.Core().V1().Pods(),
		clocks.syncPeriod, clocks.stabilization, tolerance, clocks.cpuInitialization, clocks.initialReadiness)
	return both(
		func(ctx context.Context) {
			custom_metrics.PeriodicallyInvalidate(versions, clocks.syncPeriod, ctx.Done())
		},
		func(ctx context.Context) { c.Run(ctx, 5) },
	), nil
}

func disruptions(ctx context.Context, p *plant) (loop, error) {
	scales, err := p.scales()
	if err != nil {
		return nil, err
	}
	core, apps := p.informers.Core().V1(), p.informers.Apps().V1()
	c := disruption.NewDisruptionController(ctx, core.Pods(), p.informers.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(),
		p.client, p.mapper, scales, p.discovery)
	return func(ctx context.Context) { c.Run(ctx, 5) }, nil
}
