package main

// The rights of the controller, as few as it works with: the end-to-end stories
// run with exactly these. What Git declares is applied with the rights of the
// ServiceAccount that the GitSync names, never with these.
//
// What the project's own kinds need. Specs are people's: the controller writes
// statuses, finalizers while a workload is scaled down or traffic goes through a
// Rollout, creates AnalysisRuns, Experiments and Reverts, and ends runs.
//
// +kubebuilder:rbac:groups=pushback.dev,resources=rollouts;gitsyncs;analysistemplates;clusteranalysistemplates;analysisruns;experiments;reverts,verbs=get;list;watch
// +kubebuilder:rbac:groups=pushback.dev,resources=rollouts/status;gitsyncs/status;analysisruns/status;experiments/status;reverts/status,verbs=patch
// +kubebuilder:rbac:groups=pushback.dev,resources=analysisruns,verbs=create;patch;delete
// +kubebuilder:rbac:groups=pushback.dev,resources=reverts,verbs=create;delete
// +kubebuilder:rbac:groups=pushback.dev,resources=rollouts,verbs=patch
// +kubebuilder:rbac:groups=pushback.dev,resources=experiments,verbs=create;patch;delete
// +kubebuilder:rbac:groups=pushback.dev,resources=rollouts/finalizers;experiments/finalizers,verbs=update
//
// Versions and their pods; the sources of templates.
//
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
//
// What spec.workloadRef names: its template is read, and its size is changed.
//
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=get;list;watch
//
// Restarts: pods are evicted, so that PodDisruptionBudgets are honoured.
//
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
//
// Traffic. Services are made for the versions of Experiments, and only those are deleted.
//
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;patch
//
// Whether a scaler owns the size of a Rollout, or of a workload.
//
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list
//
// The Jobs of metrics, read one by one. Their pods are listed by their Job's uid. Who
// may write AnalysisTemplates or AnalysisRuns in a namespace may run pods there by these
// rights, as who may write Rollouts may.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;create;delete
//
// Secrets one by one where they are named; impersonation for applies; events.
//
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=impersonate
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
