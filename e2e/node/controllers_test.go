package node

import (
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// TestAutoscalerAndDisruptionController: an autoscaler raises a Deployment to its minimum, and a budget counts its pods.
func TestAutoscalerAndDisruptionController(t *testing.T) {
	f := newFixture(t, "controllers")
	startNode(t, Options{Name: f.node, Hollow: &Hollow{}})
	f.deploy("shop", "app:v1", 1)
	least, one := int32(3), intstr.FromInt32(1)
	_, err := f.client.AutoscalingV2().HorizontalPodAutoscalers(f.namespace).Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &least, MaxReplicas: 5,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.client.PolicyV1().PodDisruptionBudgets(f.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 90*time.Second, func() error {
		budget, err := f.client.PolicyV1().PodDisruptionBudgets(f.namespace).Get(t.Context(), "shop", metav1.GetOptions{})
		if err == nil && budget.Status.DisruptionsAllowed != least-1 {
			err = fmt.Errorf("the budget's status is %+v, want %d allowed", budget.Status, least-1)
		}
		return err
	})
}
