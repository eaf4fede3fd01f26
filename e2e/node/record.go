package node

import (
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podRecord is what the node knows of a pod beyond its object. Only the worker that has the pod's key touches it,
// and stopAll after the workers; what comes from processes and timers waits in the inboxes.
type podRecord struct {
	uid        types.UID
	address    netip.Addr
	began      time.Time // when the node accepted it
	containers []*containerRecord
	refused    []string // paths of unsupported fields
	deleted    bool     // the final delete was sent
	written    *corev1.Pod
}

// containerRecord is a container of a pod over all of its runs.
type containerRecord struct {
	name    string
	image   string // of the present or last run
	current instance
	inbox   *inbox // of the present run
	started time.Time
	ready   bool
	// startup says that the startup probe, if there is one, has succeeded.
	startup    bool
	restarts   int32
	launched   bool // at least once
	replace    bool // the run was stopped for another image
	waiting    *waitError
	terminated *corev1.ContainerStateTerminated // the last run, if none runs
	last       *corev1.ContainerStateTerminated // the run before the present one
	runs       delay
	pulls      delay
	notBefore  time.Time // the next attempt
	attempted  time.Time // the last attempt
}

// inbox takes the events of a run until the worker reads them.
type inbox struct {
	mu     sync.Mutex
	events []event
	wake   func()
}

func (i *inbox) put(e event) {
	i.mu.Lock()
	i.events = append(i.events, e)
	i.mu.Unlock()
	i.wake()
}

func (i *inbox) take() []event {
	i.mu.Lock()
	defer i.mu.Unlock()
	events := i.events
	i.events = nil
	return events
}

// stop asks all runs of the pod to end.
func (r *podRecord) stop(grace time.Duration) {
	for _, c := range r.containers {
		if c.current != nil {
			c.current.stop(grace)
		}
	}
}

// wait returns when no run of the pod is left.
func (r *podRecord) wait() {
	for _, c := range r.containers {
		if c.current != nil {
			<-c.current.done()
		}
	}
}

func (r *podRecord) running() bool {
	for _, c := range r.containers {
		if c.current != nil {
			return true
		}
	}
	return false
}

// drain takes what the runs told since the last time.
func (r *podRecord) drain(b Backoff) {
	for _, c := range r.containers {
		if c.inbox == nil {
			continue
		}
		for _, e := range c.inbox.take() {
			c.apply(e, b)
		}
	}
}

func (c *containerRecord) apply(e event, b Backoff) {
	switch e.kind {
	case becameReady:
		c.ready = true
	case becameUnready:
		c.ready = false
	case becameStarted:
		c.startup = true
	case exited:
		c.ended(e.exit, b)
	}
}

// ended records the end of the present run, or of an attempt that failed to start one.
func (c *containerRecord) ended(e exit, b Backoff) {
	reason := "Error"
	if e.code == 0 {
		reason = "Completed"
	}
	if e.message != "" {
		reason = "StartError"
	}
	c.current, c.inbox, c.ready, c.startup = nil, nil, false, false
	c.terminated = &corev1.ContainerStateTerminated{
		ExitCode: e.code, Signal: e.signal, Reason: reason, Message: e.message,
		StartedAt: metaTime(c.started), FinishedAt: metaTime(e.time),
	}
	c.notBefore = e.time.Add(c.runs.afterRun(b, e.time.Sub(c.started)))
}

// restartable says whether the container is to be run (again) under the policy, back-off aside.
func (c *containerRecord) restartable(p corev1.RestartPolicy) bool {
	if c.terminated == nil || c.replace {
		return true
	}
	switch p {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return c.terminated.ExitCode != 0
	default:
		return true
	}
}
