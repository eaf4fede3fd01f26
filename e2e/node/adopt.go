package node

import (
	corev1 "k8s.io/api/core/v1"
)

// adopt takes over a pod of which a status says that it was run by a node of this name before. Counts and last
// states go on. A run that survives goes on from when it began; a process died with the node that ran it, which
// is a kubelet's ContainerStatusUnknown, and is restarted under the pod's policy.
func (r *podRecord) adopt(pod *corev1.Pod, survives bool) {
	for _, c := range r.containers {
		for i := range pod.Status.ContainerStatuses {
			if s := &pod.Status.ContainerStatuses[i]; s.Name == c.name {
				c.adopt(s, survives)
			}
		}
	}
}

func (c *containerRecord) adopt(s *corev1.ContainerStatus, survives bool) {
	c.restarts, c.last, c.image = s.RestartCount, s.LastTerminationState.Terminated, s.Image
	switch {
	case s.State.Terminated != nil:
		c.launched, c.terminated, c.last = true, s.State.Terminated, s.LastTerminationState.Terminated
	case s.State.Running != nil && survives:
		c.launched, c.started = true, s.State.Running.StartedAt.Time
	case s.State.Running != nil:
		c.launched = true
		c.terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "the local node ended, and its processes with it",
			StartedAt: s.State.Running.StartedAt, FinishedAt: metaNow(),
		}
	case s.LastTerminationState.Terminated != nil:
		c.launched, c.terminated, c.last = true, s.LastTerminationState.Terminated, nil
	}
}
