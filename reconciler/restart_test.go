package reconciler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// pods are the live ones that are not on their way out.
func (l *lab) pods() []corev1.Pod {
	l.Helper()
	var list corev1.PodList
	if err := l.client.List(l.Context(), &list, client.InNamespace(l.namespace)); err != nil {
		l.Fatal(err)
	}
	var out []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}

// aged waits until the pods are older than a restart that is asked for now.
func (l *lab) aged() {
	l.Helper()
	clustertest.Eventually(l, patience, func() error {
		for _, pod := range l.pods() {
			if !pod.CreationTimestamp.Time.Before(l.reconciler.Now()) {
				return fmt.Errorf("pod %s is too young", pod.Name)
			}
		}
		return nil
	})
}

func (l *lab) askForRestart() {
	l.Helper()
	now := metav1.NewTime(l.reconciler.Now())
	l.change(func(r *v1alpha1.Rollout) { r.Spec.RestartAt = &now })
}

// A PodDisruptionBudget holds a restart back for as long as it says so; then every
// pod is replaced, and the restart is over.
func TestARestartHonoursBudgets(t *testing.T) {
	l := newLab(t)
	l.watch()
	all := intstr.FromString("100%")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	l.create(webRollout(), budget)
	l.reach("healthy", patience, healthy)
	clustertest.Eventually(l, patience, func() error { // the budget knows its pods
		now := &policyv1.PodDisruptionBudget{}
		if err := l.get("web", now); err != nil {
			return err
		}
		if now.Status.ObservedGeneration == 0 || now.Status.CurrentHealthy != 2 {
			return fmt.Errorf("%d pods are healthy to the budget", now.Status.CurrentHealthy)
		}
		return nil
	})
	before := map[string]bool{}
	for _, pod := range l.pods() {
		before[string(pod.UID)] = true
	}
	if len(before) != 2 {
		t.Fatalf("%d pods, want 2", len(before))
	}
	l.aged()
	l.askForRestart()
	l.reach("restarting", patience, func(r *v1alpha1.Rollout) bool { return r.Status.Message == "rollout is restarting" })
	l.settled()
	told, version := l.eventsOf(), l.rollout().ResourceVersion
	for range 5 { // each asks for an eviction itself, and is refused
		if result, err := l.pass(); err != nil || result.RequeueAfter < time.Second {
			t.Errorf("a budget that says no: error %v, the next pass in %s", err, result.RequeueAfter)
		}
	}
	if now := l.eventsOf(); now != told || l.rollout().ResourceVersion != version {
		t.Errorf("a budget that says no makes writes: %d events, then %d", told, now)
	}
	for _, pod := range l.pods() {
		if !before[string(pod.UID)] {
			t.Errorf("pod %s is new, and the budget allows no disruption", pod.Name)
		}
	}
	one := intstr.FromInt32(1)
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, &one
	clustertest.Eventually(l, patience, func() error {
		now := &policyv1.PodDisruptionBudget{}
		if err := l.get("web", now); err != nil {
			return err
		}
		now.Spec = budget.Spec
		return l.client.Update(l.Context(), now)
	})
	over := l.reach("restarted", 2*patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.RestartedAt != nil })
	if !over.Status.RestartedAt.Equal(over.Spec.RestartAt) {
		t.Errorf("restartedAt %v, want %v", over.Status.RestartedAt, over.Spec.RestartAt)
	}
	clustertest.Eventually(l, patience, func() error {
		pods := l.pods()
		for _, pod := range pods {
			if before[string(pod.UID)] {
				return fmt.Errorf("pod %s was not replaced", pod.Name)
			}
		}
		if len(pods) != 2 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
}

// The verb needs no change of the spec, and one pod goes at a time.
func TestC115_TheRestartVerbReplacesTheOnlyPod(t *testing.T) {
	l := newLab(t)
	l.watch()
	rollout := webRollout()
	one := int32(1)
	rollout.Spec.Replicas = &one
	l.create(rollout)
	v1 := l.reach("healthy", patience, healthy)
	l.aged()
	first := l.pods()[0].UID
	l.change(func(r *v1alpha1.Rollout) {
		r.Annotations = map[string]string{v1alpha1.RestartAnnotation: v1.Status.CurrentPodHash + "/0/token"}
	})
	l.reach("restarting", patience, func(r *v1alpha1.Rollout) bool { return r.Status.Verbs["restart"].Token == "token" })
	clustertest.Eventually(l, patience, func() error {
		ready := 0
		for _, pod := range l.pods() {
			if podAvailable(&pod, 0, l.reconciler.Now()) {
				ready++
			}
		}
		if ready == 0 {
			t.Fatalf("no pod serves: %d pods", len(l.pods()))
		}
		if now := l.rollout(); !healthy(now) || now.Status.RestartedAt == nil {
			return fmt.Errorf("phase %s, message %q", now.Status.Phase, now.Status.Message)
		}
		return nil
	})
	clustertest.Eventually(l, patience, func() error {
		if pods := l.pods(); len(pods) != 1 || pods[0].UID == first {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
}
