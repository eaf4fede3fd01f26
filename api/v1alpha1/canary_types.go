package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CanaryStrategy moves traffic to the new version in steps.
type CanaryStrategy struct {
	// CanaryService selects the new version; its selector is managed by the router.
	// +optional
	CanaryService string `json:"canaryService,omitempty"`
	// StableService selects the stable version; its selector is managed by the router.
	// +optional
	StableService string `json:"stableService,omitempty"`
	// Steps to take, in order. None: the new version replaces the old one as pods become available.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Steps []CanaryStep `json:"steps,omitempty"`
	// TrafficRouting names the router. None: weights are approximated by pod counts.
	// +optional
	TrafficRouting *RolloutTrafficRouting `json:"trafficRouting,omitempty"`
	// MaxSurge pods above spec.replicas, a number or a percentage (rounded up). Default 25%.
	//
	// With trafficRouting, where stable stays whole and the new version comes on
	// top of it, it is how many pods of the new version start at a time, at steps
	// and at promotion alike: the next ones start when all those asked for before
	// are available, and the weight waits for all that the step needs. 0 starts one
	// at a time. Not set, all of them start at once, as in Argo Rollouts, which
	// ignores the field there. A first version, and what the traffic that a version
	// already has needs when spec.replicas rises, start at once too.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// MaxUnavailable pods below spec.replicas, a number or a percentage (rounded
	// down). Default 25%. Both it and maxSurge 0 is invalid.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Analysis runs beside the steps.
	// +optional
	Analysis *RolloutAnalysisBackground `json:"analysis,omitempty"`
	// AntiAffinity between the versions.
	// +optional
	AntiAffinity *AntiAffinity `json:"antiAffinity,omitempty"`
	// CanaryMetadata on pods of the canary.
	// +optional
	CanaryMetadata *PodTemplateMetadata `json:"canaryMetadata,omitempty"`
	// StableMetadata on pods of the stable version.
	// +optional
	StableMetadata *PodTemplateMetadata `json:"stableMetadata,omitempty"`
	// ScaleDownDelaySeconds the old stable version lives after promotion; with a router only. Default 30.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ScaleDownDelaySeconds *int32 `json:"scaleDownDelaySeconds,omitempty"`
	// ScaleDownDelayRevisionLimit is how many old versions may wait out that delay. Default no limit.
	// +optional
	ScaleDownDelayRevisionLimit *int32 `json:"scaleDownDelayRevisionLimit,omitempty"`
	// AbortScaleDownDelaySeconds the canary's pods live after an abort, counted
	// from the weight seen at 0; 0 keeps them. With a router only. Default 30.
	// +kubebuilder:validation:Minimum=0
	// +optional
	AbortScaleDownDelaySeconds *int32 `json:"abortScaleDownDelaySeconds,omitempty"`
	// DynamicStableScale shrinks stable as the canary grows: it keeps the pods that its
	// share of the traffic needs, some seconds after the weights were seen. An abort then
	// takes the traffic back as stable's pods become available, not at once. With a router
	// only, and without scaleDownDelaySeconds. Default false.
	// +optional
	DynamicStableScale bool `json:"dynamicStableScale,omitempty"`
	// PingPong lets two Services alternate their roles, in the place of canaryService and
	// stableService: a promotion moves neither a weight nor a selector. With a router only.
	// +optional
	PingPong *PingPongSpec `json:"pingPong,omitempty"`
	// MinPodsPerReplicaSet is a floor for the size of a side with pods, at most
	// spec.replicas. It leaves setCanaryScale.replicas alone. With a router only.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinPodsPerReplicaSet *int32 `json:"minPodsPerReplicaSet,omitempty"`
	// ReplicaProgressThreshold is how much of the pods that a step asks of the new
	// version must be available to go on, to raise its weight, to start the next batch
	// and to promote it. Default 100 %.
	// +optional
	ReplicaProgressThreshold *ReplicaProgressThreshold `json:"replicaProgressThreshold,omitempty"`
}

// The values of status.canary.stablePingPong.
const (
	PingPongPing = "ping"
	PingPongPong = "pong"
)

// PingPongSpec names the two Services.
type PingPongSpec struct {
	// PingService is the stable one first; PongService after the next promotion, and so on.
	PingService string `json:"pingService"`
	PongService string `json:"pongService"`
}

// The types of a ReplicaProgressThreshold. Percentage is another word for Percent.
const (
	ThresholdPercent    = "Percent"
	ThresholdPercentage = "Percentage"
	ThresholdPods       = "Pods"
)

// ReplicaProgressThreshold is a share or a number of pods.
type ReplicaProgressThreshold struct {
	// Type is Percent (or Percentage) or Pods.
	// +kubebuilder:validation:Enum=Percentage;Percent;Pods
	Type string `json:"type"`
	// Value from 1 to 100 percent, rounded up to whole pods, or a number of pods, of
	// which no more are asked than the side has.
	// +kubebuilder:validation:Minimum=1
	Value int32 `json:"value"`
}

// CanaryStep is exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.setWeight), has(self.pause), has(self.setCanaryScale), has(self.analysis), has(self.experiment), has(self.setHeaderRoute), has(self.setMirrorRoute), has(self.plugin)].filter(x, x).size() == 1",message="a step has exactly one of setWeight, pause, setCanaryScale, analysis, experiment, setHeaderRoute, setMirrorRoute, plugin"
type CanaryStep struct {
	// SetWeight sends this share of the traffic to the new version: 0 to 100 (or maxTrafficWeight).
	// +kubebuilder:validation:Minimum=0
	// +optional
	SetWeight *int32 `json:"setWeight,omitempty"`
	// Pause waits for a duration, or without one until promoted.
	// +optional
	Pause *RolloutPause `json:"pause,omitempty"`
	// SetCanaryScale pins the size of the canary until a later one. With a router only.
	// +optional
	SetCanaryScale *SetCanaryScale `json:"setCanaryScale,omitempty"`
	// Analysis must succeed to go on.
	// +optional
	Analysis *RolloutAnalysis `json:"analysis,omitempty"`
	// Experiment must succeed to go on.
	// +optional
	Experiment *RolloutExperimentStep `json:"experiment,omitempty"`
	// SetHeaderRoute sends requests with a header to the canary.
	// +optional
	SetHeaderRoute *SetHeaderRoute `json:"setHeaderRoute,omitempty"`
	// SetMirrorRoute copies requests to the canary.
	// +optional
	SetMirrorRoute *SetMirrorRoute `json:"setMirrorRoute,omitempty"`
	// Plugin is Argo's step plugin; refused.
	// +optional
	Plugin *PluginStep `json:"plugin,omitempty"`
}

// RolloutPause is a wait.
type RolloutPause struct {
	// Duration in seconds (a number), or with a unit ("10m"). None: until promoted.
	// +kubebuilder:validation:XIntOrString
	// +optional
	Duration *intstr.IntOrString `json:"duration,omitempty"`
}

// SetCanaryScale is exactly one of its fields. It outlives later setWeight steps,
// and ends after the last step, at a full promotion and at an abort. It is the
// user's word: the canary may get a weight that its pods would be too few for, but
// never without one available pod, and it doesn't shrink below what the weight that
// it has needs.
//
// +kubebuilder:validation:XValidation:rule="[has(self.weight), has(self.replicas), has(self.matchTrafficWeight) && self.matchTrafficWeight].filter(x, x).size() == 1",message="set exactly one of weight, replicas and matchTrafficWeight"
type SetCanaryScale struct {
	// Weight sizes the canary at this share of spec.replicas: 0 to 100 (or
	// maxTrafficWeight), rounded up to whole pods.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas is the size itself; it may exceed spec.replicas.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// MatchTrafficWeight ends an earlier setCanaryScale.
	// +optional
	MatchTrafficWeight bool `json:"matchTrafficWeight,omitempty"`
}

// SetHeaderRoute adds a managed route that sends the requests that meet all of
// its matches to the canary; no match removes it.
type SetHeaderRoute struct {
	// Name must be one of trafficRouting.managedRoutes.
	Name string `json:"name"`
	// +optional
	Match []HeaderRoutingMatch `json:"match,omitempty"`
}

// HeaderRoutingMatch matches one header.
type HeaderRoutingMatch struct {
	HeaderName  string       `json:"headerName"`
	HeaderValue *StringMatch `json:"headerValue"`
}

// StringMatch is exactly one of its fields.
type StringMatch struct {
	// +optional
	Exact string `json:"exact,omitempty"`
	// Prefix of the value. Of a path, with gatewayAPI, it counts whole path elements.
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// Regex in the dialect of the data plane, which also says whether it has to match
	// the whole value.
	// +optional
	Regex string `json:"regex,omitempty"`
}

// SetMirrorRoute adds a managed route that copies the requests that meet any of
// its matches to the canary, and has stable answer them; no match removes it.
type SetMirrorRoute struct {
	// Name must be one of trafficRouting.managedRoutes.
	Name string `json:"name"`
	// +optional
	Match []RouteMatch `json:"match,omitempty"`
	// Percentage of the matching requests. Default 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`
}

// RouteMatch matches a request by all of its fields.
type RouteMatch struct {
	// +optional
	Method *StringMatch `json:"method,omitempty"`
	// +optional
	Path *StringMatch `json:"path,omitempty"`
	// +optional
	Headers map[string]StringMatch `json:"headers,omitempty"`
}

// PluginStep is Argo's alpha step plugin.
type PluginStep struct {
	Name string `json:"name"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// The versions that an experiment's template may be of.
const (
	SpecRefCanary = "canary"
	SpecRefStable = "stable"
)

// RolloutExperimentStep runs an Experiment, named <rollout>-<hash>-<attempt>-<step>.
// When it is Successful the next step follows; Failed takes the version back, and so
// does Error, which isn't held against it; Inconclusive pauses.
type RolloutExperimentStep struct {
	// Templates are the versions to run, one or more; names are unique.
	Templates []RolloutExperimentTemplate `json:"templates"`
	// Duration such as "10m", from the time at which all are available. None: until the
	// required analyses end or, where none is required, all of them.
	// +optional
	Duration DurationString `json:"duration,omitempty"`
	// Analyses start when all versions are available.
	// +optional
	Analyses []RolloutExperimentStepAnalysisTemplateRef `json:"analyses,omitempty"`
	// DryRun names metrics of any of the analyses that don't decide.
	// +optional
	DryRun []DryRun `json:"dryRun,omitempty"`
	// AnalysisRunMetadata goes onto the AnalysisRuns.
	// +optional
	AnalysisRunMetadata *AnalysisRunMetadata `json:"analysisRunMetadata,omitempty"`
	// ScaleDownDelaySeconds is how long the pods stay after the end. Default 30.
	// +optional
	ScaleDownDelaySeconds *int32 `json:"scaleDownDelaySeconds,omitempty"`
}

// RolloutExperimentTemplate is one version in the Experiment. Its pods have the labels of
// the version and a template hash of their own: a Service that selects a version by hash
// doesn't reach them, one that selects by other labels alone does. Metadata can change
// these labels.
type RolloutExperimentTemplate struct {
	// Name, a DNS label.
	Name string `json:"name"`
	// SpecRef is the version whose template is taken.
	// +kubebuilder:validation:Enum=canary;stable
	SpecRef string `json:"specRef"`
	// Replicas. Default 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Metadata is added to that of the version's pods.
	// +optional
	Metadata *PodTemplateMetadata `json:"metadata,omitempty"`
	// Selector must match the labels of the pods. Default: the template hash alone,
	// which is added to any.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Weight of the traffic that it gets while it is available and the Experiment runs: a
	// part of stable's, 0 to maxTrafficWeight (100). Needs a router that can; it gets a
	// Service then.
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Service makes a Service for this version while it has pods.
	// +optional
	Service *TemplateService `json:"service,omitempty"`
}

// RolloutExperimentStepAnalysisTemplateRef names an analysis of the Experiment.
type RolloutExperimentStepAnalysisTemplateRef struct {
	Name         string `json:"name"`
	TemplateName string `json:"templateName"`
	// +optional
	ClusterScope bool `json:"clusterScope,omitempty"`
	// +optional
	Args []AnalysisRunArgument `json:"args,omitempty"`
	// +optional
	RequiredForCompletion bool `json:"requiredForCompletion,omitempty"`
}

// DurationString is a number of seconds or a Go duration such as "5m"; "0" and
// "" mean none.
// +kubebuilder:validation:MaxLength=64
type DurationString string

// TemplateService gives a version of an Experiment a Service.
type TemplateService struct {
	// Name. Default the name of the ReplicaSet.
	// +optional
	Name string `json:"name,omitempty"`
}
