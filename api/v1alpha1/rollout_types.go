package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Rollout replaces a Deployment and moves traffic from the stable version to a
// new one in steps, measured on the way.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pro,categories=pushback
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.HPAReplicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Weight",type=integer,JSONPath=`.status.canary.weights.canary.weight`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.git.current.shortCommit`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="the name may have at most 52 characters: ReplicaSets, AnalysisRuns and Reverts add a suffix to it"
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RolloutSpec   `json:"spec"`
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is a list of Rollouts.
//
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}

// RolloutSpec is what a Rollout should be. Field names and defaults are those of Argo Rollouts v1.10.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) != has(self.workloadRef)",message="set exactly one of template and workloadRef"
// +kubebuilder:validation:XValidation:rule="has(self.workloadRef) || has(self.selector)",message="selector is required unless workloadRef is set"
// +kubebuilder:validation:XValidation:rule="!has(self.workloadRef) || self.workloadRef.kind != 'PodTemplate' || has(self.selector)",message="a PodTemplate has no selector: set spec.selector"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.selector) || (has(self.selector) && self.selector == oldSelf.selector)",message="selector can't be changed: pods of the old selector would be taken for nobody's"
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds > (has(self.minReadySeconds) ? self.minReadySeconds : 0)",message="progressDeadlineSeconds must be greater than minReadySeconds"
type RolloutSpec struct {
	// Replicas is the wanted number of pods. There is no default in the schema:
	// when Git omits it, the live value stays, and the first value is 1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector matches the pods. It can't be changed. Required unless workloadRef is set.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// Template is the pod template, stored exactly as it was declared: no
	// defaults, and fields that are newer than this build are kept. Its hash is
	// the identity of a version.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Template *runtime.RawExtension `json:"template,omitempty"`

	// WorkloadRef takes the template, and the selector where the spec has none, from a
	// workload in the same namespace. A change of its template starts a rollout.
	// +optional
	WorkloadRef *ObjectRef `json:"workloadRef,omitempty"`

	// MinReadySeconds a pod must be Ready before it counts as available. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Strategy is how a new version replaces the stable one.
	Strategy RolloutStrategy `json:"strategy"`

	// RevisionHistoryLimit is the number of old ReplicaSets kept at 0 pods. Default 10.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Paused stops steps, scaling of versions and the switch of traffic; an abort still works.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is the longest time without progress before the
	// Rollout is Degraded. Default 600. Must be greater than minReadySeconds.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// ProgressDeadlineAbort makes an exceeded deadline abort the update too. Default false.
	// +optional
	ProgressDeadlineAbort bool `json:"progressDeadlineAbort,omitempty"`

	// RestartAt evicts pods that were created before this time.
	// +optional
	RestartAt *metav1.Time `json:"restartAt,omitempty"`

	// RollbackWindow skips steps and analyses when going back to a recent revision.
	// Off by default.
	// +optional
	RollbackWindow *RollbackWindowSpec `json:"rollbackWindow,omitempty"`

	// Analysis bounds the history of AnalysisRuns.
	// +optional
	Analysis *AnalysisRunStrategy `json:"analysis,omitempty"`

	// Supersede says whether a newer template ends an update in progress
	// (Always, the default) or waits for its end (Wait), be it a promotion or an
	// abort. A return to the stable template never waits. Steps and settings that
	// come with the newer template hold for the update in progress at once.
	// +kubebuilder:validation:Enum=Always;Wait
	// +optional
	Supersede SupersedePolicy `json:"supersede,omitempty"`

	// Revert overrides the GitSync's revert settings for this Rollout.
	// +optional
	Revert *RevertSpec `json:"revert,omitempty"`
}

// SupersedePolicy says what a newer template does to an update in progress.
type SupersedePolicy string

// The supersede policies.
const (
	SupersedeAlways SupersedePolicy = "Always"
	SupersedeWait   SupersedePolicy = "Wait"
)

// The values of spec.workloadRef.scaleDown.
const (
	ScaleDownNever         = "never"
	ScaleDownOnSuccess     = "onsuccess"
	ScaleDownProgressively = "progressively"
)

// ObjectRef names a workload that holds a pod template.
//
// +kubebuilder:validation:XValidation:rule="self.apiVersion == (self.kind == 'PodTemplate' ? 'v1' : 'apps/v1')",message="apiVersion must be apps/v1 for a Deployment or ReplicaSet, and v1 for a PodTemplate"
// +kubebuilder:validation:XValidation:rule="self.kind != 'PodTemplate' || !has(self.scaleDown) || self.scaleDown == 'never'",message="a PodTemplate has no pods that could be scaled down: leave scaleDown out"
type ObjectRef struct {
	// APIVersion of the workload: apps/v1 or v1.
	APIVersion string `json:"apiVersion"`
	// Kind of the workload.
	// +kubebuilder:validation:Enum=Deployment;ReplicaSet;PodTemplate
	Kind string `json:"kind"`
	// Name of the workload, in the Rollout's namespace.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// ScaleDown says when the workload itself is scaled to 0: never (the default);
	// onsuccess, when the Rollout is Healthy; or progressively, by as many pods as the
	// Rollout has available, and to 0 when it is Healthy. The replicas that it had are
	// noted on it (annotation pushback.dev/workload), and it gets them back when this
	// goes back to never, names another workload, or the Rollout is deleted: then the
	// Rollout's own pods stay until the workload's are available.
	// +kubebuilder:validation:Enum=never;onsuccess;progressively
	// +optional
	ScaleDown string `json:"scaleDown,omitempty"`
}

// RollbackWindowSpec bounds fast rollbacks.
type RollbackWindowSpec struct {
	// Revisions is how many revisions back a return skips steps and analyses: fewer
	// ReplicaSets than this lie between it and the stable version, by their revision
	// counters. Default 0, which is none.
	// +kubebuilder:validation:Minimum=0
	Revisions int32 `json:"revisions,omitempty"`
}

// AnalysisRunStrategy bounds the history of AnalysisRuns and Experiments.
type AnalysisRunStrategy struct {
	// SuccessfulRunHistoryLimit is how many successful runs are kept. Default 5.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulRunHistoryLimit *int32 `json:"successfulRunHistoryLimit,omitempty"`
	// UnsuccessfulRunHistoryLimit is how many other finished runs are kept. Default 5.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UnsuccessfulRunHistoryLimit *int32 `json:"unsuccessfulRunHistoryLimit,omitempty"`
}

// RolloutStrategy is exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.canary) != has(self.blueGreen)",message="set exactly one of canary and blueGreen"
type RolloutStrategy struct {
	// +optional
	Canary *CanaryStrategy `json:"canary,omitempty"`
	// +optional
	BlueGreen *BlueGreenStrategy `json:"blueGreen,omitempty"`
}

// BlueGreenStrategy keeps a preview beside the active version and switches a Service.
type BlueGreenStrategy struct {
	// ActiveService gets the selector of the active version.
	ActiveService string `json:"activeService"`
	// PreviewService gets the selector of the newest version.
	// +optional
	PreviewService string `json:"previewService,omitempty"`
	// PreviewReplicaCount is the size of the preview until promotion. Default spec.replicas.
	// +optional
	PreviewReplicaCount *int32 `json:"previewReplicaCount,omitempty"`
	// AutoPromotionEnabled false pauses before the switch. Default true.
	// +optional
	AutoPromotionEnabled *bool `json:"autoPromotionEnabled,omitempty"`
	// AutoPromotionSeconds resumes that pause after so many seconds. Default 0: no pause.
	// +optional
	AutoPromotionSeconds int32 `json:"autoPromotionSeconds,omitempty"`
	// MaxUnavailable pods during a restart: a number or a percentage of spec.replicas,
	// rounded down; one at least. An update never takes any. Default 25%.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// ScaleDownDelaySeconds the old version lives after the switch. Default 30.
	// +optional
	ScaleDownDelaySeconds *int32 `json:"scaleDownDelaySeconds,omitempty"`
	// ScaleDownDelayRevisionLimit is how many old versions may wait out that delay. Default no limit.
	// +optional
	ScaleDownDelayRevisionLimit *int32 `json:"scaleDownDelayRevisionLimit,omitempty"`
	// PrePromotionAnalysis must succeed before the switch.
	// +optional
	PrePromotionAnalysis *RolloutAnalysis `json:"prePromotionAnalysis,omitempty"`
	// PostPromotionAnalysis runs after the switch; a failure switches back.
	// +optional
	PostPromotionAnalysis *RolloutAnalysis `json:"postPromotionAnalysis,omitempty"`
	// AntiAffinity between the versions.
	// +optional
	AntiAffinity *AntiAffinity `json:"antiAffinity,omitempty"`
	// ActiveMetadata on pods of the active version.
	// +optional
	ActiveMetadata *PodTemplateMetadata `json:"activeMetadata,omitempty"`
	// PreviewMetadata on pods of the preview.
	// +optional
	PreviewMetadata *PodTemplateMetadata `json:"previewMetadata,omitempty"`
	// AbortScaleDownDelaySeconds the preview lives after an abort; 0 keeps it. Default 30.
	// +optional
	AbortScaleDownDelaySeconds *int32 `json:"abortScaleDownDelaySeconds,omitempty"`
}

// AntiAffinity keeps the new version's pods off the hosts of the stable one.
type AntiAffinity struct {
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution *PreferredDuringSchedulingIgnoredDuringExecution `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *RequiredDuringSchedulingIgnoredDuringExecution `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// PreferredDuringSchedulingIgnoredDuringExecution is a soft anti-affinity.
type PreferredDuringSchedulingIgnoredDuringExecution struct {
	// Weight from 1 to 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// RequiredDuringSchedulingIgnoredDuringExecution is a hard anti-affinity.
type RequiredDuringSchedulingIgnoredDuringExecution struct{}

// PodTemplateMetadata is put on the pods of a side while it has that role.
type PodTemplateMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RolloutAnalysis names the templates of an AnalysisRun and their arguments.
type RolloutAnalysis struct {
	// Templates whose metrics are measured, merged in this order.
	// +optional
	Templates []AnalysisTemplateRef `json:"templates,omitempty"`
	// Args for the templates. An argument that no template declares is refused.
	// +optional
	Args []AnalysisRunArgument `json:"args,omitempty"`
	// DryRun names metrics (regular expressions) that don't decide.
	// +optional
	DryRun []DryRun `json:"dryRun,omitempty"`
	// MeasurementRetention per metric (regular expressions).
	// +optional
	MeasurementRetention []MeasurementRetention `json:"measurementRetention,omitempty"`
	// AnalysisRunMetadata is put on the AnalysisRun.
	// +optional
	AnalysisRunMetadata *AnalysisRunMetadata `json:"analysisRunMetadata,omitempty"`
}

// RolloutAnalysisBackground runs beside the steps.
type RolloutAnalysisBackground struct {
	RolloutAnalysis `json:",inline"`
	// StartingStep is the index of the step at which it starts. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingStep *int32 `json:"startingStep,omitempty"`
}

// AnalysisTemplateRef names a template.
type AnalysisTemplateRef struct {
	// TemplateName in the Rollout's namespace, or a ClusterAnalysisTemplate.
	TemplateName string `json:"templateName"`
	// ClusterScope true takes a ClusterAnalysisTemplate. Default false.
	// +optional
	ClusterScope bool `json:"clusterScope,omitempty"`
}

// AnalysisRunArgument is a value for an argument of the templates.
type AnalysisRunArgument struct {
	Name string `json:"name"`
	// +optional
	Value string `json:"value,omitempty"`
	// +optional
	ValueFrom *ArgumentValueFrom `json:"valueFrom,omitempty"`
}

// ArgumentValueFrom is exactly one of its fields.
type ArgumentValueFrom struct {
	// PodTemplateHashValue is the hash of the Stable or of the Latest version.
	// +optional
	PodTemplateHashValue *ValueFromPodTemplateHash `json:"podTemplateHashValue,omitempty"`
	// FieldRef is a path into the Rollout.
	// +optional
	FieldRef *FieldRef `json:"fieldRef,omitempty"`
}

// ValueFromPodTemplateHash is Stable or Latest.
// +kubebuilder:validation:Enum=Stable;Latest
type ValueFromPodTemplateHash string

// The versions whose hash an argument can take.
const (
	HashStable ValueFromPodTemplateHash = "Stable"
	HashLatest ValueFromPodTemplateHash = "Latest"
)

// FieldRef is a path into an object.
type FieldRef struct {
	FieldPath string `json:"fieldPath"`
}

// AnalysisRunMetadata is put on a generated AnalysisRun.
type AnalysisRunMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
