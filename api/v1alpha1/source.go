package v1alpha1

import "encoding/json"

// Source is the value of SourceAnnotation, as JSON: what gitsync knows of the
// template that Git declares. It is written when Hash or Retry changes, and only
// then, so that an unrelated commit changes nothing.
type Source struct {
	// Hash of the template that Git declares.
	Hash string `json:"hash"`
	// Revision that declared it first, such as main@sha1:<40 hex>.
	Revision string `json:"revision"`
	// Subject of that commit, one line of at most 100 characters.
	Subject string `json:"subject,omitempty"`
	// Retry are the hashes that Pushback-Retry trailers name.
	Retry []string `json:"retry,omitempty"`
	// RetryCommits are the commits, 40 hex digits each, whose Pushback-Retry trailers
	// have been noted and may be read again: no trailer is noted twice.
	RetryCommits []string `json:"retryCommits,omitempty"`
	// Irreversible is true when a trailer says that the change can't be taken back.
	Irreversible bool `json:"irreversible,omitempty"`
	// GitSync that applied it, as <namespace>/<name>.
	GitSync string `json:"gitsync"`
	// File in the repository that holds the Rollout, or the workload that it takes its
	// template from.
	File string `json:"file,omitempty"`
	// Template as Git declares it, of a Rollout with a workloadRef: the one in the
	// workload has the API server's defaults in it, which change with its version.
	// Absent otherwise.
	Template json.RawMessage `json:"template,omitempty"`
}

// WorkloadHold is the value of WorkloadAnnotation, as JSON.
type WorkloadHold struct {
	// Rollout that scales the workload down, in the same namespace.
	Rollout string `json:"rollout"`
	// Replicas that the workload had, and gets back.
	Replicas int32 `json:"replicas"`
	// Set are the replicas that it was given last: others are somebody else's wish.
	Set int32 `json:"set"`
}
