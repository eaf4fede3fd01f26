package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// schedule binds an unbound pod to this node. It has room for everything, so that only what names nodes can keep
// a pod away; affinity to other pods and spreading mean nothing on the only node.
func (n *Node) schedule(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	if host := pod.Spec.NodeSelector[corev1.LabelHostname]; host != "" && host != n.name {
		return nil // for another local node
	}
	if s := pod.Spec.SchedulerName; s != "" && s != corev1.DefaultSchedulerName {
		return nil
	}
	if why := n.mismatch(pod); why != "" {
		return n.unschedulable(ctx, pod, why)
	}
	err := n.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: n.name},
	}, metav1.CreateOptions{})
	// A conflict says that the pod was bound, deleted or replaced since: the watch brings the news.
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// mismatch says why the pod can't be on this node; empty if it can.
func (n *Node) mismatch(pod *corev1.Pod) string {
	have := labels.Set{corev1.LabelHostname: n.name}
	node := corev1.NodeStatus{}
	n.describe(&node)
	have[corev1.LabelOSStable], have[corev1.LabelArchStable] = node.NodeInfo.OperatingSystem, node.NodeInfo.Architecture
	for key, want := range pod.Spec.NodeSelector {
		if have[key] != want {
			return fmt.Sprintf("spec.nodeSelector wants %s=%s, and the node %s has %s=%s", key, want, n.name, key, have[key])
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution is not supported by the local node: use spec.nodeSelector"
	}
	return ""
}

func (n *Node) unschedulable(ctx context.Context, pod *corev1.Pod, why string) error {
	status := pod.Status.DeepCopy()
	changed := setCondition(status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why,
	}, metav1.Now())
	if !changed {
		return nil
	}
	n.warn(pod, "FailedScheduling", "%s", why)
	_, err := n.patchStatus(ctx, pod, status)
	return err
}
