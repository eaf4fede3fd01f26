package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// metaTime is the time with the precision that the API server keeps, so that statuses compare equal.
func metaTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

func metaNow() metav1.Time { return metaTime(time.Now()) }

// report writes the pod's status if it isn't what it should be.
func (n *Node) report(ctx context.Context, pod *corev1.Pod, r *podRecord) error {
	base := newest(pod, r.written)
	return n.write(ctx, pod, r, podStatus(base, r, time.Now()))
}

func (n *Node) write(ctx context.Context, pod *corev1.Pod, r *podRecord, status *corev1.PodStatus) error {
	base := newest(pod, r.written)
	if equality.Semantic.DeepEqual(&base.Status, status) {
		return nil
	}
	updated, err := n.patchStatus(ctx, base, status)
	if updated != nil {
		r.written = updated
	}
	return err
}

// newest is the later of what the watch and what the last write brought: a difference to the earlier one would
// leave out what the last write changed.
func newest(seen, written *corev1.Pod) *corev1.Pod {
	if written == nil || written.UID != seen.UID {
		return seen
	}
	if order, err := resourceversion.CompareResourceVersion(written.ResourceVersion, seen.ResourceVersion); err == nil && order > 0 {
		return written
	}
	return seen
}

// patchStatus writes the difference as a strategic merge with the uid, as a kubelet does: conditions of others
// stay. It returns nil and no error if the pod is gone.
func (n *Node) patchStatus(ctx context.Context, base *corev1.Pod, status *corev1.PodStatus) (*corev1.Pod, error) {
	before, err := json.Marshal(corev1.Pod{Status: base.Status})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: base.UID}, Status: *status})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("computing the status of pod %s/%s: %w", base.Namespace, base.Name, err)
	}
	updated, err := n.client.CoreV1().Pods(base.Namespace).Patch(ctx, base.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil, nil // deleted, or its name belongs to another uid: the watch brings the news
	}
	if err != nil {
		return nil, fmt.Errorf("writing the status of pod %s/%s: %w", base.Namespace, base.Name, err)
	}
	return updated, nil
}

// podStatus is the status that the record gives the pod. Conditions of others are kept.
func podStatus(pod *corev1.Pod, r *podRecord, now time.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.HostIP, s.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	s.PodIP, s.PodIPs = r.address.String(), []corev1.PodIP{{IP: r.address.String()}}
	began := metaTime(r.began)
	s.StartTime, s.ObservedGeneration = &began, pod.Generation
	s.ContainerStatuses = containerStatuses(pod, r)
	s.Phase = phase(pod.Spec.RestartPolicy, s.ContainerStatuses)
	setConditions(pod, s, metaTime(now))
	return s
}

// finalStatus is the last status of a deleted pod: no run is left, so that it has ended one way or the other.
func finalStatus(pod *corev1.Pod, r *podRecord, now time.Time) *corev1.PodStatus {
	for _, c := range r.containers {
		if c.terminated == nil && c.launched {
			c.terminated = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown", StartedAt: metaTime(c.started), FinishedAt: metaTime(now),
			}
		}
		if c.terminated != nil {
			c.waiting = nil
		}
	}
	s := podStatus(newest(pod, r.written), r, now)
	s.Phase = corev1.PodSucceeded
	for _, c := range s.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			s.Phase = corev1.PodFailed
		}
	}
	setConditions(pod, s, metaTime(now))
	return s
}

func containerStatuses(pod *corev1.Pod, r *podRecord) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i, c := range r.containers {
		spec := &pod.Spec.Containers[i]
		s := corev1.ContainerStatus{Name: c.name, Image: spec.Image, RestartCount: c.restarts}
		if c.launched {
			s.ContainerID = fmt.Sprintf("local://%s/%s/%d", pod.UID, c.name, c.restarts)
			s.ImageID = c.image
		}
		switch {
		case c.current != nil:
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: metaTime(c.started)}
			s.Ready = c.ready && c.startup
		case c.waiting != nil:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.waiting.reason, Message: c.waiting.message}
		case c.terminated != nil:
			s.State.Terminated = c.terminated
		default:
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		}
		started := c.current != nil && c.startup
		s.Started = &started
		if s.LastTerminationState.Terminated = c.last; s.State.Waiting != nil && c.terminated != nil {
			s.LastTerminationState.Terminated = c.terminated
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// phase is the kubelet's rule (getPhase in k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go).
func phase(policy corev1.RestartPolicy, containers []corev1.ContainerStatus) corev1.PodPhase {
	var waiting, running, stopped, succeeded int
	for _, c := range containers {
		switch {
		case c.State.Running != nil:
			running++
		case c.State.Terminated != nil:
			stopped++
			if c.State.Terminated.ExitCode == 0 {
				succeeded++
			}
		case c.LastTerminationState.Terminated != nil:
			stopped++
		default:
			waiting++
		}
	}
	switch {
	case waiting > 0:
		return corev1.PodPending
	case running > 0 || policy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case stopped == succeeded:
		return corev1.PodSucceeded
	case policy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

// setConditions sets the conditions that are a kubelet's; the phase and the containers are set already.
func setConditions(pod *corev1.Pod, s *corev1.PodStatus, now metav1.Time) {
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized} {
		setCondition(s, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation}, now)
	}
	containers := containersReady(s)
	ready := containers
	ready.Type = corev1.PodReady
	if missing := missingGates(pod, s); containers.Status == corev1.ConditionTrue && missing != "" {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", missing
	}
	containers.ObservedGeneration, ready.ObservedGeneration = pod.Generation, pod.Generation
	setCondition(s, containers, now)
	setCondition(s, ready, now)
}

func containersReady(s *corev1.PodStatus) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}
	if s.Phase == corev1.PodSucceeded {
		c.Reason = "PodCompleted"
		return c
	}
	if s.Phase == corev1.PodFailed {
		c.Reason = "PodFailed"
		return c
	}
	var unready []string
	for _, status := range s.ContainerStatuses {
		if !status.Ready {
			unready = append(unready, status.Name)
		}
	}
	if len(unready) == 0 {
		c.Status = corev1.ConditionTrue
		return c
	}
	c.Reason, c.Message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	return c
}

// missingGates says which readiness gates aren't True; empty if all are.
func missingGates(pod *corev1.Pod, s *corev1.PodStatus) string {
	var missing []string
	for _, gate := range pod.Spec.ReadinessGates {
		if c := condition(s, gate.ConditionType); c == nil {
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		} else if c.Status != corev1.ConditionTrue {
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %s", gate.ConditionType, c.Status))
		}
	}
	return strings.Join(missing, ", ")
}

func condition(s *corev1.PodStatus, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition sets one condition and says whether that changes anything. The transition time moves with the status only.
func setCondition(s *corev1.PodStatus, want corev1.PodCondition, now metav1.Time) (changed bool) {
	have := condition(s, want.Type)
	if have == nil {
		want.LastTransitionTime = now
		s.Conditions = append(s.Conditions, want)
		return true
	}
	want.LastTransitionTime, want.LastProbeTime = have.LastTransitionTime, have.LastProbeTime
	if want.Status != have.Status {
		want.LastTransitionTime = now
	}
	changed = !equality.Semantic.DeepEqual(have, &want)
	*have = want
	return changed
}
