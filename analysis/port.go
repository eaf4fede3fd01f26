// Package analysis judges measurements: the port to metric providers, the times
// at which a measurement is due, the conditions that judge a value, and the
// folding of measurements into the phase of a metric and of a run.
//
// PURE: this root imports no client and does no I/O; time comes in as an
// argument. Each folder below it is one provider: ask, parse, return a value. No
// threshold, count or limit is known there.
package analysis

import (
	"context"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Query is one question for a provider, with its arguments put in. It may hold
// secrets and is never logged or stored.
type Query struct {
	// Metric name, for messages.
	Metric string
	// Provider settings with their arguments resolved.
	Provider v1alpha1.MetricProvider
	// Namespace of the run.
	Namespace string
	// Run that measures. What a provider creates belongs to it.
	Run RunRef
	// At is the time of the measurement.
	At time.Time
	// ID is unique to this measurement: <run uid>.<metric>.<number>. Providers that
	// create something use it for its name, so that a repeated call finds it.
	ID string
	// Number of the measurement, from 1.
	Number int
	// Keep is how many measurements of the metric the run keeps, this one included;
	// what a provider has created for older ones is of no use any more. 0 keeps all.
	Keep int
	// Redactor takes the secrets among the arguments out of text. Providers apply it
	// to a server's words before they cut them short.
	Redactor Redactor
}

// RunRef names an AnalysisRun.
type RunRef struct {
	Name string
	UID  string
}

// Handle is what a provider needs to go on with a measurement that is under way.
// It is stored with the measurement and holds no secret.
type Handle map[string]string

// Outcome of asking: a Sample or a Pending.
type Outcome interface{ outcome() }

// Sample is a finished measurement.
type Sample struct {
	// Value is nil, a bool, a float64, a string, []any, or map[string]any. No data
	// is nil or an empty list, as the provider's documentation says.
	Value any
	// Verdict of a provider that judges for itself (a Job, Kayenta); empty otherwise.
	Verdict v1alpha1.AnalysisPhase
	// Message beside the verdict.
	Message string
	// Metadata to store with the measurement.
	Metadata map[string]string
	// Redactor takes out of text what the provider itself used to prove who asks, such as
	// keys in a Secret of its own. The zero value knows none. Value, Message and Metadata
	// are the server's, which may echo secrets: the value is judged as it is, and what is
	// stored or told of all three is redacted by the caller, by this Redactor and by the
	// query's.
	Redactor Redactor
}

// Pending is a measurement under way.
type Pending struct {
	Handle Handle
	// Message says what is waited for; it may be empty and holds no secret.
	Message string
	// After this long it is asked for again.
	After time.Duration
}

func (Sample) outcome()  {}
func (Pending) outcome() {}

// Provider asks one kind of metric source. An error is an outage or a broken
// query, never a verdict on the release.
type Provider interface {
	// Measure asks, or goes on asking when prior is not nil. It returns within the
	// context's deadline. Errors hold no secret and at most 1 KiB of the server's words.
	Measure(ctx context.Context, q Query, prior Handle) (Outcome, error)
}

// Terminator is a Provider with something to stop.
type Terminator interface {
	// Terminate stops what Measure began. It is called again after an error that isn't an
	// ErrUnstoppable, a few times.
	Terminate(ctx context.Context, q Query, prior Handle) error
}

// Describer is a Provider that can say what it would ask.
type Describer interface {
	// Describe gives what to keep with the metric, such as the query that is sent.
	// It need not be free of secrets: the caller redacts it.
	Describe(q Query) map[string]string
}
