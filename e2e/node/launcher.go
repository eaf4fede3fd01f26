package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// launcher starts containers: as processes, or hollow.
type launcher interface {
	// refused are the paths of the fields of a pod that can't be run by it; none for most pods.
	refused(pod *corev1.Pod) []string
	// launch starts one run of a container. Errors: *waitError where nothing was started and the container waits,
	// *startError where starting was tried and failed, as a run that ended at once.
	launch(ctx context.Context, l launch) (instance, error)
	// survives says whether runs outlive the node: whether a container whose status says that it runs does run.
	survives() bool
}

// launch is an order to start one run of a container.
type launch struct {
	pod       *corev1.Pod // with its address in the status
	container *corev1.Container
	restart   int32
	started   time.Time // when the run began; in the past if a hollow run is taken over
	tell      func(event)
}

// event is what an instance tells about itself, in any order with other instances.
type event struct {
	kind eventKind
	exit exit // of exited
}

type eventKind int

const (
	becameReady eventKind = iota
	becameUnready
	becameStarted // the startup probe succeeded
	exited        // the last one of a run
)

// exit says how a run ended.
type exit struct {
	code    int32
	signal  int32
	message string
	time    time.Time
}

// instance is a run of a container. Its methods return at once and may be called at any time.
type instance interface {
	// stop asks the run to end, and ends it when grace has passed. A later call can only shorten the grace.
	stop(grace time.Duration)
	// done is closed when the run has ended.
	done() <-chan struct{}
}

// waitError says why a container waits instead of running.
type waitError struct {
	reason  string // of the waiting state
	backoff string // the reason between two attempts; empty if it stays
	event   string // reason of the event
	message string
	final   bool // nothing but another pod can help
}

func (e *waitError) Error() string { return fmt.Sprintf("%s: %s", e.reason, e.message) }

// startError says why a run could not be started.
type startError struct{ cause error }

func (e *startError) Error() string { return e.cause.Error() }
func (e *startError) Unwrap() error { return e.cause }
