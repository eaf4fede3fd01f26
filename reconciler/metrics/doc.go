// Package metrics counts what becomes of Rollouts, for Prometheus.
//
// It follows persisted statuses alone: a transition is told by the status before
// and after the write that made it, so that a restart counts nothing twice. It
// imports no client, no controller and nothing of gitsync; cmd/controller
// registers the recorder.
package metrics
