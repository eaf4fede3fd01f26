package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// AnalysisTemplate is a reusable list of metrics with arguments.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pat,categories=pushback
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.spec.metrics[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AnalysisTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AnalysisTemplateSpec `json:"spec"`
}

// AnalysisTemplateList is a list of AnalysisTemplates.
//
// +kubebuilder:object:root=true
type AnalysisTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AnalysisTemplate `json:"items"`
}

// ClusterAnalysisTemplate is an AnalysisTemplate for every namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pcat,categories=pushback
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.spec.metrics[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterAnalysisTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AnalysisTemplateSpec `json:"spec"`
}

// ClusterAnalysisTemplateList is a list of ClusterAnalysisTemplates.
//
// +kubebuilder:object:root=true
type ClusterAnalysisTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterAnalysisTemplate `json:"items"`
}

// AnalysisTemplateSpec is a list of metrics with arguments.
type AnalysisTemplateSpec struct {
	// Metrics to measure. Names are unique.
	// +optional
	Metrics []Metric `json:"metrics,omitempty"`
	// Args that metrics use as {{args.name}}.
	// +optional
	Args []Argument `json:"args,omitempty"`
	// DryRun names metrics (regular expressions) that don't decide.
	// +optional
	DryRun []DryRun `json:"dryRun,omitempty"`
	// MeasurementRetention per metric (regular expressions).
	// +optional
	MeasurementRetention []MeasurementRetention `json:"measurementRetention,omitempty"`
	// Templates that are merged in.
	// +optional
	Templates []AnalysisTemplateRef `json:"templates,omitempty"`
}

// ConditionLanguage is the language of a metric's conditions.
// +kubebuilder:validation:Enum=CEL;Expr
type ConditionLanguage string

// The condition languages.
const (
	ConditionCEL  ConditionLanguage = "CEL"
	ConditionExpr ConditionLanguage = "Expr"
)

// Metric is a measurement, repeated, with the conditions that judge it.
type Metric struct {
	// Name, unique in the merged templates.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Interval between measurements, such as "30s". None: one measurement.
	// +optional
	Interval DurationString `json:"interval,omitempty"`
	// InitialDelay before the first measurement. Default 0.
	// +optional
	InitialDelay DurationString `json:"initialDelay,omitempty"`
	// Count of measurements. Default 1 without an interval, unlimited with one.
	// +kubebuilder:validation:XIntOrString
	// +optional
	Count *intstr.IntOrString `json:"count,omitempty"`
	// SuccessCondition over result.
	// +optional
	SuccessCondition string `json:"successCondition,omitempty"`
	// FailureCondition over result.
	// +optional
	FailureCondition string `json:"failureCondition,omitempty"`
	// ConditionLanguage of both conditions: CEL (default) or Expr (Argo's). Ours.
	// +optional
	ConditionLanguage ConditionLanguage `json:"conditionLanguage,omitempty"`
	// FailureLimit is how many failures are tolerated; -1 tolerates all. Default 0.
	// +kubebuilder:validation:XIntOrString
	// +optional
	FailureLimit *intstr.IntOrString `json:"failureLimit,omitempty"`
	// InconclusiveLimit is how many inconclusive measurements are tolerated. Default 0.
	// +kubebuilder:validation:XIntOrString
	// +optional
	InconclusiveLimit *intstr.IntOrString `json:"inconclusiveLimit,omitempty"`
	// ConsecutiveErrorLimit is how many errors in a row are tolerated. Default 4.
	// +kubebuilder:validation:XIntOrString
	// +optional
	ConsecutiveErrorLimit *intstr.IntOrString `json:"consecutiveErrorLimit,omitempty"`
	// ConsecutiveSuccessLimit ends the metric Successful after so many in a row. Default 0: off.
	// +kubebuilder:validation:XIntOrString
	// +optional
	ConsecutiveSuccessLimit *intstr.IntOrString `json:"consecutiveSuccessLimit,omitempty"`
	// NoData decides on a measurement without data (null, an empty list or no series),
	// of the metric or of its baseline, before the conditions do. Default Condition. Not
	// for providers that judge for themselves. Ours.
	// +optional
	NoData NoDataPolicy `json:"noData,omitempty"`
	// MinSamples lets a measurement wait until there is enough to measure. Not for
	// providers that judge for themselves. Ours.
	// +optional
	MinSamples *MinSamples `json:"minSamples,omitempty"`
	// Baseline compares with what another version measures at the same time. Not for
	// providers that judge for themselves. Ours.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`
	// Provider to ask. Exactly one of its fields.
	Provider MetricProvider `json:"provider"`
}

// NoDataPolicy is what becomes of a measurement without data.
// +kubebuilder:validation:Enum=Condition;Fail;Inconclusive;Wait;Pass
type NoDataPolicy string

// The policies.
const (
	// NoDataCondition lets the conditions see the empty value; one that doesn't speak of
	// absence is an Error then.
	NoDataCondition NoDataPolicy = "Condition"
	// NoDataFail is Failed.
	NoDataFail NoDataPolicy = "Fail"
	// NoDataInconclusive is Inconclusive.
	NoDataInconclusive NoDataPolicy = "Inconclusive"
	// NoDataWait asks again after the metric's interval, or 10 s without one, until there
	// is data or the run is ended.
	NoDataWait NoDataPolicy = "Wait"
	// NoDataPass is Successful.
	NoDataPass NoDataPolicy = "Pass"
)

// MinSamples is how much there must be to measure. Below it the measurement waits, and
// the metric's own provider isn't asked.
type MinSamples struct {
	// Count of samples, such as requests, at least 1.
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count"`
	// Provider that counts them: a number, or a list of numbers, which are added up. No
	// data is 0. Exactly one of its fields, and none that judges for itself.
	Provider MetricProvider `json:"provider"`
}

// Baseline is a second question: the metric's own, with other arguments. The conditions
// see the outcome of the comparison as result; both values are kept with the measurement.
type Baseline struct {
	// Args replace the metric's arguments in the question for the baseline, such as the
	// hash of the new version by {{args.stable-hash}}. At least one of them must be used
	// by the provider: otherwise both questions are the same.
	// +kubebuilder:validation:MinItems=1
	Args []BaselineArgument `json:"args"`
	// Comparison of the two. Default Ratio.
	// +optional
	Comparison Comparison `json:"comparison,omitempty"`
}

// BaselineArgument is an argument with another value for the baseline.
type BaselineArgument struct {
	// Name of an argument that the metric's provider uses.
	Name string `json:"name"`
	// Value, which may hold {{args.name}}.
	Value string `json:"value"`
}

// Comparison is how a value and its baseline are compared.
// +kubebuilder:validation:Enum=Ratio;Difference;MannWhitneyU
type Comparison string

// The comparisons. Ratio and Difference want one number on both sides; with a baseline
// of 0 a ratio is infinite, or not a number if both are.
const (
	// ComparisonRatio gives result as value / baseline.
	ComparisonRatio Comparison = "Ratio"
	// ComparisonDifference gives result as value - baseline.
	ComparisonDifference Comparison = "Difference"
	// ComparisonMannWhitneyU tests whether the values of two series, such as those of a
	// range query, tend to be larger on one side (H. B. Mann, D. R. Whitney, 1947). result
	// is a map: result.p is the two-sided p-value, result.greater the p-value that the new
	// version's are larger and result.less that they are smaller; result.median and
	// result.baselineMedian, result.count and result.baselineCount describe both sides.
	ComparisonMannWhitneyU Comparison = "MannWhitneyU"
)

// DryRun names metrics that don't decide.
type DryRun struct {
	// MetricName is a regular expression.
	MetricName string `json:"metricName"`
}

// MeasurementRetention bounds the measurements kept in the status.
type MeasurementRetention struct {
	// MetricName is a regular expression.
	MetricName string `json:"metricName"`
	// Limit of measurements kept. Default 10.
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit"`
}

// Argument of a template or a run.
type Argument struct {
	Name string `json:"name"`
	// Value, or the default in a template.
	// +optional
	Value *string `json:"value,omitempty"`
	// +optional
	ValueFrom *ValueFrom `json:"valueFrom,omitempty"`
}

// ValueFrom is exactly one of its fields.
type ValueFrom struct {
	// SecretKeyRef in the run's namespace, read at each measurement.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`
	// FieldRef into the Rollout.
	// +optional
	FieldRef *FieldRef `json:"fieldRef,omitempty"`
}

// SecretKeyRef names a key of a Secret.
type SecretKeyRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// AnalysisPhase is the state of a run, a metric or a measurement.
type AnalysisPhase string

// The phases of an analysis.
const (
	AnalysisPhasePending      AnalysisPhase = "Pending"
	AnalysisPhaseRunning      AnalysisPhase = "Running"
	AnalysisPhaseSuccessful   AnalysisPhase = "Successful"
	AnalysisPhaseFailed       AnalysisPhase = "Failed"
	AnalysisPhaseError        AnalysisPhase = "Error"
	AnalysisPhaseInconclusive AnalysisPhase = "Inconclusive"
)

// Completed says that the phase is final.
func (p AnalysisPhase) Completed() bool {
	switch p {
	case AnalysisPhaseSuccessful, AnalysisPhaseFailed, AnalysisPhaseError, AnalysisPhaseInconclusive:
		return true
	}
	return false
}

// AnalysisRun measures metrics and keeps what was measured.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=par,categories=pushback
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.metadata.labels.pushback\.dev/rollout`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type AnalysisRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AnalysisRunSpec   `json:"spec"`
	Status AnalysisRunStatus `json:"status,omitempty"`
}

// AnalysisRunList is a list of AnalysisRuns.
//
// +kubebuilder:object:root=true
type AnalysisRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AnalysisRun `json:"items"`
}

// AnalysisRunSpec is a copy of the merged templates with values for the arguments.
type AnalysisRunSpec struct {
	Metrics []Metric `json:"metrics"`
	// +optional
	Args []Argument `json:"args,omitempty"`
	// Terminate ends the run early.
	// +optional
	Terminate bool `json:"terminate,omitempty"`
	// +optional
	DryRun []DryRun `json:"dryRun,omitempty"`
	// +optional
	MeasurementRetention []MeasurementRetention `json:"measurementRetention,omitempty"`
	// TTLStrategy deletes the run some time after its end. Default never.
	// +optional
	TTLStrategy *TTLStrategy `json:"ttlStrategy,omitempty"`
}

// TTLStrategy says how long a finished run is kept, in seconds.
type TTLStrategy struct {
	// +optional
	SecondsAfterCompletion *int32 `json:"secondsAfterCompletion,omitempty"`
	// +optional
	SecondsAfterFailure *int32 `json:"secondsAfterFailure,omitempty"`
	// +optional
	SecondsAfterSuccess *int32 `json:"secondsAfterSuccess,omitempty"`
}

// AnalysisRunStatus is what was measured.
type AnalysisRunStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase AnalysisPhase `json:"phase,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	MetricResults []MetricResult `json:"metricResults,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// AnsweredAt is when, after the run had ended Error, the providers of all metrics
	// that ended it were seen to answer again. It is no verdict: the phase stays Error.
	// Absent while they don't, and when nobody asked (annotation pushback.dev/probe). Ours.
	// +optional
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`
	// RunSummary counts the metrics that decide.
	// +optional
	RunSummary RunSummary `json:"runSummary,omitempty"`
	// DryRunSummary counts the metrics that don't.
	// +optional
	DryRunSummary *RunSummary `json:"dryRunSummary,omitempty"`
	// Conditions per kstatus: Ready, Reconciling, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RunSummary counts metrics by phase.
type RunSummary struct {
	// +optional
	Count int32 `json:"count,omitempty"`
	// +optional
	Successful int32 `json:"successful,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// +optional
	Inconclusive int32 `json:"inconclusive,omitempty"`
	// +optional
	Error int32 `json:"error,omitempty"`
}

// MetricResult is what one metric measured.
type MetricResult struct {
	Name  string        `json:"name"`
	Phase AnalysisPhase `json:"phase"`
	// Measurements, the last ones up to the retention (10).
	// +optional
	Measurements []Measurement `json:"measurements,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Count of measurements that are neither errors nor under way.
	// +optional
	Count int32 `json:"count,omitempty"`
	// +optional
	Successful int32 `json:"successful,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// +optional
	Inconclusive int32 `json:"inconclusive,omitempty"`
	// +optional
	Error int32 `json:"error,omitempty"`
	// +optional
	ConsecutiveError int32 `json:"consecutiveError,omitempty"`
	// +optional
	ConsecutiveSuccess int32 `json:"consecutiveSuccess,omitempty"`
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// Metadata such as the query that was sent, without secrets.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
}

// Measurement is one value and its verdict.
type Measurement struct {
	Phase AnalysisPhase `json:"phase"`
	// +optional
	Message string `json:"message,omitempty"`
	// StartedAt is when the provider was asked.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Value as text; NaN and Inf as such; at most 4 KiB, then "…truncated".
	// +optional
	Value string `json:"value,omitempty"`
	// Metadata holds the provider's handle while it is under way.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// ResumeAt is when a measurement under way is asked for again.
	// +optional
	ResumeAt *metav1.Time `json:"resumeAt,omitempty"`
}
