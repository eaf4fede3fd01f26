package node

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// sync brings one pod to where its object, its runs and the time want it. It is called for every change of
// either, one call at a time for a pod, and asks to be called again when time alone will change something.
func (n *Node) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("the queue holds %q: %w", key, err)
	}
	pod, err := n.pods.Pods(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		n.forget(key)
		return nil
	}
	if err != nil {
		return err
	}
	if r := n.record(key); r != nil && r.uid != pod.UID {
		n.forget(key)
	}
	switch pod.Spec.NodeName {
	case "":
		return n.schedule(ctx, pod)
	case n.name:
	default:
		return nil
	}
	r := n.record(key)
	if r == nil {
		if r, err = n.accept(key, pod); err != nil {
			return err
		}
	}
	r.drain(n.options.Restart)
	if pod.DeletionTimestamp != nil {
		return n.terminate(ctx, pod, r)
	}
	if finished(pod.Status.Phase) {
		r.stop(gracePeriod(pod)) // somebody else may have said so, as an eviction does
		return nil
	}
	wake := n.advance(ctx, key, pod, r)
	if !wake.IsZero() {
		n.queue.AddAfter(key, max(time.Until(wake), 0))
	}
	return n.report(ctx, pod, r)
}

func finished(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

func (n *Node) record(key string) *podRecord {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.records[key]
}

// accept begins with a pod: a new one, or one that a node of this name ran before.
func (n *Node) accept(key string, pod *corev1.Pod) (*podRecord, error) {
	r := &podRecord{uid: pod.UID, began: time.Now(), refused: n.launcher.refused(pod)}
	for i := range pod.Spec.Containers {
		r.containers = append(r.containers, &containerRecord{name: pod.Spec.Containers[i].Name})
	}
	if pod.Status.StartTime != nil {
		r.began = pod.Status.StartTime.Time
	}
	var err error
	if r.address, err = netip.ParseAddr(pod.Status.PodIP); err == nil {
		n.pool.reserve(r.address)
	} else if r.address, err = n.pool.take(); err != nil {
		return nil, err
	}
	if !finished(pod.Status.Phase) {
		r.adopt(pod, n.launcher.survives())
	}
	if len(r.refused) > 0 {
		n.warn(pod, "Failed", "%s", refusal(r.refused))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records[key] = r
	return r, nil
}

// reserveAddresses keeps the addresses of pods that were here before from being given to new ones.
func (n *Node) reserveAddresses() {
	pods, err := n.pods.List(labels.Everything())
	if err != nil {
		return // a lister of an in-memory store has no errors
	}
	for _, pod := range pods {
		if a, err := netip.ParseAddr(pod.Status.PodIP); err == nil && pod.Spec.NodeName == n.name {
			n.pool.reserve(a)
		}
	}
}

// forget ends what is left of a pod whose object is gone. It was deleted with grace by us, or by force.
func (n *Node) forget(key string) {
	r := n.record(key)
	if r == nil {
		return
	}
	r.stop(0)
	r.wait()
	n.table.remove(r.uid)
	n.pool.release(r.address)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.records, key)
}

// terminate ends the runs of a pod that is being deleted, then says how it ended, then removes the object.
func (n *Node) terminate(ctx context.Context, pod *corev1.Pod, r *podRecord) error {
	if r.deleted {
		return nil // finalizers keep the object, or the watch is late
	}
	if r.running() {
		grace := corev1.DefaultTerminationGracePeriodSeconds * time.Second
		if s := pod.DeletionGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		r.stop(grace)
		return n.report(ctx, pod, r)
	}
	if !finished(pod.Status.Phase) {
		if err := n.write(ctx, pod, r, finalStatus(pod, r, time.Now())); err != nil {
			return err
		}
	}
	now := int64(0)
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	// A conflict says that the name belongs to another pod by now.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	r.deleted = true
	return nil
}

// advance starts what should run and says when time alone will change something; zero if never.
func (n *Node) advance(ctx context.Context, key string, pod *corev1.Pod, r *podRecord) (wake time.Time) {
	for i := range pod.Spec.Containers {
		next := n.advanceContainer(ctx, key, pod, r, &pod.Spec.Containers[i], r.containers[i])
		if !next.IsZero() && (wake.IsZero() || next.Before(wake)) {
			wake = next
		}
	}
	// A launch can have told things already: seeing them now saves a write.
	r.drain(n.options.Restart)
	return wake
}

func (n *Node) advanceContainer(ctx context.Context, key string, pod *corev1.Pod, r *podRecord, spec *corev1.Container, c *containerRecord) (wake time.Time) {
	now := time.Now()
	switch {
	case len(r.refused) > 0:
		c.waiting = &waitError{reason: "CreateContainerConfigError", message: refusal(r.refused), final: true}
		return time.Time{}
	case c.current != nil:
		if c.image != spec.Image && !c.replace {
			c.replace = true
			c.current.stop(gracePeriod(pod))
		}
		return time.Time{}
	case !c.restartable(pod.Spec.RestartPolicy), c.waiting != nil && c.waiting.final:
		return time.Time{}
	case now.Before(c.notBefore):
		return n.backOff(pod, c, now)
	}
	n.start(ctx, key, pod, r, spec, c, now)
	switch {
	case c.current != nil, c.waiting != nil && c.waiting.final:
		return time.Time{}
	case c.waiting != nil && c.waiting.backoff != "":
		return c.shown()
	default:
		return c.notBefore
	}
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}
