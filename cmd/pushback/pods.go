package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// podView is one pod.
type podView struct {
	Name string `json:"name"`
	// Ready is how many containers are, of all: 1/1.
	Ready string `json:"ready"`
	// Status is the phase, or what keeps it from running, as kubectl says it.
	Status   string    `json:"status"`
	Restarts int32     `json:"restarts"`
	Created  time.Time `json:"created,omitzero"`
}

func podOf(pod *corev1.Pod) podView {
	ready := 0
	out := podView{Name: pod.Name, Status: podStatus(pod), Created: pod.CreationTimestamp.Time}
	for _, container := range pod.Status.ContainerStatuses {
		if container.Ready {
			ready++
		}
		out.Restarts += container.RestartCount
	}
	out.Ready = fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers))
	return out
}

func podStatus(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, container := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		switch state := container.State; {
		case state.Waiting != nil && state.Waiting.Reason != "":
			return state.Waiting.Reason
		case state.Terminated != nil && state.Terminated.ExitCode != 0 && state.Terminated.Reason != "":
			return state.Terminated.Reason
		}
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	return orDash(string(pod.Status.Phase))
}
