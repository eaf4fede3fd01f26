package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// In is everything that was observed, at one time. Decide reads it and nothing
// else, and changes none of it.
type In struct {
	// Now is the clock of this pass, in whole seconds as the API server keeps times.
	Now time.Time

	// Namespace, Name and Generation of the Rollout.
	Namespace, Name string
	Generation      int64
	// Deleting is true while the Rollout is being deleted.
	Deleting bool
	// Verbs are the live values of the verb annotations, by annotation key.
	Verbs map[string]string

	Spec v1alpha1.RolloutSpec
	// Replicas is the wanted size: spec.replicas, the last one when that has left the
	// spec, or 1 when it was never set.
	Replicas int32
	// Status as it was persisted last; empty when it was lost.
	Status v1alpha1.RolloutStatus

	// Template is the version that the spec holds now.
	Template Template
	// Source is what gitsync wrote about the declared template; nil when the
	// Rollout does not come from a GitSync.
	Source *Source

	// ModifiedBy names who has edited the live template; empty when unknown.
	ModifiedBy string
	// Workloads are the one that spec.workloadRef names, and those that this Rollout
	// has scaled down before and that have not got their size back.
	Workloads []Workload
	// Finalizer is true while the Rollout carries v1alpha1.WorkloadFinalizer, and
	// TrafficFinalizer while it carries v1alpha1.TrafficFinalizer.
	Finalizer, TrafficFinalizer bool
	// Traffic is what the spec routes through; nil for a canary without a router.
	Traffic *v1alpha1.RoutedThrough
	// Yields is true while another Rollout routes through a Service of Traffic and comes
	// first: nothing of the traffic is written then. Missing says which.
	Yields bool
	// Leaving is set while traffic is to be given up.
	Leaving *Leaving

	// Invalid lists why the spec can't be used, each naming its field; empty when it can.
	Invalid []string
	// Missing lists what the spec names and the cluster lacks (Services, routes,
	// templates): the Rollout waits for it. Each names the object.
	Missing []string

	// ReplicaSets of this Rollout, in any order.
	ReplicaSets []ReplicaSet
	// Pods of these ReplicaSets, read live, in any order; nil when they were not read,
	// which is only done while a restart is under way (Restarting).
	Pods []Pod
	// Routing is the live routing; nil when the strategy has no router.
	Routing *Routing
	// Services are the live selectors of canaryService and stableService; nil when not named or missing.
	Stable, Canary *Service
	// Active and Preview are those of activeService and previewService of a blue-green
	// Rollout, read live; nil when not named or missing.
	Active, Preview *Service

	// Runs are the AnalysisRuns of this Rollout, of any attempt.
	Runs []Run
	// Experiments are those of this Rollout's steps, of any attempt. Their runs are among Runs.
	Experiments []Experiment
	// Reverts are the Reverts of this Rollout.
	Reverts []Revert
	// RevertOn lists the reasons that are reverted, after defaults and overrides; empty when
	// nothing is to be reverted (mode None, or no GitSync).
	RevertOn []v1alpha1.AbortReason
}

// Template is a pod template by identity.
type Template struct {
	// Hash as templatehash gives it; empty when the template can't be hashed.
	Hash string
	// Irreversible is true when the template or its commit says that it can't be taken back.
	Irreversible bool
}

// Source is what Git declares.
type Source struct {
	// Hash of the template that Git declares.
	Hash string
	// Revision that declared it first, such as main@sha1:<40 hex>, and its subject.
	Revision, Subject string
	// RetryHashes are the hashes that the commit's Pushback-Retry trailers name.
	RetryHashes []string
	// GitSync that applied it.
	GitSyncNamespace, GitSyncName string
}

// ReplicaSet is one version's pods.
type ReplicaSet struct {
	Name, Hash string
	// Desired is spec.replicas; the rest is its status.
	Desired, Replicas, Ready, Available int32
	// Observed is true when the status speaks of the current spec.
	Observed bool
	// Revision is the counter in its annotation; 0 when it has none.
	Revision int64
	// Role is v1alpha1.RoleStable, RoleRejected, RoleRetired or empty.
	Role string
	// Created is its creation time.
	Created time.Time
	// ScaleDownAt is its deadline; nil when it has none.
	ScaleDownAt *time.Time
	// Deleting is true while it is being deleted.
	Deleting bool
}

// Routing is the live routing of a Rollout with a router.
type Routing struct {
	routers.Observed
	// Err says why it could not be observed, for people; empty when it could.
	Err string
}

// Service is a live Service's selector.
type Service struct {
	Name string
	// Hash is the template hash in its selector; empty when there is none.
	Hash string
	// ReadyHashes counts the ready endpoints by template hash. Nil when unknown.
	ReadyHashes map[string]int32
}

// RunKind says what a run is for.
type RunKind string

// The kinds of runs.
const (
	RunStep       RunKind = "Step"
	RunBackground RunKind = "Background"
)

// Run is an AnalysisRun's verdict.
type Run struct {
	Name string
	Kind RunKind
	// Hash, Attempt and Step that it belongs to.
	Hash    string
	Attempt int64
	Step    int32
	Phase   v1alpha1.AnalysisPhase
	// Message is the run's own: it names the metric.
	Message string
	// Detail names metric, value and limit of what condemned it, for messages.
	Detail string
	// Measurements that condemned it, as lines for the revert's text.
	Measurements []string
	// Terminating is true when its spec asks for its end.
	Terminating bool
	// Created and Completed are times; Completed is nil while it runs.
	Created   time.Time
	Completed *time.Time
	// Askable is true when it ended Error and what erred can be asked again; false when
	// its spec was refused.
	Askable bool
	// AskFrom is the time from which its providers are tried again, as it was written
	// to it; nil when nobody asked for that. The zero time when what was written can't be read.
	AskFrom *time.Time
	// Answered is true when they were seen to answer again after it had ended.
	Answered bool
}

// Experiment is the state of a step's Experiment.
type Experiment struct {
	Name string
	// Hash, Attempt and Step that it belongs to.
	Hash    string
	Attempt int64
	Step    int32
	Phase   v1alpha1.AnalysisPhase
	// Message is the Experiment's own: it names the template or the run.
	Message string
	// Condemned is the name of the run that ended it badly; empty when none did.
	Condemned string
	// Terminating is true when its spec asks for its end.
	Terminating bool
	// Pods is how many it has.
	Pods int32
	// Routed is true while it keeps its pods because traffic may be sent to them.
	Routed bool
	// Destinations are its versions with a weight, in the order of the step.
	Destinations []Destination
	// Completed is when it ended; nil while it runs.
	Completed *time.Time
	// Created is its creation time.
	Created time.Time
}

// Destination is a version of an Experiment that takes a part of stable's traffic.
type Destination struct {
	routers.Extra
	// Hash on its pods.
	Hash string
	// Available is how many pods are available.
	Available int32
	// Ready is true when all of its pods are available and its Service reaches them.
	Ready bool
}

// Revert is a Revert's state.
type Revert struct {
	Name    string
	Hash    string
	Attempt int64
	Phase   v1alpha1.RevertPhase
	Reason  string
	Message string
	Commit  string
}
