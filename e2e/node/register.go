package node

import (
	"context"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

// hostIP is the address of the machine as pods and people see it.
const hostIP = "127.0.0.1"

// register makes the Node object, or takes over one of that name, and reports it ready once: nothing in the test
// control plane judges heartbeats, so there are none, and a cluster at rest sees no write.
func (n *Node) register(ctx context.Context) error {
	nodes := n.client.CoreV1().Nodes()
	labels := map[string]string{
		corev1.LabelHostname: n.name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
	}
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		// Admission taints a new node as not ready, and the controller that lifts it isn't there.
		others := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		if len(others) == len(node.Spec.Taints) {
			return nil
		}
		node.Spec.Taints = others
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.describe(&node.Status)
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

func (n *Node) describe(s *corev1.NodeStatus) {
	now := metav1.Now()
	// Capacity is only for people to see: nothing is ever refused for it.
	s.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1000"), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("100k"),
	}
	s.Allocatable = s.Capacity
	s.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "LocalNodeReady", Message: "pods are processes of this machine",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	if n.options.Hollow != nil {
		s.Conditions[0].Message = "hollow: pods are not run"
	}
	s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: hostIP}, {Type: corev1.NodeHostName, Address: n.name}}
	s.DaemonEndpoints = corev1.NodeDaemonEndpoints{}
	if n.kubelet != nil {
		s.DaemonEndpoints.KubeletEndpoint.Port = n.kubelet.port()
	}
	s.NodeInfo = corev1.NodeSystemInfo{
		OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, KubeletVersion: "v1.37.2-pushback-local",
		ContainerRuntimeVersion: "process://" + runtime.Version(),
	}
}

// startEvents starts the sink of events and returns what stops it.
func (n *Node) startEvents() (stop func()) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: n.client.CoreV1().Events("")})
	n.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "local-node", Host: n.name})
	return broadcaster.Shutdown
}

// warn tells the readers of the pod's events. Ordinary progress makes no events: with thousands of pods they
// would be most of the traffic.
func (n *Node) warn(pod *corev1.Pod, reason, format string, args ...any) {
	n.events.Eventf(pod, corev1.EventTypeWarning, reason, format, args...)
}
