package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutPhase is the one-word state of a Rollout.
type RolloutPhase string

// The phases of a Rollout. In terms of kstatus: Healthy is Ready=True;
// Progressing and Paused are Ready=Unknown with Reconciling=True; Degraded is
// Ready=False, with Stalled=True when only a person can help.
const (
	RolloutPhaseHealthy     RolloutPhase = "Healthy"
	RolloutPhaseProgressing RolloutPhase = "Progressing"
	RolloutPhasePaused      RolloutPhase = "Paused"
	RolloutPhaseDegraded    RolloutPhase = "Degraded"
)

// PauseReason says why a Rollout is paused. The values are Argo's.
type PauseReason string

// The reasons of a pause.
const (
	PauseReasonCanaryPauseStep         PauseReason = "CanaryPauseStep"
	PauseReasonBlueGreenPause          PauseReason = "BlueGreenPause"
	PauseReasonInconclusiveAnalysis    PauseReason = "InconclusiveAnalysisRun"
	PauseReasonInconclusiveExperiment  PauseReason = "InconclusiveExperiment"
	PauseReasonUser                    PauseReason = "UserPause"
	PauseReasonIrreversibleUnconfirmed PauseReason = "IrreversibleUnconfirmed"
)

// PauseCondition is one reason to wait, with the time it began.
type PauseCondition struct {
	Reason    PauseReason `json:"reason"`
	StartTime metav1.Time `json:"startTime"`
}

// AbortReason says why a version was taken back.
type AbortReason string

// The reasons of an abort, as named in GitSync.spec.revert.on.
const (
	// AbortFailed is a failed measurement.
	AbortFailed AbortReason = "Failed"
	// AbortDeadline is an exceeded deadline with progressDeadlineAbort.
	AbortDeadline AbortReason = "Deadline"
	// AbortByPerson is the verb abort.
	AbortByPerson AbortReason = "Aborted"
	// AbortError is a version that could not be measured; it rejects nothing.
	AbortError AbortReason = "Error"
	// UndoByPerson is the verb undo, on Reverts alone: nothing was rejected, and a
	// person wants an earlier version back.
	UndoByPerson AbortReason = "Undo"
)

// RolloutStatus is what a restart needs and what a reader wants to see. The
// fields that are not marked "ours" are Argo's.
type RolloutStatus struct {
	// ObservedGeneration is the generation that the rest of the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// Message is one sentence for a person; stable from one pass to the next.
	// +optional
	Message string `json:"message,omitempty"`
	// Routed is what the traffic goes through; none until something of it is taken over.
	// +optional
	Routed *RoutedThrough `json:"routed,omitempty"`
	// Conditions: Ready, Reconciling and Stalled as kstatus wants them, and Argo's.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Attempt rises at every start, retry and return of a template. Ours.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// StartedAt is when the current template was taken up last; steps that are
	// edited on the way don't move it. Ours.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// Abort is true while the current attempt is taken back.
	// +optional
	Abort bool `json:"abort,omitempty"`
	// AbortedAt is the time of the abort.
	// +optional
	AbortedAt *metav1.Time `json:"abortedAt,omitempty"`
	// AbortReason says why. Ours.
	// +kubebuilder:validation:Enum=Failed;Deadline;Aborted;Error
	// +optional
	AbortReason AbortReason `json:"abortReason,omitempty"`
	// AbortMessage names the metric, the value and the limit. Ours.
	// +optional
	AbortMessage string `json:"abortMessage,omitempty"`
	// Unmeasured counts the attempts in a row of the current template that ended
	// because they could not be measured. The wait before its provider's return may
	// start it again doubles with each: 10 s after the first, at most 10 min. Ours.
	// +optional
	Unmeasured int32 `json:"unmeasured,omitempty"`
	// PromoteFull is true while the rest of the steps is skipped on demand.
	// +optional
	PromoteFull bool `json:"promoteFull,omitempty"`

	// StableRS is the template hash of the stable version.
	// +optional
	StableRS string `json:"stableRS,omitempty"`
	// CurrentPodHash is the template hash of the version being rolled out, or of stable.
	// +optional
	CurrentPodHash string `json:"currentPodHash,omitempty"`
	// CurrentStepIndex is the index of the step under way; the number of steps when all are done.
	// +optional
	CurrentStepIndex *int32 `json:"currentStepIndex,omitempty"`
	// CurrentStepHash is the hash of the list of steps.
	// +optional
	CurrentStepHash string `json:"currentStepHash,omitempty"`
	// Step is "3/7" for people. Ours.
	// +optional
	Step string `json:"step,omitempty"`
	// StepStartedAt is when the conditions of the current step were seen met: for
	// a pause the start of its clock. Ours.
	// +optional
	StepStartedAt *metav1.Time `json:"stepStartedAt,omitempty"`

	// PauseConditions are the reasons to wait.
	// +listType=map
	// +listMapKey=reason
	// +optional
	PauseConditions []PauseCondition `json:"pauseConditions,omitempty"`
	// ControllerPause is true while a pause was begun by the controller.
	// +optional
	ControllerPause bool `json:"controllerPause,omitempty"`

	// Replicas is the number of pods of all versions.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// UpdatedReplicas is the number of pods of the current version.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// ReadyReplicas is the number of Ready pods.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// AvailableReplicas is the number of available pods.
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// DesiredReplicas is the size that was asked for last, which holds when
	// spec.replicas leaves the spec. Ours.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`
	// HPAReplicas is what the scale subresource reports.
	// +optional
	HPAReplicas int32 `json:"HPAReplicas,omitempty"`
	// Selector matches exactly the pods that HPAReplicas counts.
	// +optional
	Selector string `json:"selector,omitempty"`

	// RestartRequestedAt is when the verb restart was heard last. Ours.
	// +optional
	RestartRequestedAt *metav1.Time `json:"restartRequestedAt,omitempty"`
	// RestartedAt is the restart that was carried out: the later one of
	// spec.restartAt and restartRequestedAt.
	// +optional
	RestartedAt *metav1.Time `json:"restartedAt,omitempty"`
	// CollisionCount is unused and kept for readers of Argo's status.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// WorkloadObservedGeneration of the workloadRef.
	// +optional
	WorkloadObservedGeneration string `json:"workloadObservedGeneration,omitempty"`

	// Canary is the state of a canary.
	// +optional
	Canary CanaryStatus `json:"canary,omitempty"`
	// BlueGreen is the state of a blue-green update.
	// +optional
	BlueGreen BlueGreenStatus `json:"blueGreen,omitempty"`

	// Git names the commits that declared the stable and the current template. Ours.
	// +optional
	Git RolloutGitStatus `json:"git,omitempty"`
	// Rejected are the versions that failed; Git can't bring them back without a
	// person's word. Newest last, at most 20. Ours.
	// +listType=map
	// +listMapKey=hash
	// +optional
	Rejected []RejectedVersion `json:"rejected,omitempty"`
	// Superseded counts the versions that a newer template ended. Ours.
	// +optional
	Superseded int64 `json:"superseded,omitempty"`
	// Progress is the clock of progressDeadlineSeconds. Ours.
	// +optional
	Progress *ProgressStatus `json:"progress,omitempty"`
	// Verbs are the tokens of the verbs that were carried out or refused, by verb. Ours.
	// +optional
	Verbs map[string]VerbStatus `json:"verbs,omitempty"`
}

// ProgressStatus is the high-water mark of progress towards the current
// target; a pod that flickers doesn't raise it.
type ProgressStatus struct {
	// Available is the largest number of available pods of the current version seen for this target.
	Available int32 `json:"available"`
	// Target is what Available counts towards: "<hash>/<attempt>/<step>/<size>".
	Target string `json:"target"`
	// Since is when the mark was last raised, or the clock last stood still.
	Since metav1.Time `json:"since"`
}

// VerbStatus is what became of a verb.
type VerbStatus struct {
	// Token of the annotation that was handled.
	Token string `json:"token"`
	// Refused says why the verb had no effect; empty when it had.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// RolloutGitStatus names commits.
type RolloutGitStatus struct {
	// Stable is the commit whose template is stable.
	// +optional
	Stable *GitVersion `json:"stable,omitempty"`
	// Current is the commit that Git declares now.
	// +optional
	Current *GitVersion `json:"current,omitempty"`
}

// GitVersion is a template as a commit declared it.
type GitVersion struct {
	// Hash of the template.
	Hash string `json:"hash"`
	// Revision such as main@sha1:<40 hex>.
	// +optional
	Revision string `json:"revision,omitempty"`
	// ShortCommit is the first 7 digits, for columns.
	// +optional
	ShortCommit string `json:"shortCommit,omitempty"`
	// Subject of the commit, at most 100 characters.
	// +optional
	Subject string `json:"subject,omitempty"`
}

// RejectedVersion is a version that failed.
type RejectedVersion struct {
	// Hash of the template.
	Hash string `json:"hash"`
	// Attempt at which it failed last.
	Attempt int64 `json:"attempt"`
	// Commit that declared it, as a revision.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Reason of the abort.
	// +kubebuilder:validation:Enum=Failed;Deadline;Aborted;Error
	Reason AbortReason `json:"reason"`
	// Message names the metric, the value and the limit.
	// +optional
	Message string `json:"message,omitempty"`
	// AnalysisRun that condemned it.
	// +optional
	AnalysisRun string `json:"analysisRun,omitempty"`
	// Time of the abort.
	Time metav1.Time `json:"time"`
	// Revert is the last phase seen of its Revert; None when none was wanted.
	// Empty means that the Revert is still to be created.
	// +optional
	Revert RevertPhase `json:"revert,omitempty"`
	// RevertReason says why: the wish that made the Revert unwanted, or why it is blocked.
	// +optional
	RevertReason string `json:"revertReason,omitempty"`
	// RevertCommit is the commit that brought Git back.
	// +optional
	RevertCommit string `json:"revertCommit,omitempty"`
	// Cleared is true after a person lifted the hold; the next attempt may run.
	// +optional
	Cleared bool `json:"cleared,omitempty"`
	// Retried names the commit whose Pushback-Retry trailer has been taken into
	// account, so that it lifts the hold once and not after every failure.
	// +optional
	Retried string `json:"retried,omitempty"`
}

// RoutedThrough is what a Rollout's traffic goes through, as it was taken over. When
// the spec names other objects, or the Rollout is deleted, it is given back first.
type RoutedThrough struct {
	// StableService and CanaryService are the Services of the two sides: those of the
	// canary strategy, ping and pong, or the active and the preview one.
	// +optional
	StableService string `json:"stableService,omitempty"`
	// +optional
	CanaryService string `json:"canaryService,omitempty"`
	// TrafficRouting of the canary strategy; none for blue-green.
	// +optional
	TrafficRouting *RolloutTrafficRouting `json:"trafficRouting,omitempty"`
	// DynamicStableScale is true where stable may be too small to take all traffic back at once.
	// +optional
	DynamicStableScale bool `json:"dynamicStableScale,omitempty"`
}

// CanaryStatus is the state of a canary.
type CanaryStatus struct {
	// Weights as last observed and wanted.
	// +optional
	Weights *TrafficWeights `json:"weights,omitempty"`
	// CurrentStepAnalysisRunStatus is the run of the current step.
	// +optional
	CurrentStepAnalysisRunStatus *RolloutAnalysisRunStatus `json:"currentStepAnalysisRunStatus,omitempty"`
	// CurrentBackgroundAnalysisRunStatus is the background run.
	// +optional
	CurrentBackgroundAnalysisRunStatus *RolloutAnalysisRunStatus `json:"currentBackgroundAnalysisRunStatus,omitempty"`
	// CurrentExperiment is the name of the step's Experiment.
	// +optional
	CurrentExperiment string `json:"currentExperiment,omitempty"`
	// StablePingPong is the Service that is stable: ping or pong.
	// +optional
	StablePingPong string `json:"stablePingPong,omitempty"`
}

// TrafficWeights are the shares of the traffic.
type TrafficWeights struct {
	Canary WeightDestination `json:"canary"`
	Stable WeightDestination `json:"stable"`
	// Additional versions of an Experiment.
	// +optional
	Additional []WeightDestination `json:"additional,omitempty"`
	// Verified is true when the data plane was seen to have these weights, false
	// when it was seen not to; absent where the router can't tell.
	// +optional
	Verified *bool `json:"verified,omitempty"`
	// Since is when these weights were first seen. Ours.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// WeightDestination is one share.
type WeightDestination struct {
	// Weight from 0 to maxTrafficWeight (100).
	Weight int32 `json:"weight"`
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// +optional
	PodTemplateHash string `json:"podTemplateHash,omitempty"`
}

// RolloutAnalysisRunStatus is a copy of an AnalysisRun's verdict.
type RolloutAnalysisRunStatus struct {
	Name   string        `json:"name"`
	Status AnalysisPhase `json:"status"`
	// +optional
	Message string `json:"message,omitempty"`
}

// BlueGreenStatus is the state of a blue-green update.
type BlueGreenStatus struct {
	// +optional
	PreviewSelector string `json:"previewSelector,omitempty"`
	// +optional
	ActiveSelector string `json:"activeSelector,omitempty"`
	// +optional
	ScaleUpPreviewCheckPoint bool `json:"scaleUpPreviewCheckPoint,omitempty"`
	// +optional
	PrePromotionAnalysisRunStatus *RolloutAnalysisRunStatus `json:"prePromotionAnalysisRunStatus,omitempty"`
	// +optional
	PostPromotionAnalysisRunStatus *RolloutAnalysisRunStatus `json:"postPromotionAnalysisRunStatus,omitempty"`
}
