package node

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// logs is the folder of the containers' logs.
type logs string

func (l logs) file(pod *corev1.Pod, container string, restart int32) string {
	folder := fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID)
	return filepath.Join(string(l), folder, container, fmt.Sprintf("%d.log", restart))
}

// LogFile is the path of what a run of a container wrote to both outputs: restart 0 is the first run. It stays
// when the pod is deleted. The file isn't there before the run has started, and never on a hollow node.
func (n *Node) LogFile(pod *corev1.Pod, container string, restart int32) string {
	return logs(n.options.LogDir).file(pod, container, restart)
}
