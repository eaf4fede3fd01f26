// Package fakemetrics serves the resource metrics API (metrics.k8s.io) of a test cluster, so that the real HPA
// controller can be asked what it makes of a load. Tests say what each pod uses. It must not import the
// product's packages, so that any test may use it.
package fakemetrics

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

const (
	group   = "metrics.k8s.io"
	version = "v1beta1"
	// window is what a sample is an average over, which the HPA controller holds against a pod's age.
	window = time.Second
)

// Load says how many thousandths of a CPU each of a namespace's Ready pods uses now, by the pod's name. A pod
// that it leaves out has no metrics, as a pod that has just started. It is called at every request, by several at once.
type Load func(ready []corev1.Pod) map[string]int64

// Server is the metrics API. Its zero value is ready for Install; it is safe for concurrent use.
type Server struct {
	mu    sync.Mutex
	loads map[string]Load // by namespace
	pods  kubernetes.Interface
}

// Use sets the load of a namespace. A namespace without one has no metrics.
func (s *Server) Use(namespace string, load Load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loads == nil {
		s.loads = map[string]Load{}
	}
	s.loads[namespace] = load
}

// ServeHTTP answers discovery and lists of PodMetrics, in JSON.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	root := "/apis/" + group + "/" + version
	namespace, isPods := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, root+"/namespaces/"), "/pods")
	switch {
	case r.Method != http.MethodGet:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	case r.URL.Path == root:
		answer(w, &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group + "/" + version,
			APIResources: []metav1.APIResource{{Name: "pods", Namespaced: true, Kind: "PodMetrics", Verbs: metav1.Verbs{"get", "list"}}},
		})
	case isPods && !strings.Contains(namespace, "/"):
		s.list(w, r, namespace)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, namespace string) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	items, err := s.measure(r.Context(), namespace, selector)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{"kind": "PodMetricsList", "apiVersion": group + "/" + version, "metadata": map[string]any{}, "items": items})
}

// measure gives the PodMetrics of the Ready pods that the selector matches; the load is asked about all Ready pods.
func (s *Server) measure(ctx context.Context, namespace string, selector labels.Selector) ([]any, error) {
	s.mu.Lock()
	load := s.loads[namespace]
	s.mu.Unlock()
	items := []any{}
	if load == nil {
		return items, nil
	}
	list, err := s.pods.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var ready []corev1.Pod
	for _, pod := range list.Items {
		if isReady(&pod) {
			ready = append(ready, pod)
		}
	}
	usage := load(ready)
	for _, pod := range ready {
		milli, measured := usage[pod.Name]
		if measured && selector.Matches(labels.Set(pod.Labels)) {
			items = append(items, podMetrics(&pod, milli))
		}
	}
	return items, nil
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podMetrics lays a pod's whole usage on its first container, which is all that the HPA controller adds up.
func podMetrics(pod *corev1.Pod, milli int64) map[string]any {
	return map[string]any{
		"metadata":  map[string]any{"name": pod.Name, "namespace": pod.Namespace, "labels": pod.Labels},
		"timestamp": time.Now().UTC().Format(time.RFC3339), "window": window.String(),
		"containers": []any{map[string]any{
			"name":  pod.Spec.Containers[0].Name,
			"usage": map[string]any{"cpu": fmt.Sprintf("%dm", milli), "memory": "1Mi"},
		}},
	}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // the caller has gone
}
