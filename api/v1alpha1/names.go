package v1alpha1

// Field managers. Each field that Pushback writes has exactly one of them.
const (
	// FieldManagerGitSync owns what Git declares.
	FieldManagerGitSync = "pushback-gitsync"
	// FieldManagerRollout owns ReplicaSets, their sizes, and the status of Rollouts.
	FieldManagerRollout = "pushback-rollout"
	// FieldManagerRouter owns weights, Service selectors and managed routes.
	FieldManagerRouter = "pushback-router"
)

// Labels on ReplicaSets, their selectors and pods, and on AnalysisRuns.
const (
	// TemplateHashLabel carries the template hash: 10 hex digits.
	TemplateHashLabel = "pushback.dev/template-hash"
	// ArgoTemplateHashLabel carries the same value on the pods of Rollouts that
	// were translated from Argo's, so that their queries go on working.
	ArgoTemplateHashLabel = "rollouts-pod-template-hash"
	// RolloutNameLabel names the Rollout that an AnalysisRun or Revert belongs to.
	RolloutNameLabel = "pushback.dev/rollout"
	// RolloutTypeLabel says why an AnalysisRun was made: Step or Background.
	RolloutTypeLabel = "pushback.dev/rollout-type"
	// AttemptLabel is the attempt that an AnalysisRun or Revert belongs to.
	AttemptLabel = "pushback.dev/attempt"
	// StepIndexLabel is the index of the step an AnalysisRun belongs to.
	StepIndexLabel = "pushback.dev/step-index"
	// AnalysisRunUIDLabel on a Job is the uid of the AnalysisRun that it measures for.
	AnalysisRunUIDLabel = "pushback.dev/analysis-run-uid"
	// GitSyncNameLabel and GitSyncNamespaceLabel name the GitSync that applied an object.
	GitSyncNameLabel = "pushback.dev/gitsync-name"
	// GitSyncNamespaceLabel is the namespace half of GitSyncNameLabel.
	GitSyncNamespaceLabel = "pushback.dev/gitsync-namespace"
)

// Annotations.
const (
	// SourceAnnotation on a Rollout is a JSON object {"hash","commit","file","gitsync",…}
	// written by gitsync when the hash of the declared template changes, and only then.
	SourceAnnotation = "pushback.dev/source"
	// TranslatedFromAnnotation names the foreign API version that a document was translated from.
	TranslatedFromAnnotation = "pushback.dev/translated-from"
	// IrreversibleAnnotation on a pod template asks a person before its first pod starts.
	IrreversibleAnnotation = "pushback.dev/irreversible"
	// HashVersionAnnotation on a ReplicaSet is the version of the hash that named it.
	HashVersionAnnotation = "pushback.dev/template-hash-version"
	// RevisionAnnotation on a ReplicaSet is a counter that rises with every template taken up.
	RevisionAnnotation = "pushback.dev/revision"
	// RoleAnnotation on a ReplicaSet is "stable", "rejected" or, of a version that was
	// the active one of a blue-green Rollout and still has pods, "retired"; absent otherwise.
	RoleAnnotation = "pushback.dev/role"
	// ScaleDownDeadlineAnnotation on a ReplicaSet is the RFC 3339 time at which it may be scaled to 0.
	ScaleDownDeadlineAnnotation = "pushback.dev/scale-down-deadline"
	// EphemeralMetadataAnnotation on a ReplicaSet is a JSON object that tells which
	// labels and annotations of its template and pods are there for its role.
	EphemeralMetadataAnnotation = "pushback.dev/ephemeral-metadata"
	// ProbeAnnotation on an AnalysisRun that ended Error asks for its providers to be
	// tried until they answer again (status.answeredAt). Its value is the RFC 3339 time
	// before which they are not tried. Written and taken off by the Rollout's controller.
	ProbeAnnotation = "pushback.dev/probe"
	// ExperimentAnnotation and ExperimentTemplateAnnotation on the ReplicaSets and Services
	// of an Experiment name it and the version.
	ExperimentAnnotation         = "pushback.dev/experiment"
	ExperimentTemplateAnnotation = "pushback.dev/experiment-template"
	// AnalysisRunAnnotation, MetricAnnotation and MeasurementAnnotation on a Job name the
	// AnalysisRun, the metric and the one measurement (<run uid>.<metric>.<number>) that it is for.
	AnalysisRunAnnotation = "pushback.dev/analysis-run"
	MetricAnnotation      = "pushback.dev/metric"
	MeasurementAnnotation = "pushback.dev/measurement"
	// RoutedAnnotation on an Experiment keeps its pods after its end, because its Rollout may
	// still send traffic to them. Written and taken off by the Rollout's controller.
	RoutedAnnotation = "pushback.dev/routed"
	// PruneAnnotation with the value "disabled" keeps an object that left Git.
	PruneAnnotation = "pushback.dev/prune"
	// WorkloadAnnotation on a Deployment or ReplicaSet that spec.workloadRef names, and
	// that is scaled down in favour of the Rollout, is a JSON object: whose it is, the
	// replicas that it had before and gets back, and those that it was given. While it
	// is there, spec.replicas belongs to the Rollout's controller, and gitsync leaves it out.
	WorkloadAnnotation = "pushback.dev/workload"
	// ReconcileAnnotation with the value "disabled" makes gitsync leave an object alone.
	ReconcileAnnotation = "pushback.dev/reconcile"
)

// WorkloadFinalizer on a Rollout keeps it until the workload that it has scaled down
// serves again. It is there only while one is scaled down.
const WorkloadFinalizer = "pushback.dev/workload"

// TrafficFinalizer on a Rollout keeps it until the traffic that goes through it is
// given back: weights, managed routes and the hashes in selectors.
const TrafficFinalizer = "pushback.dev/traffic"

// Values of RoleAnnotation.
const (
	RoleStable   = "stable"
	RoleRejected = "rejected"
	RoleRetired  = "retired"
)

// Verbs: annotations on a Rollout with the value "<hash>/<step>/<token>". The
// controller echoes the token in status.verbs in the same write as the effect.
const (
	PromoteAnnotation     = "pushback.dev/promote"
	PromoteFullAnnotation = "pushback.dev/promote-full"
	AbortAnnotation       = "pushback.dev/abort"
	// AbortKeepGitAnnotation set to the abort's token makes that abort write no revert.
	AbortKeepGitAnnotation = "pushback.dev/abort-keep-git"
	RetryAnnotation        = "pushback.dev/retry"
	PauseAnnotation        = "pushback.dev/pause"
	ResumeAnnotation       = "pushback.dev/resume"
	RestartAnnotation      = "pushback.dev/restart"
)

// Trailers that Pushback reads from commits.
const (
	// RetryTrailer "Pushback-Retry: <hash>" lifts the hold on a rejected hash.
	RetryTrailer = "Pushback-Retry"
	// IrreversibleTrailer "Pushback-Irreversible: <rollout>" marks a change as one-way.
	IrreversibleTrailer = "Pushback-Irreversible"
)

// Trailers that Pushback writes into revert commits.
const (
	RolloutTrailer          = "Pushback-Rollout"
	RejectedTemplateTrailer = "Pushback-Rejected-Template"
	RestoredTemplateTrailer = "Pushback-Restored-Template"
	RejectedCommitTrailer   = "Pushback-Rejected-Commit"
	AttemptTrailer          = "Pushback-Attempt"
	AnalysisTrailer         = "Pushback-Analysis"
	// UndoTrailer is the token of an undo. Its commits say Undone where those of
	// reverts say Rejected.
	UndoTrailer           = "Pushback-Undo"
	UndoneTemplateTrailer = "Pushback-Undone-Template"
	UndoneCommitTrailer   = "Pushback-Undone-Commit"
)

// Condition types beside Flux's Ready, Reconciling and Stalled
// (github.com/fluxcd/pkg/apis/meta).
const (
	// TemplateModifiedCondition is True while the live template of a Rollout
	// hashes otherwise than the one that Git declares; absent otherwise.
	TemplateModifiedCondition = "TemplateModified"
	// HeldCondition is True while Git declares a rejected template; absent otherwise.
	HeldCondition = "Held"
	// RevertedCondition on a Rollout says whether Git was brought back after an
	// abort: Unknown while under way, True when observed, False when blocked; absent otherwise.
	RevertedCondition = "Reverted"
	// AvailableCondition is Argo's: True while at least the wanted number of pods serve.
	AvailableCondition = "Available"
	// ProgressingCondition is Argo's: False with ProgressDeadlineExceeded or RolloutAborted.
	ProgressingCondition = "Progressing"
	// HealthyCondition is Argo's: True while the phase is Healthy.
	HealthyCondition = "Healthy"
	// PausedCondition is Argo's: True while paused; absent otherwise.
	PausedCondition = "Paused"
	// InvalidSpecCondition is Argo's: True while the spec can't be used; absent otherwise.
	InvalidSpecCondition = "InvalidSpec"
	// WorkloadHasScalerCondition is True while an autoscaler sizes the workload that
	// spec.workloadRef.scaleDown scales down: two would; absent otherwise.
	WorkloadHasScalerCondition = "WorkloadHasScaler"
)

// Reasons of Rollout conditions and events.
const (
	ReasonHealthy                  = "Healthy"
	ReasonProgressing              = "Progressing"
	ReasonPaused                   = "RolloutPaused"
	ReasonResumed                  = "RolloutResumed"
	ReasonAborted                  = "RolloutAborted"
	ReasonRetry                    = "RolloutRetry"
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	ReasonInvalidSpec              = "InvalidSpec"
	ReasonHeld                     = "Held"
	ReasonUnmeasured               = "Unmeasured"
	ReasonNoSideCanServe           = "NoSideCanServe"
	ReasonRevertBlocked            = "RevertBlocked"
	ReasonRolloutUpdated           = "RolloutUpdated"
	ReasonRolloutCompleted         = "RolloutCompleted"
	ReasonStepCompleted            = "RolloutStepCompleted"
	ReasonSkipSteps                = "SkipSteps"
	ReasonTrafficWeightUpdated     = "TrafficWeightUpdated"
	ReasonTrafficReleased          = "TrafficReleased"
	ReasonTrafficRoutingError      = "TrafficRoutingError"
	ReasonSwitchService            = "SwitchService"
	ReasonScalingReplicaSet        = "ScalingReplicaSet"
	ReasonNewReplicaSetCreated     = "NewReplicaSetCreated"
	ReasonAnalysisRunRunning       = "AnalysisRunRunning"
	ReasonAnalysisRunSuccessful    = "AnalysisRunSuccessful"
	ReasonAnalysisRunFailed        = "AnalysisRunFailed"
	ReasonAnalysisRunError         = "AnalysisRunError"
	ReasonAnalysisRunInconclusive  = "AnalysisRunInconclusive"
	ReasonRevertRequested          = "RevertRequested"
	ReasonReverted                 = "Reverted"
	ReasonVerbRefused              = "VerbRefused"
	ReasonRestarted                = "RolloutRestarted"
	ReasonScalingWorkload          = "ScalingWorkload"
	ReasonTwoScalers               = "TwoScalers"
)

// ReasonExperimentCreated is Argo's, of a Rollout's event.
const ReasonExperimentCreated = "ExperimentCreated"

// ReasonNameTaken: the name of what is to be made is somebody else's.
const ReasonNameTaken = "NameTaken"

// Reasons of Experiment conditions and events, beside ReasonInvalidSpec and those of
// phases (Experiment<Phase>) and versions (Template<Status>).
const (
	// ReasonSpecChanged: what can't be changed was edited after it had begun.
	ReasonSpecChanged = "SpecChanged"
	// ReasonWaiting: what the spec names is not there yet.
	ReasonWaiting = "Waiting"
)

// Reasons of GitSync conditions beside Flux's shared ones.
const (
	ReasonEmptyRepository      = "EmptyRepository"
	ReasonBranchNotFound       = "BranchNotFound"
	ReasonPathNotFound         = "PathNotFound"
	ReasonGitOperationFailed   = "GitOperationFailed"
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonInvalidManifest      = "InvalidManifest"
	ReasonApplyFailed          = "ApplyFailed"
	ReasonForbidden            = "Forbidden"
	ReasonPruneFailed          = "PruneFailed"
	ReasonOwnedByAnother       = "OwnedByAnother"
	ReasonInvalidGitSync       = "InvalidSpec"
)
