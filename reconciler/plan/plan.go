package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// Plan is everything that is wanted. It is carried out in the order of its
// fields; because each part is bounded by what was observed, a crash between any
// two of them leaves a state that Decide leads on from.
//
// What Decide relies on from whoever carries it out:
//   - the Rollout is read live, and the status is only persisted over what was read;
//   - a Split that a router refuses ends nothing: the effects after it don't rest on it;
//   - a ReplicaSet is only written if it is as it was read, and its size only
//     changes if all of the Rollout's ReplicaSets were read live, for one's size
//     rests on the pods of the others;
//   - any other effect that fails ends the pass;
//   - selectors and weights that are there already are no write.
type Plan struct {
	// Split to apply; nil leaves the routing alone.
	Split *routers.Split
	// Release asks the router to give everything to stable and to leave nothing behind.
	Release bool
	// Services whose selector is to change.
	Services []ServiceWant
	// ReplicaSets to create, resize or mark. Those not named stay as they are.
	ReplicaSets []ReplicaSetWant
	// Prune names old ReplicaSets, at 0 pods, to delete.
	Prune []string
	// Status to persist. Equal to In.Status when nothing changed.
	Status v1alpha1.RolloutStatus
	// Runs to create. Creating one that exists is no error.
	Runs []RunWant
	// Terminate names runs whose end is asked for.
	Terminate []string
	// PruneRuns names finished runs over the history limits.
	PruneRuns []string
	// Experiments to create. Creating one that exists is no error.
	Experiments []ExperimentWant
	// EndExperiments names Experiments whose end is asked for, PruneExperiments finished
	// ones over the history limits.
	EndExperiments, PruneExperiments []string
	// FreeExperiments names those whose pods no traffic is sent to any more.
	FreeExperiments []string
	// Probes are the finished runs whose providers are to be tried again, or not any
	// more. Those not named stay as they are.
	Probes []ProbeWant
	// Revert to create after the status is persisted; nil for none.
	Revert *RevertWant
	// Evict are pods to evict after the status is persisted.
	Evict []Eviction
	// Workloads are to be sized after the status is persisted. Those not named stay as
	// they are.
	Workloads []WorkloadWant
	// Finalizer of the Rollout, which is written last.
	Finalizer FinalizerWant
	// TrafficFinalizer is on the Rollout before any traffic is written, and until it is
	// given back.
	TrafficFinalizer FinalizerWant
	// Metadata that the versions are to have. Those not named stay as they are. The
	// pods come last: nothing waits for their labels.
	Metadata []MetadataWant
	// Events to emit after the status is persisted.
	Events []Event
	// WakeAfter is when to decide again without an event from the cluster; 0 for never.
	WakeAfter time.Duration
}

// ServiceWant gives a Service the selector of a hash; an empty Hash takes the
// hash out of the selector.
type ServiceWant struct {
	Name string
	Hash string
	// Routes is true for the active Service of a blue-green Rollout, whose selector
	// moves the traffic as a Split does: one that is refused ends nothing either.
	Routes bool
}

// ReplicaSetWant is the wanted state of one version's pods.
type ReplicaSetWant struct {
	Hash string
	// Create is true when no ReplicaSet of this hash was observed.
	Create   bool
	Replicas int32
	Revision int64
	Role     string
	// ScaleDownAt is the deadline to keep in its annotation; nil for none.
	ScaleDownAt *time.Time
	// Metadata of its role; nil leaves alone what is there.
	Metadata *v1alpha1.PodTemplateMetadata
	// Avoid is the hash of the version whose hosts its pods are kept off; empty for none.
	Avoid string
	// Why is a sentence for the event and the log.
	Why string
}

// RunWant is an AnalysisRun to create. Its name is a function of its fields, so
// that a repeated pass makes the same one.
type RunWant struct {
	Name     string
	Kind     RunKind
	Hash     string
	Attempt  int64
	Step     int32
	Analysis v1alpha1.RolloutAnalysis
	// StableHash and LatestHash are the values of podTemplateHashValue.
	StableHash, LatestHash string
}

// ExperimentWant is an Experiment to create. Its name is a function of its fields, so
// that a repeated pass makes the same one.
type ExperimentWant struct {
	Name    string
	Hash    string
	Attempt int64
	Step    int32
	Spec    v1alpha1.RolloutExperimentStep
	// StableHash and LatestHash are the versions that specRef and podTemplateHashValue name.
	StableHash, LatestHash string
}

// ProbeWant asks for the providers of a run that ended Error to be tried until they answer.
type ProbeWant struct {
	Name string
	// NotBefore is when they may be tried first; nil takes the wish back.
	NotBefore *time.Time
}

// RevertWant is a Revert to create.
type RevertWant struct {
	Name string
	Spec v1alpha1.RevertRequest
}

// Event is something that changed.
type Event struct {
	// Warning is a warning event; otherwise it is a normal one.
	Warning bool
	Reason  string
	Message string
}
