package main

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler"
	"github.com/pushback-dev/pushback/reconciler/experiment"
	"github.com/pushback-dev/pushback/reconciler/metrics"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/gatewayapi"
)

func makeScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme),
		discoveryv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
	)
	return scheme, err
}

// cacheOptions keep the memory to what is ours: ReplicaSets and pods by our label, and
// nothing's managedFields.
func cacheOptions(namespaces []string) cache.Options {
	ours, err := labels.NewRequirement(v1alpha1.TemplateHashLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // a constant
	}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.ReplicaSet{}: {Label: labels.NewSelector().Add(*ours)},
			&corev1.Pod{}:        {Label: labels.NewSelector().Add(*ours)},
		},
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// workloadCache keeps the metadata of what spec.workloadRef may name. ReplicaSets
// are those that are neither a Deployment's nor ours; the manager's cache holds
// ours alone.
func workloadCache(mgr ctrl.Manager, namespaces []string) (cache.Cache, error) {
	free := labels.NewSelector()
	for _, key := range []string{v1alpha1.TemplateHashLabel, appsv1.DefaultDeploymentUniqueLabelKey} {
		absent, err := labels.NewRequirement(key, selection.DoesNotExist, nil)
		if err != nil {
			panic(err) // constants
		}
		free = free.Add(*absent)
	}
	options := cacheOptions(namespaces)
	options.Scheme, options.Mapper, options.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	options.ByObject = map[client.Object]cache.ByObject{&appsv1.ReplicaSet{}: {Label: free}}
	workloads, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("making the cache of workloads: %w", err)
	}
	return workloads, mgr.Add(workloads)
}

// now is the clock of every controller: whole seconds, as the API server keeps them.
func now() time.Time { return metav1.Now().Rfc3339Copy().Time }

func setUp(mgr ctrl.Manager, s settings) error {
	routerFor := func(tr *v1alpha1.RolloutTrafficRouting) (routers.Router, error) {
		settings, err := routers.GatewayAPI(tr)
		if err != nil || settings == nil {
			return nil, err
		}
		return gatewayapi.New(mgr.GetClient(), mgr.GetAPIReader()), nil
	}
	options := controller.Options{MaxConcurrentReconciles: s.concurrent}
	recorder := metrics.New()
	if err := ctrlmetrics.Registry.Register(recorder); err != nil {
		return fmt.Errorf("registering the metrics of Rollouts: %w", err)
	}
	workloads, err := workloadCache(mgr, s.namespaces)
	if err != nil {
		return err
	}
	rollouts := &reconciler.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Workloads: workloads,
		Events:    mgr.GetEventRecorder("pushback-rollout"),
		RouterFor: routerFor, Metrics: recorder, Now: now,
	}
	if err := rollouts.SetupWithManager(mgr, options, gatewayapi.GroupVersionKind); err != nil {
		return fmt.Errorf("setting up the Rollout controller: %w", err)
	}
	experiments := &experiment.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("pushback-experiment"), Now: now,
	}
	if err := experiments.SetupWithManager(mgr, options); err != nil {
		return fmt.Errorf("setting up the Experiment controller: %w", err)
	}
	return errors.Join(setUpAnalysis(mgr, s), setUpGit(mgr, s, routerFor))
}
