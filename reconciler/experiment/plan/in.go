package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// In is everything that was observed, at one time. Decide reads it and nothing else,
// and changes none of it.
type In struct {
	// Now is the clock of this pass, in whole seconds as the API server keeps times.
	Now time.Time
	// Name and Generation of the Experiment.
	Name       string
	Generation int64
	// Deleting is true while it is being deleted; what it owns goes with it.
	Deleting bool

	Spec v1alpha1.ExperimentSpec
	// Status as it was persisted last.
	Status v1alpha1.ExperimentStatus
	// SpecHash identifies what can't be changed of the spec once it has begun.
	SpecHash string
	// Hashes are the values of the template hash label by template name; see Hash.
	Hashes map[string]string

	// Invalid lists why the spec can't be used, each naming its field; empty when it can.
	Invalid []string
	// Missing lists what the spec names and the cluster lacks, and names that are taken
	// by others: it can't begin without them. Only what is still to be made is looked at.
	Missing []string
	// Routed is true while its Rollout may send traffic to its pods, which stay then (law 2).
	Routed bool

	// Sets are its ReplicaSets by template name, Services which Services it has, and
	// Runs its AnalysisRuns by the name of the analysis.
	Sets     map[string]Set
	Services map[string]bool
	Runs     map[string]Run
}

// Set is the ReplicaSet of one version.
type Set struct {
	// Desired is spec.replicas; the rest is its status.
	Desired, Replicas, Ready, Available int32
	// Observed is true when the status speaks of the current spec.
	Observed bool
	// Deleting is true while it is being deleted.
	Deleting bool
}

// Run is an AnalysisRun's verdict.
type Run struct {
	Phase v1alpha1.AnalysisPhase
	// Message is the run's own: it names the metric.
	Message string
	// Measured is true when each metric that counts was measured at least once.
	Measured bool
	// Terminating is true when its spec asks for its end.
	Terminating bool
}
