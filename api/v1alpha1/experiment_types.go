package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Experiment runs versions side by side for a while and measures them. Nothing but
// terminate, scaleDownDelaySeconds and the templates' replicas can be changed once it
// has begun; to run it again, make another one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pexp,categories=pushback
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ExperimentSpec   `json:"spec"`
	Status ExperimentStatus `json:"status,omitempty"`
}

// ExperimentList is a list of Experiments.
//
// +kubebuilder:object:root=true
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Experiment `json:"items"`
}

// ExperimentSpec is what to run and to measure.
type ExperimentSpec struct {
	// Templates are the versions, one or more; names are unique.
	Templates []TemplateSpec `json:"templates"`
	// Duration from the time at which all are available, such as "10m". It goes on
	// beyond that until the required analyses have ended. None: it ends with the required
	// analyses or, where none is required, with all of them; without any it ends when
	// it is terminated.
	// +optional
	Duration DurationString `json:"duration,omitempty"`
	// ProgressDeadlineSeconds is how long a version may go without one more available
	// pod while it lacks some; then the Experiment has Failed. 1 or more. Default 600.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// Terminate ends it early: its runs are ended, and what they have measured is the verdict.
	// +optional
	Terminate bool `json:"terminate,omitempty"`
	// Analyses start when all versions are available. One that is Failed, Error or
	// Inconclusive ends the Experiment so.
	// +optional
	Analyses []ExperimentAnalysisTemplateRef `json:"analyses,omitempty"`
	// ScaleDownDelaySeconds is how long the pods stay after the end. 0 or more. Default 30.
	// +optional
	ScaleDownDelaySeconds *int32 `json:"scaleDownDelaySeconds,omitempty"`
	// DryRun names metrics of any of the analyses that don't decide.
	// +optional
	DryRun []DryRun `json:"dryRun,omitempty"`
	// MeasurementRetention per metric of any of the analyses.
	// +optional
	MeasurementRetention []MeasurementRetention `json:"measurementRetention,omitempty"`
	// AnalysisRunMetadata goes onto the AnalysisRuns.
	// +optional
	AnalysisRunMetadata *AnalysisRunMetadata `json:"analysisRunMetadata,omitempty"`
}

// TemplateSpec is one version. Its ReplicaSet is <experiment>-<name>; its pods carry
// a template hash of their own, so that a Service that selects a version of a Rollout
// doesn't reach them.
type TemplateSpec struct {
	// Name, a DNS label.
	Name string `json:"name"`
	// Replicas. Default 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// MinReadySeconds a pod must be ready to be available. Default 0.
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// Selector must match the template's labels. Default: the template hash alone,
	// which is added to any.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template *runtime.RawExtension `json:"template"`
	// Service makes a Service for this version while it has pods, with the ports of the
	// template's containers.
	// +optional
	Service *TemplateService `json:"service,omitempty"`
}

// ExperimentAnalysisTemplateRef names an analysis.
type ExperimentAnalysisTemplateRef struct {
	// Name, a DNS label: the run is <experiment>-<name>.
	Name         string `json:"name"`
	TemplateName string `json:"templateName"`
	// +optional
	ClusterScope bool `json:"clusterScope,omitempty"`
	// Args of the template. A value may hold {{templates.<name>.podTemplateHash}},
	// {{templates.<name>.replicaset.name}}, {{experiment.availableAt}} and, with a
	// duration, {{experiment.finishedAt}}.
	// +optional
	Args []Argument `json:"args,omitempty"`
	// RequiredForCompletion keeps the Experiment going until this analysis has ended.
	// +optional
	RequiredForCompletion bool `json:"requiredForCompletion,omitempty"`
}

// ExperimentStatus is the state of an Experiment.
type ExperimentStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase AnalysisPhase `json:"phase,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// AvailableAt is when all versions were seen available for the first time.
	// +optional
	AvailableAt *metav1.Time `json:"availableAt,omitempty"`
	// CompletedAt is when it ended; the pods stay for scaleDownDelaySeconds from then. Ours.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// SpecHash tells an edit of what can't be changed any more. Ours.
	// +optional
	SpecHash string `json:"specHash,omitempty"`
	// +optional
	TemplateStatuses []TemplateStatus `json:"templateStatuses,omitempty"`
	// +optional
	AnalysisRuns []ExperimentAnalysisRunStatus `json:"analysisRuns,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TemplateStatus is the state of one version.
type TemplateStatus struct {
	Name string `json:"name"`
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// Status is Progressing, Running, Successful or Failed.
	// +optional
	Status TemplateStatusCode `json:"status,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// MostAvailable is the highest count of available pods since it began to wait for
	// them: a pod that flickers is no progress. Ours.
	// +optional
	MostAvailable int32 `json:"mostAvailable,omitempty"`
	// LastTransitionTime is when the status changed, or when one more pod was available
	// than before: progressDeadlineSeconds count from then.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// +optional
	PodTemplateHash string `json:"podTemplateHash,omitempty"`
}

// TemplateStatusCode is the state of one version of an Experiment.
type TemplateStatusCode string

// The states of a version.
const (
	TemplateStatusProgressing TemplateStatusCode = "Progressing"
	TemplateStatusRunning     TemplateStatusCode = "Running"
	TemplateStatusSuccessful  TemplateStatusCode = "Successful"
	TemplateStatusFailed      TemplateStatusCode = "Failed"
)

// ExperimentAnalysisRunStatus is a run's verdict.
type ExperimentAnalysisRunStatus struct {
	Name        string        `json:"name"`
	AnalysisRun string        `json:"analysisRun"`
	Phase       AnalysisPhase `json:"phase"`
	// +optional
	Message string `json:"message,omitempty"`
}
