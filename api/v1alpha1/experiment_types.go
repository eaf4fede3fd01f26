package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Experiment runs versions side by side for a while and measures them. The kind
// is served and refused: its behaviour isn't there yet.
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
	Templates []TemplateSpec `json:"templates"`
	// Duration from the time at which all are available. None: until required analyses end.
	// +optional
	Duration DurationString `json:"duration,omitempty"`
	// ProgressDeadlineSeconds. Default 600.
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// +optional
	Terminate bool `json:"terminate,omitempty"`
	// +optional
	Analyses []ExperimentAnalysisTemplateRef `json:"analyses,omitempty"`
	// ScaleDownDelaySeconds. Default 30.
	// +optional
	ScaleDownDelaySeconds *int32 `json:"scaleDownDelaySeconds,omitempty"`
	// +optional
	DryRun []DryRun `json:"dryRun,omitempty"`
	// +optional
	MeasurementRetention []MeasurementRetention `json:"measurementRetention,omitempty"`
	// +optional
	AnalysisRunMetadata *AnalysisRunMetadata `json:"analysisRunMetadata,omitempty"`
}

// TemplateSpec is one version.
type TemplateSpec struct {
	Name string `json:"name"`
	// Replicas. Default 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// +optional
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Template *runtime.RawExtension `json:"template"`
	// +optional
	Service *TemplateService `json:"service,omitempty"`
}

// ExperimentAnalysisTemplateRef names an analysis.
type ExperimentAnalysisTemplateRef struct {
	Name         string `json:"name"`
	TemplateName string `json:"templateName"`
	// +optional
	ClusterScope bool `json:"clusterScope,omitempty"`
	// +optional
	Args []Argument `json:"args,omitempty"`
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
	// +optional
	AvailableAt *metav1.Time `json:"availableAt,omitempty"`
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
	// +optional
	Status string `json:"status,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// +optional
	PodTemplateHash string `json:"podTemplateHash,omitempty"`
}

// ExperimentAnalysisRunStatus is a run's verdict.
type ExperimentAnalysisRunStatus struct {
	Name        string        `json:"name"`
	AnalysisRun string        `json:"analysisRun"`
	Phase       AnalysisPhase `json:"phase"`
	// +optional
	Message string `json:"message,omitempty"`
}
