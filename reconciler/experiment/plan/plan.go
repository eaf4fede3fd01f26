package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Plan is everything that is wanted. It is carried out in the order of its fields.
// What is made follows from the persisted status alone, and under names that are a
// function of the Experiment's, so that a crash between any two writes leaves a state
// that Decide leads on from.
//
// What Decide relies on from whoever carries it out: the Experiment is read live, and
// the status is only persisted over what was read; a ReplicaSet is only written if it
// is as it was read; an effect that fails ends the pass.
type Plan struct {
	// Sets to create or resize. Those not named stay as they are.
	Sets []SetWant
	// Services to create, by template name.
	Services []string
	// Status to persist. Equal to In.Status when nothing changed.
	Status v1alpha1.ExperimentStatus
	// Runs to create, by the name of the analysis.
	Runs []RunWant
	// Terminate names the analyses whose runs are to end.
	Terminate []string
	// DropServices are the template names whose Services have no pods any more.
	DropServices []string
	// Events to emit after the status is persisted.
	Events []Event
	// WakeAfter is when to decide again without an event from the cluster; 0 for never.
	WakeAfter time.Duration
}

// SetWant is the wanted size of one version.
type SetWant struct {
	Template string
	// Create is true when no ReplicaSet was observed.
	Create   bool
	Replicas int32
	// Why is a sentence for the event.
	Why string
}

// RunWant is an AnalysisRun to create.
type RunWant struct {
	Analysis string
	// AvailableAt and FinishedAt are values for arguments; FinishedAt is zero without a duration.
	AvailableAt, FinishedAt time.Time
}

// Event is something that changed.
type Event struct {
	// Warning is a warning event; otherwise it is a normal one.
	Warning bool
	Reason  string
	Message string
}
