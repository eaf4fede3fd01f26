package reconciler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// requested is what a pod asks for, in thousandths of a CPU; the HPA of these tests
// wants half of it to be used.
const requested, wanted = 100, 50

// sizedTemplate is podTemplate with a request, without which an HPA measures nothing.
func sizedTemplate(image string) map[string]any {
	template := podTemplate(image)
	container := template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["resources"] = map[string]any{"requests": map[string]any{"cpu": fmt.Sprintf("%dm", requested)}}
	return template
}

// scaledLab is a lab whose Rollout is sized by the real HPA controller.
type scaledLab struct {
	*lab
	v1, v2 string       // the hashes of the two versions
	total  atomic.Int64 // of the load, in thousandths of a CPU
	dear   atomic.Int64 // how much more a request to v2 costs than one to v1
	asked  atomic.Int64 // how often the HPA controller has looked
	// stable and canary are the Services that traffic goes through.
	stable, canary string

	mu    sync.Mutex
	sizes []int32 // spec.replicas, each time that it changed
}

// newScaledLab is under a load that four pods are the right number for.
func newScaledLab(l *lab) *scaledLab {
	s := &scaledLab{lab: l, stable: "web-stable", canary: "web-canary",
		v1: l.hashOf(sizedTemplate("web:1")), v2: l.hashOf(sizedTemplate("web:2"))}
	s.total.Store(4 * wanted)
	s.dear.Store(1)
	return s
}

// begin creates the Rollout and its HPA, and waits until both are at rest with four pods.
func (s *scaledLab) begin(rollout *v1alpha1.Rollout) {
	s.Helper()
	rollout.Spec.Template = rawTemplate(sizedTemplate("web:1"))
	rollout.Spec.Replicas = ptr.To[int32](4)
	s.create(webService(s.stable), webService(s.canary), webRoute(), rollout)
	loads.Use(s.namespace, s.load)
	s.watch()
	s.reach("healthy", patience, healthy)
	s.create(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.RolloutKind, Name: "web"},
		MinReplicas:    ptr.To[int32](2), MaxReplicas: 20,
		// Nothing hides a wrong size but for a moment: the loads are read from more than one object.
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp:   &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](2)},
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](2)},
		},
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](wanted)},
		}}},
	}})
	clustertest.Eventually(s, patience, func() error {
		hpa := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := s.get("web", hpa); err != nil {
			return err
		}
		if hpa.Status.CurrentReplicas != 4 || hpa.Status.DesiredReplicas != 4 || len(hpa.Status.CurrentMetrics) == 0 {
			return fmt.Errorf("the HPA is not at work: %+v", hpa.Status)
		}
		return nil
	})
	s.record()
}

// load spreads the traffic over the Ready pods that the Services select, by the weights of the live route.
func (s *scaledLab) load(ready []corev1.Pod) map[string]int64 {
	ctx := context.Background() // the HPA controller asks on after the test
	weights := [2]int64{1, 0}
	route := &gatewayv1.HTTPRoute{}
	if err := s.read(ctx, "web", route); err == nil && s.stable == "web-stable" {
		for i, ref := range route.Spec.Rules[0].BackendRefs {
			weights[i] = int64(ptr.Deref(ref.Weight, 1))
		}
	}
	s.asked.Add(1)
	usage := map[string]int64{}
	for _, pod := range ready {
		usage[pod.Name] = 0
	}
	for i, name := range []string{s.stable, s.canary} {
		service := &corev1.Service{}
		if err := s.read(ctx, name, service); err != nil || weights[i] == 0 {
			continue
		}
		var served []corev1.Pod
		for _, pod := range ready {
			if hash := service.Spec.Selector[v1alpha1.TemplateHashLabel]; hash == "" || hash == pod.Labels[v1alpha1.TemplateHashLabel] {
				served = append(served, pod)
			}
		}
		for _, pod := range served {
			share := s.total.Load() * weights[i] / (weights[0] + weights[1]) / int64(len(served))
			if pod.Labels[v1alpha1.TemplateHashLabel] == s.v2 {
				share *= s.dear.Load()
			}
			usage[pod.Name] += share
		}
	}
	return usage
}

func (s *scaledLab) read(ctx context.Context, name string, into client.Object) error {
	return s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, into)
}

// record notes every size that the Rollout is given from now on.
func (s *scaledLab) record() {
	s.Helper()
	watching, err := client.NewWithWatch(shared.Cluster(s).RESTConfig(), client.Options{Scheme: s.client.Scheme()})
	if err != nil {
		s.Fatal(err)
	}
	events, err := watching.Watch(s.Context(), &v1alpha1.RolloutList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() { // closed with the test's context
			rollout, ok := event.Object.(*v1alpha1.Rollout)
			if !ok {
				continue
			}
			s.mu.Lock()
			if size := ptr.Deref(rollout.Spec.Replicas, -1); len(s.sizes) == 0 || s.sizes[len(s.sizes)-1] != size {
				s.sizes = append(s.sizes, size)
			}
			s.mu.Unlock()
		}
	}()
}

// sized is every size since the start.
func (s *scaledLab) sized() []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sizes)
}

// looks lets the HPA controller look some more times than it may hesitate, and checks all the while.
func (s *scaledLab) looks(check func() error) {
	s.Helper()
	until := s.asked.Load() + 6
	clustertest.Eventually(s, patience, func() error {
		if err := check(); err != nil {
			s.Fatal(err)
		}
		if now := s.asked.Load(); now < until {
			return fmt.Errorf("the HPA controller looked %d times less than it should", until-now)
		}
		return nil
	})
}

// podsOf are the wanted and the available pods of a version.
func (s *scaledLab) podsOf(hash string) (desired, available int32) {
	s.Helper()
	for _, set := range s.sets() {
		if set.Labels[v1alpha1.TemplateHashLabel] == hash {
			return ptr.Deref(set.Spec.Replicas, 1), set.Status.AvailableReplicas
		}
	}
	return 0, 0
}

// sizesBecome waits until both versions have these pods, wanted and available, and the Rollout this size.
func (s *scaledLab) sizesBecome(replicas, v1, v2 int32) {
	s.Helper()
	clustertest.Eventually(s, patience, func() error { return s.sizesAre(replicas, v1, v2) })
}

func (s *scaledLab) sizesAre(replicas, v1, v2 int32) error {
	rollout := s.rollout()
	d1, a1 := s.podsOf(s.v1)
	d2, a2 := s.podsOf(s.v2)
	if ptr.Deref(rollout.Spec.Replicas, -1) != replicas || d1 != v1 || a1 != v1 || d2 != v2 || a2 != v2 {
		return fmt.Errorf("replicas %d, %d (%d available) of v1 and %d (%d) of v2; want %d, %d and %d; sizes %v; phase %s: %s",
			ptr.Deref(rollout.Spec.Replicas, -1), d1, a1, d2, a2, replicas, v1, v2, s.sized(), rollout.Status.Phase, rollout.Status.Message)
	}
	return nil
}

// release declares v2.
func (s *scaledLab) release() {
	s.Helper()
	s.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(sizedTemplate("web:2")) })
}

// pausedAt waits for the pause that is the step with an index.
func (s *scaledLab) pausedAt(index int32) *v1alpha1.Rollout {
	s.Helper()
	return s.reach(fmt.Sprintf("paused at %d", index), patience, atPause(index))
}

func atPause(index int32) func(*v1alpha1.Rollout) bool {
	return func(r *v1alpha1.Rollout) bool {
		return r.Status.Phase == v1alpha1.RolloutPhasePaused && r.Status.CurrentStepIndex != nil && *r.Status.CurrentStepIndex == index
	}
}

// say sends a verb about v2.
func (s *scaledLab) say(annotation string, step int32) {
	s.Helper()
	s.change(func(r *v1alpha1.Rollout) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, annotation, fmt.Sprintf("%s/%d/token-%d", s.v2, step, step))
	})
}
