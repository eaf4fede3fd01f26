package node

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

func (f *fixture) deploy(name, image string, replicas int32) {
	f.Helper()
	template := f.pod(name, image)
	_, err := f.client.AppsV1().Deployments(f.namespace).Create(f.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec}}}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
}

func TestHollowPodsByTheHundred(t *testing.T) {
	f := newFixture(t, "hundreds")
	startNode(t, Options{Name: f.node, Hollow: &Hollow{Ready: time.Second}})
	const pods = 500
	f.deploy("many", "app:v1", pods)
	began := time.Now()
	clustertest.Eventually(t, 120*time.Second, func() error {
		d, err := f.client.AppsV1().Deployments(f.namespace).Get(t.Context(), "many", metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != pods {
			err = fmt.Errorf("%d of %d pods are ready", d.Status.ReadyReplicas, pods)
		}
		return err
	})
	t.Logf("%d pods were ready after %s", pods, time.Since(began).Round(time.Millisecond))
	list, err := f.client.CoreV1().Pods(f.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]bool{}
	for _, p := range list.Items {
		addresses[p.Status.PodIP] = true
	}
	if len(addresses) != pods {
		t.Errorf("%d pods have %d addresses", pods, len(addresses))
	}
}

func TestHollowTags(t *testing.T) {
	f := newFixture(t, "tags")
	startNode(t, Options{Name: f.node, Hollow: &Hollow{}})
	began := time.Now()
	for name, check := range map[string]func(*corev1.Pod) error{
		"pull-error":        waits("ImagePullBackOff"),
		"config-error":      waits("CreateContainerConfigError"),
		"crash":             waits("CrashLoopBackOff"),
		"crash-after-500ms": waits("CrashLoopBackOff"),
		"ready-after-2s":    isReady,
		"v2":                isReady,
	} {
		t.Run(name, func(t *testing.T) {
			f.create(f.pod(name, "app:v1-"+name))
			f.until(name, check)
		})
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("ready-after-2s was ready within %s", took)
	}
	f.create(f.pod("unready", "app:unready-after-1s"))
	f.until("unready", isReady)
	f.until("unready", isUnready)

	p := f.pod("complete", "app:complete-after-500ms")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.create(p)
	f.until("complete", inPhase(corev1.PodSucceeded))

	p = f.pod("slow", "app:v1")
	p.Spec.Containers[0].ReadinessProbe = httpProbe("/")
	p.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds = 2
	f.create(p)
	pod := f.until("slow", isReady)
	ready := condition(&pod.Status, corev1.PodReady).LastTransitionTime
	if after := ready.Sub(pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time); after < time.Second {
		t.Errorf("ready %s after the start, before the probe's initial delay of 2s (in whole seconds)", after)
	}
}

func TestHollowNeverReady(t *testing.T) {
	f := newFixture(t, "never")
	startNode(t, Options{Name: f.node, Hollow: &Hollow{}})
	f.create(f.pod("never", "app:v1-never-ready"))
	f.create(f.pod("other", "app:v1"))
	f.until("other", isReady)
	f.until("never", func(p *corev1.Pod) error {
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Running == nil {
			return errors.New("the container does not run")
		}
		return isUnready(p)
	})
}

func TestHollowDeletion(t *testing.T) {
	f := newFixture(t, "deletion")
	startNode(t, Options{Name: f.node, Hollow: &Hollow{}})
	grace := int64(2)
	for name, least := range map[string]time.Duration{"v1": 0, "stubborn": 2 * time.Second} {
		p := f.pod(name, "app:"+name)
		p.Spec.TerminationGracePeriodSeconds = &grace
		f.create(p)
		f.until(name, isReady)
		began := time.Now()
		if err := f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		clustertest.Eventually(t, 30*time.Second, func() error {
			if _, err := f.client.CoreV1().Pods(f.namespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the pod is still there (%v)", err)
			}
			return nil
		})
		if took := time.Since(began); took < least {
			t.Errorf("%s was gone after %s, want %s", name, took, least)
		}
	}
}

func TestHollowPodsOutliveTheNode(t *testing.T) {
	f := newFixture(t, "outlive")
	_, stop := runNode(t, Options{Name: f.node, Hollow: &Hollow{}})
	f.create(f.pod("shop", "app:v1"))
	before := f.until("shop", isReady)
	stop()
	startNode(t, Options{Name: f.node, Hollow: &Hollow{}})
	f.create(f.pod("later", "app:v1"))
	later := f.until("later", isReady)
	after := f.until("shop", isReady)
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("taking over a pod that is as it should be wrote to it:\nbefore %+v\nafter %+v", before.Status, after.Status)
	}
	if later.Status.PodIP == before.Status.PodIP {
		t.Errorf("two pods have address %s", later.Status.PodIP)
	}
}
