package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A process of this machine is no container, and what it can't have is refused instead of ignored. The lists name
// what is carried out, or has no meaning here; every other field, those of later versions of Kubernetes included,
// is refused.
var (
	podCarriedOut = sets.New("containers", "restartPolicy", "terminationGracePeriodSeconds", "readinessGates", "nodeName",
		"nodeSelector", "schedulerName", "schedulingGates", "volumes")
	// Isolation, identity and placement: there is one node, and its user and network are this process's.
	podWithoutMeaning = sets.New("dnsPolicy", "securityContext", "serviceAccountName", "serviceAccount", "automountServiceAccountToken",
		"tolerations", "priority", "priorityClassName", "preemptionPolicy", "enableServiceLinks", "affinity", "topologySpreadConstraints",
		"imagePullSecrets", "hostname", "resources")
	containerCarriedOut = sets.New("name", "image", "command", "args", "env", "envFrom", "ports",
		"readinessProbe", "livenessProbe", "startupProbe", "volumeMounts")
	containerWithoutMeaning = sets.New("resources", "securityContext", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")
	probeCarriedOut         = sets.New("httpGet", "tcpSocket", "initialDelaySeconds", "periodSeconds", "timeoutSeconds",
		"successThreshold", "failureThreshold", "terminationGracePeriodSeconds")
	portCarriedOut  = sets.New("name", "containerPort", "protocol")
	valueCarriedOut = sets.New("fieldRef", "configMapKeyRef", "secretKeyRef")
)

// tokenMount is where admission mounts the service account's token, which processes don't get: they are
// the user's own, and use a kubeconfig.
const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"

func refusal(paths []string) string {
	return fmt.Sprintf("the local node does not support %s: remove it, or run the pod on a real cluster", strings.Join(paths, ", "))
}

// refused are the paths of all fields of the pod's spec that a process can't have.
func (l *processLauncher) refused(pod *corev1.Pod) []string {
	paths := beyond("spec", &pod.Spec, podCarriedOut, podWithoutMeaning)
	for i, v := range pod.Spec.Volumes {
		if !strings.HasPrefix(v.Name, "kube-api-access-") || v.Projected == nil {
			paths = append(paths, fmt.Sprintf("spec.volumes[%d] (%s)", i, v.Name))
		}
	}
	for i := range pod.Spec.Containers {
		paths = append(paths, refusedOfContainer(fmt.Sprintf("spec.containers[%d]", i), &pod.Spec.Containers[i])...)
	}
	return paths
}

func refusedOfContainer(path string, c *corev1.Container) []string {
	paths := beyond(path, c, containerCarriedOut, containerWithoutMeaning)
	for i, m := range c.VolumeMounts {
		if m.MountPath != tokenMount {
			paths = append(paths, fmt.Sprintf("%s.volumeMounts[%d] (%s)", path, i, m.Name))
		}
	}
	for name, probe := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if probe != nil {
			paths = append(paths, beyond(path+"."+name, probe, probeCarriedOut)...)
		}
	}
	for i := range c.Ports {
		at := fmt.Sprintf("%s.ports[%d]", path, i)
		paths = append(paths, beyond(at, &c.Ports[i], portCarriedOut)...)
		if p := c.Ports[i].Protocol; p != "" && p != corev1.ProtocolTCP {
			paths = append(paths, at+".protocol "+string(p))
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			paths = append(paths, beyond(fmt.Sprintf("%s.env[%d].valueFrom", path, i), from, valueCarriedOut)...)
		}
	}
	slices.Sort(paths)
	return paths
}

// beyond are the paths of the set fields of the object that none of the lists has.
func beyond(path string, object any, lists ...sets.Set[string]) []string {
	set, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return []string{fmt.Sprintf("%s (%v)", path, err)}
	}
	var paths []string
	for _, field := range slices.Sorted(maps.Keys(set)) {
		if !slices.ContainsFunc(lists, func(l sets.Set[string]) bool { return l.Has(field) }) {
			paths = append(paths, path+"."+field)
		}
	}
	return paths
}
