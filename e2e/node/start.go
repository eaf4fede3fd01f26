package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// configRetry is how soon a container that lacks a ConfigMap or a Secret is tried again.
const configRetry = time.Second

// start tries one run of a container and records what came of it.
func (n *Node) start(ctx context.Context, key string, pod *corev1.Pod, r *podRecord, spec *corev1.Container, c *containerRecord, now time.Time) {
	c.attempted = now
	restart := c.restarts
	if c.launched {
		restart++
	}
	began := now
	if c.takenOver() {
		restart, began = c.restarts, c.started
	}
	box := &inbox{wake: func() { n.queue.Add(key) }}
	seen := pod.DeepCopy()
	seen.Status.PodIP, seen.Status.HostIP = r.address.String(), hostIP
	run, err := n.launcher.launch(ctx, launch{pod: seen, container: spec, restart: restart, started: began, tell: box.put})

	var wait *waitError
	if errors.As(err, &wait) {
		n.waits(pod, spec, c, wait, now)
		return
	}
	c.last, c.terminated, c.waiting, c.replace = lastOf(c), nil, nil, false
	c.launched, c.restarts, c.started, c.image, c.pulls = true, restart, began, spec.Image, delay{}
	c.startup, c.ready = spec.StartupProbe == nil, false // the launcher tells when it is ready
	if err != nil {
		c.ended(exit{code: 128, message: err.Error(), time: now}, n.options.Restart)
		n.warn(pod, "Failed", "container %s: %v", c.name, err)
		return
	}
	c.current, c.inbox = run, box
}

// takenOver says whether the record was adopted in the middle of a run.
func (c *containerRecord) takenOver() bool {
	return c.launched && c.terminated == nil && c.waiting == nil
}

func lastOf(c *containerRecord) *corev1.ContainerStateTerminated {
	if c.terminated != nil {
		return c.terminated
	}
	return c.last
}

// waits records that a container could not be started yet.
func (n *Node) waits(pod *corev1.Pod, spec *corev1.Container, c *containerRecord, why *waitError, now time.Time) {
	if c.waiting == nil || c.waiting.message != why.message {
		n.warn(pod, why.event, "container %s: %s", spec.Name, why.message)
	}
	c.waiting = why
	c.notBefore = now.Add(configRetry)
	if why.backoff != "" {
		c.notBefore = now.Add(c.pulls.afterFailure(n.options.Restart))
	}
}

// shown is until when the reason of a failed attempt is shown, before the back-off's.
func (c *containerRecord) shown() time.Time {
	return c.attempted.Add(min(time.Second, c.notBefore.Sub(c.attempted)/2))
}

// backOff shows the state of a container between two attempts and returns when it changes.
func (n *Node) backOff(pod *corev1.Pod, c *containerRecord, now time.Time) time.Time {
	switch {
	case c.waiting != nil && c.waiting.backoff != "" && now.Before(c.shown()):
		return c.shown()
	case c.waiting != nil && c.waiting.backoff != "":
		shown := *c.waiting
		shown.reason = c.waiting.backoff
		c.waiting = &shown
	case c.waiting == nil && c.terminated != nil:
		wait := c.notBefore.Sub(c.terminated.FinishedAt.Time).Round(time.Second)
		c.waiting = &waitError{
			reason:  "CrashLoopBackOff",
			message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", wait, c.name, pod.Name, pod.Namespace, pod.UID),
		}
		n.warn(pod, "BackOff", "Back-off restarting failed container %s in pod %s", c.name, pod.Name)
	}
	return c.notBefore
}
