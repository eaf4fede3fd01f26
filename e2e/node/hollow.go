package node

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Hollow makes a node that runs nothing. Its pods become Ready after a delay and do what the tags of their images
// say. A tag says it alone or at its end, after a dash ("v2-never-ready"); durations are Go's ("3s", "500ms"):
//
//	pull-error          the image can't be pulled: ErrImagePull, then ImagePullBackOff
//	config-error        the container can't be configured: CreateContainerConfigError
//	never-ready         runs and never becomes ready
//	ready-after-3s      becomes ready 3 s after its start, instead of after Hollow.Ready
//	unready-after-3s    becomes ready as usual and unready 3 s after its start
//	crash               ends with code 1 at once, and is restarted, or not, under the pod's policy, with back-off
//	crash-after-3s      ends with code 1 after 3 s, as above
//	complete            ends with code 0 at once, as a Job's pod does
//	complete-after-3s   ends with code 0 after 3 s
//	stubborn            ignores the request to end: it takes all of the pod's grace period
//
// Other tags say nothing. Readiness is never before the readiness probe's and the startup probe's initialDelaySeconds;
// nothing is probed. Readiness gates hold as on any node. Every field of a pod is accepted and means nothing else.
type Hollow struct {
	Ready time.Duration // from a container's start until it is ready; 0 means at once
}

// hollowLauncher runs containers in name only.
type hollowLauncher struct{ options Hollow }

func (l hollowLauncher) refused(*corev1.Pod) []string { return nil }

func (l hollowLauncher) survives() bool { return true }

// behaviour is what an image's tag says.
type behaviour struct {
	kind  string        // a word of the table above without "-after", empty for none
	after time.Duration // from the start
	timed bool          // whether the tag names a time
}

var behaviourTag = regexp.MustCompile(`(?:^|-)(?:(pull-error|config-error|never-ready|stubborn|crash|complete)|(ready|unready|crash|complete)-after-([0-9.]+(?:ms|s|m|h)))$`)

func behaviourOf(image string) behaviour {
	name, _, _ := strings.Cut(image, "@")
	tag, ok := strings.CutPrefix(name, repository(image)+":")
	if !ok {
		return behaviour{}
	}
	m := behaviourTag.FindStringSubmatch(tag)
	if m == nil {
		return behaviour{}
	}
	if m[1] != "" {
		return behaviour{kind: m[1]}
	}
	after, err := time.ParseDuration(m[3])
	if err != nil {
		return behaviour{} // such as 1.2.3s: a version, not a time
	}
	return behaviour{kind: m[2], after: after, timed: true}
}

func (l hollowLauncher) launch(_ context.Context, o launch) (instance, error) {
	b := behaviourOf(o.container.Image)
	switch b.kind {
	case "pull-error":
		return nil, &waitError{reason: "ErrImagePull", backoff: "ImagePullBackOff", event: "Failed", message: "the tag of image " + o.container.Image + " says so"}
	case "config-error":
		return nil, &waitError{reason: "CreateContainerConfigError", event: "Failed", message: "the tag of image " + o.container.Image + " says so"}
	}
	h := &hollowInstance{stubborn: b.kind == "stubborn", tell: o.tell, gone: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.kind != "never-ready" {
		h.at(o.started.Add(l.readyAfter(o.container, b)), func() { h.say(becameStarted); h.say(becameReady) })
	}
	switch b.kind {
	case "unready":
		h.at(o.started.Add(b.after), func() { h.say(becameUnready) })
	case "crash":
		h.at(o.started.Add(b.after), func() { h.end(exit{code: 1}) })
	case "complete":
		h.at(o.started.Add(b.after), func() { h.end(exit{code: 0}) })
	}
	return h, nil
}

func (l hollowLauncher) readyAfter(c *corev1.Container, b behaviour) time.Duration {
	delay := l.options.Ready
	if b.kind == "ready" && b.timed {
		delay = b.after
	}
	for _, p := range []*corev1.Probe{c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			delay = max(delay, time.Duration(p.InitialDelaySeconds)*time.Second)
		}
	}
	return delay
}

// hollowInstance is a run that consists of timers.
type hollowInstance struct {
	stubborn bool
	tell     func(event)
	gone     chan struct{}

	mu     sync.Mutex
	ended  bool
	timers []*time.Timer
	kill   *time.Timer // of a stubborn run that was asked to end
	limit  time.Time   // when kill fires
}

// at runs what at a time, or now if that has come: then its events are there before the first status is written.
// The caller holds mu; so does what's run now, and what's run later takes it.
func (h *hollowInstance) at(when time.Time, what func()) {
	if wait := time.Until(when); wait > 0 {
		h.timers = append(h.timers, time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			what()
		}))
		return
	}
	what()
}

func (h *hollowInstance) say(k eventKind) {
	if !h.ended {
		h.tell(event{kind: k})
	}
}

func (h *hollowInstance) end(e exit) {
	if h.ended {
		return
	}
	h.ended = true
	for _, t := range h.timers {
		t.Stop()
	}
	e.time = time.Now()
	h.tell(event{kind: exited, exit: e})
	close(h.gone)
}

func (h *hollowInstance) done() <-chan struct{} { return h.gone }

func (h *hollowInstance) stop(grace time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stubborn && grace > 0 {
		h.end(exit{code: 0})
		return
	}
	limit := time.Now().Add(grace)
	if h.kill != nil && !limit.Before(h.limit) {
		return
	}
	if h.kill != nil {
		h.kill.Stop()
	}
	killed := exit{code: 137, signal: 9}
	if grace <= 0 {
		h.end(killed)
		return
	}
	h.limit = limit
	h.kill = time.AfterFunc(grace, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end(killed)
	})
}
