package prom

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// PodSource says where pods are looked for. Those with the annotation
// prometheus.io/scrape: "true" are scraped, at prometheus.io/port (default: every
// TCP port that their containers declare) and prometheus.io/path (default
// /metrics), over prometheus.io/scheme (default http).
type PodSource struct {
	REST *rest.Config
	// Namespace is the only one that is watched; empty means all.
	Namespace string
}

// The labels that a pod's series carry besides job="pods" and instance.
const (
	namespaceLabel    = "namespace"
	podLabel          = "pod"
	templateHashLabel = "template_hash"

	// templateHashKey is the pod label that template_hash is taken from.
	templateHashKey = "pushback.dev/template-hash"
)

// followPods keeps the targets of the pods job at what the API server has, until
// ctx ends.
func (s *Server) followPods(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.pods.REST)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(s.pods.Namespace))
	pods := factory.Core().V1().Pods()
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := pods.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	}); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		list, err := pods.Lister().List(labels.Everything())
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		groups, problems := podGroups(list)
		for _, p := range problems {
			s.log.Warn("pod is not scraped", "error", p)
		}
		s.setGroups(podsJob, groups)
	}
}

// podGroups makes one group a pod that is to be scraped and has an address. An
// annotation that can't be used is a problem that names the pod.
func podGroups(pods []*corev1.Pod) (groups []*targetgroup.Group, problems []error) {
	groups = []*targetgroup.Group{}
	for _, pod := range pods {
		if pod.Annotations["prometheus.io/scrape"] != "true" || pod.Status.PodIP == "" ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		ports, err := podPorts(pod)
		if err != nil {
			problems = append(problems, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err))
			continue
		}
		groups = append(groups, podGroup(pod, ports))
	}
	slices.SortFunc(groups, func(a, b *targetgroup.Group) int {
		if a.Source < b.Source {
			return -1
		}
		return 1
	})
	return groups, problems
}

func podPorts(pod *corev1.Pod) ([]int, error) {
	if declared, ok := pod.Annotations["prometheus.io/port"]; ok {
		port, err := strconv.Atoi(declared)
		if err != nil || port < 1 || port > 65535 {
			return nil, fmt.Errorf("the annotation prometheus.io/port is %q, not a port from 1 to 65535", declared)
		}
		return []int{port}, nil
	}
	found := map[int]bool{}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
				found[int(p.ContainerPort)] = true
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("it declares no TCP port; set the annotation prometheus.io/port")
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func podGroup(pod *corev1.Pod, ports []int) *targetgroup.Group {
	group := &targetgroup.Group{
		Source: pod.Namespace + "/" + pod.Name,
		Labels: model.LabelSet{
			namespaceLabel: model.LabelValue(pod.Namespace),
			podLabel:       model.LabelValue(pod.Name),
		},
	}
	if hash := pod.Labels[templateHashKey]; hash != "" {
		group.Labels[templateHashLabel] = model.LabelValue(hash)
	}
	if path := pod.Annotations["prometheus.io/path"]; path != "" {
		group.Labels[model.MetricsPathLabel] = model.LabelValue(path)
	}
	if scheme := pod.Annotations["prometheus.io/scheme"]; scheme != "" {
		group.Labels[model.SchemeLabel] = model.LabelValue(scheme)
	}
	for _, port := range ports {
		address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))
		group.Targets = append(group.Targets, model.LabelSet{model.AddressLabel: model.LabelValue(address)})
	}
	return group
}
