package fakemetrics_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/e2e/cluster/fakemetrics"
	"github.com/pushback-dev/pushback/e2e/node"
)

var (
	metrics = &fakemetrics.Server{}
	shared  = clustertest.New(cluster.Options{ControllerManagerArgs: fakemetrics.ControllerManagerArgs()}, startNode, metrics.Install)
)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func startNode(c *cluster.Cluster, ctx context.Context) error {
	n, err := node.New(node.Options{Config: c.RESTConfig(), Hollow: &node.Hollow{}})
	if err != nil {
		return err
	}
	go func() { _ = n.Run(ctx) }() // pods that never become ready fail the test
	return nil
}

// The HPA controller sizes a Deployment by the load that a test makes up.
func TestTheHPAControllerFollowsTheLoad(t *testing.T) {
	t.Parallel()
	c := shared.Cluster(t)
	ns := clustertest.Namespace(t, c)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	metrics.Use(ns, func(ready []corev1.Pod) map[string]int64 {
		usage := map[string]int64{}
		for _, pod := range ready {
			usage[pod.Name] = 300 / int64(len(ready))
		}
		return usage
	})
	one, half, labels := int32(1), int32(50), map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: "web:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		}}}},
	}}
	if _, err := client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 20,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half},
		}}},
	}}
	if _, err := client.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(t.Context(), scaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 60*time.Second, func() error { // 300m at 50m a pod
		now, err := client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(int32(6), *now.Spec.Replicas); diff != "" {
			h, err := client.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(t.Context(), "web", metav1.GetOptions{})
			return errors.Join(err, fmt.Errorf("replicas (-want +got): %s; the HPA says %+v", diff, h.Status.Conditions))
		}
		return nil
	})
}
