package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/lab/dialtable"
)

// get asks an HTTP server through the dialer and without reuse of connections.
func get(ctx context.Context, dial dialFunc, url string) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestDeploymentToEndpointToProcess(t *testing.T) {
	f := newFixture(t, "deployment")
	n := startNode(t, Options{Name: f.node})
	ctx := t.Context()
	template := f.pod("shop", appImage+":v1", "serve")
	template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "POD", ValueFrom: field("metadata.name")}, {Name: "ANSWER", Value: "I am $(POD)"}}
	template.Spec.Containers[0].ReadinessProbe = httpProbe("/health")
	replicas := int32(2)
	selector := map[string]string{"app": "shop"}
	_, err := f.client.AppsV1().Deployments(f.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: template.Spec}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.client.CoreV1().Services(f.namespace).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var endpoints map[string]string // pod by address
	clustertest.Eventually(t, 60*time.Second, func() error {
		endpoints, err = f.readyEndpoints(ctx, "shop")
		if err == nil && len(endpoints) != 2 {
			err = fmt.Errorf("ready endpoints: %v, want 2", endpoints)
		}
		return err
	})
	server := httptest.NewServer(n.Handler())
	defer server.Close()
	remote := &dialtable.Table{URL: server.URL}
	for address, pod := range endpoints {
		for name, dial := range map[string]dialFunc{"Node.Dial": n.Dial, "the table over HTTP": remote.DialContext} {
			if got, err := get(ctx, dial, "http://"+address); err != nil || got != "I am "+pod {
				t.Errorf("through %s, %s answers %q, %v; want pod %s", name, address, got, err, pod)
			}
		}
	}
}

// readyEndpoints are the pods of a service by address, of the slices that a gateway would read.
func (f *fixture) readyEndpoints(ctx context.Context, service string) (map[string]string, error) {
	slices, err := f.client.DiscoveryV1().EndpointSlices(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				found[net.JoinHostPort(e.Addresses[0], fmt.Sprint(*slice.Ports[0].Port))] = e.TargetRef.Name
			}
		}
	}
	return found, nil
}

func TestUnknownImage(t *testing.T) {
	f := newFixture(t, "unknown-image")
	startNode(t, Options{Name: f.node})
	f.create(f.pod("shop", "registry.example/other:v1"))
	pod := f.until("shop", waits("ImagePullBackOff"))
	if message := pod.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, "registry.example/other:v1") || pod.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s, message %q: want Pending and the image's name", pod.Status.Phase, message)
	}
	f.untilEvent("shop", "Failed", "registry.example/other:v1")
}

func (f *fixture) untilEvent(pod, reason, text string) {
	f.Helper()
	clustertest.Eventually(f, 30*time.Second, func() error {
		events, err := f.client.CoreV1().Events(f.namespace).List(f.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == reason && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("no event %s with %q among %d", reason, text, len(events.Items))
	})
}

func TestUnsupportedFieldIsRefusedByName(t *testing.T) {
	f := newFixture(t, "unsupported")
	startNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1", "serve")
	p.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"db"}}}
	f.create(p)
	pod := f.until("shop", waits("CreateContainerConfigError"))
	if message := pod.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, "spec.hostAliases") {
		t.Errorf("message = %q, want the field's path", message)
	}
	f.untilEvent("shop", "Failed", "spec.hostAliases")
}

func TestCrashLoop(t *testing.T) {
	f := newFixture(t, "crash-loop")
	n := startNode(t, Options{Name: f.node})
	f.create(f.pod("shop", appImage+":v1", "exit", "7"))
	pod := f.until("shop", func(p *corev1.Pod) error {
		if err := waits("CrashLoopBackOff")(p); err != nil {
			return err
		}
		if p.Status.ContainerStatuses[0].RestartCount < 2 {
			return errors.New("fewer than 2 restarts")
		}
		return nil
	})
	last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 7 || last.Reason != "Error" || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("last state = %+v in phase %s, want exit code 7 in Running", last, pod.Status.Phase)
	}
	for restart := range int32(2) {
		if text, err := os.ReadFile(n.LogFile(pod, "app", restart)); err != nil || string(text) != "args: [exit 7]\n" {
			t.Errorf("the log of run %d is %q, %v", restart, text, err)
		}
	}
}

func TestCommandOfAnotherProgramDoesNotStart(t *testing.T) {
	f := newFixture(t, "command")
	startNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1")
	p.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "true"}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.create(p)
	pod := f.until("shop", inPhase(corev1.PodFailed))
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "StartError" || end.ExitCode != 128 {
		t.Errorf("terminated = %+v, want a StartError", end)
	}
	own := f.pod("own", appImage+":v1", "3")
	own.Spec.Containers[0].Command = []string{"/usr/bin/app", "exit"}
	own.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.create(own)
	pod = f.until("own", inPhase(corev1.PodFailed))
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("terminated = %+v, want exit code 3 by command and args", end)
	}
}

func TestJobs(t *testing.T) {
	f := newFixture(t, "jobs")
	startNode(t, Options{Name: f.node})
	for name, code := range map[string]string{"good": "0", "bad": "1"} {
		limit := int32(1)
		template := f.pod(name, appImage+":v1", "exit", code)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := f.client.BatchV1().Jobs(f.namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{BackoffLimit: &limit, Template: corev1.PodTemplateSpec{Spec: template.Spec}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]batchv1.JobConditionType{"good": batchv1.JobComplete, "bad": batchv1.JobFailed} {
		clustertest.Eventually(t, 90*time.Second, func() error {
			job, err := f.client.BatchV1().Jobs(f.namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range job.Status.Conditions {
				if c.Type == want && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("job %s is not %s: %+v", name, want, job.Status)
		})
	}
}

func TestOnFailureRestartsUntilSuccess(t *testing.T) {
	f := newFixture(t, "on-failure")
	startNode(t, Options{Name: f.node})
	p := f.pod("done", appImage+":v1", "exit", "0")
	p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	f.create(p)
	if pod := f.until("done", inPhase(corev1.PodSucceeded)); pod.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("restarted %d times after success", pod.Status.ContainerStatuses[0].RestartCount)
	}
	p = f.pod("failing", appImage+":v1", "exit", "1")
	p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	f.create(p)
	f.until("failing", waits("CrashLoopBackOff"))
}

func TestProbes(t *testing.T) {
	f := newFixture(t, "probes")
	n := startNode(t, Options{Name: f.node})
	ready := f.pod("ready", appImage+":v1", "serve")
	ready.Spec.Containers[0].ReadinessProbe = httpProbe("/health")
	live := f.pod("live", appImage+":v1", "serve")
	live.Spec.Containers[0].StartupProbe, live.Spec.Containers[0].LivenessProbe = httpProbe("/health"), httpProbe("/health")
	live.Spec.Containers[0].StartupProbe.FailureThreshold = 30
	for _, p := range []*corev1.Pod{ready, live} {
		f.create(p)
		pod := f.until(p.Name, isReady)
		if _, err := get(t.Context(), n.Dial, "http://"+pod.Status.PodIP+":8080/sicken"); err != nil {
			t.Fatal(err)
		}
	}
	pod := f.until("ready", isUnready)
	if s := pod.Status.ContainerStatuses[0]; s.RestartCount != 0 || s.State.Running == nil {
		t.Errorf("a failed readiness probe ended the run: %+v", s)
	}
	f.until("live", func(p *corev1.Pod) error {
		if p.Status.ContainerStatuses[0].RestartCount != 1 {
			return errors.New("a failed liveness probe did not restart the container once")
		}
		return isReady(p)
	})
}

func TestTerminationGrace(t *testing.T) {
	f := newFixture(t, "grace")
	n := startNode(t, Options{Name: f.node})
	pods := f.client.CoreV1().Pods(f.namespace)
	for _, tc := range []struct {
		name  string
		args  []string
		least time.Duration
		most  time.Duration
	}{
		{"polite", []string{"serve"}, 0, 20 * time.Second},
		{"stubborn", []string{"serve", "ignoring-sigterm"}, 2 * time.Second, 20 * time.Second},
	} {
		p := f.pod(tc.name, appImage+":v1", tc.args...)
		p.Spec.Containers[0].ReadinessProbe = httpProbe("/health")
		grace := int64(30)
		if tc.least > 0 {
			grace = int64(tc.least / time.Second)
		}
		p.Spec.TerminationGracePeriodSeconds = &grace
		f.create(p)
		address := f.until(tc.name, isReady).Status.PodIP + ":8080"
		began := time.Now()
		if err := pods.Delete(t.Context(), tc.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		clustertest.Eventually(t, 60*time.Second, func() error {
			if _, err := pods.Get(t.Context(), tc.name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the pod is still there (%v)", err)
			}
			return nil
		})
		if took := time.Since(began); took < tc.least || took > tc.most {
			t.Errorf("%s took %s to go, want %s to %s", tc.name, took, tc.least, tc.most)
		}
		clustertest.Eventually(t, 10*time.Second, func() error {
			if _, err := get(t.Context(), n.Dial, "http://"+address); !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("dialing the pod that is gone: %v, want refused", err)
			}
			return nil
		})
	}
}

func TestForceDeletionEndsTheProcess(t *testing.T) {
	f := newFixture(t, "force")
	n := startNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1", "serve", "ignoring-sigterm")
	p.Spec.Containers[0].ReadinessProbe = httpProbe("/health")
	f.create(p)
	pod := f.until("shop", isReady)
	real, ok := n.table.lookup(pod.Status.PodIP + ":8080")
	if !ok {
		t.Fatal("the pod is not in the table")
	}
	now := int64(0)
	if err := f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "shop", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 30*time.Second, func() error {
		conn, err := net.Dial("tcp", real)
		if err == nil {
			conn.Close()
			return errors.New("the process still listens")
		}
		return nil
	})
	f.create(p) // the name is free for a pod of another uid
	if again := f.until("shop", isReady); again.UID == pod.UID {
		t.Error("the pod was not replaced")
	}
}

func TestMissingConfigMapIsWaitedFor(t *testing.T) {
	f := newFixture(t, "config")
	n := startNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1", "serve")
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ANSWER", ValueFrom: configKey("settings", "answer", nil)}}
	p.Spec.Containers[0].ReadinessProbe = httpProbe("/health")
	f.create(p)
	pod := f.until("shop", waits("CreateContainerConfigError"))
	if message := pod.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(message, `configmap "settings" not found`) {
		t.Errorf("message = %q", message)
	}
	_, err := f.client.CoreV1().ConfigMaps(f.namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"answer": "42"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod = f.until("shop", isReady)
	if got, err := get(t.Context(), n.Dial, "http://"+pod.Status.PodIP+":8080"); err != nil || got != "42" {
		t.Errorf("answer = %q, %v; want 42", got, err)
	}
}

func TestReadinessGate(t *testing.T) {
	f := newFixture(t, "gate")
	startNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1", "serve")
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
	f.create(p)
	f.until("shop", func(p *corev1.Pod) error {
		if c := condition(&p.Status, corev1.PodReady); c == nil || c.Reason != "ReadinessGatesNotReady" {
			return errors.New("the pod does not wait for its gate")
		}
		return nil
	})
	patch := []byte(`{"status":{"conditions":[{"type":"example.com/open","status":"True"}]}}`)
	if _, err := f.client.CoreV1().Pods(f.namespace).Patch(t.Context(), "shop", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	pod := f.until("shop", isReady)
	if c := condition(&pod.Status, "example.com/open"); c == nil || c.Status != corev1.ConditionTrue {
		t.Errorf("the gate's own condition was lost: %+v", pod.Status.Conditions)
	}
}

func TestRestartedNodeRestartsProcesses(t *testing.T) {
	f := newFixture(t, "restarted")
	_, stop := runNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1", "serve")
	p.Spec.Containers[0].ReadinessProbe = httpProbe("/health")
	f.create(p)
	before := f.until("shop", isReady)
	stop()
	n := startNode(t, Options{Name: f.node})
	after := f.until("shop", func(p *corev1.Pod) error {
		if p.Status.ContainerStatuses[0].RestartCount != 1 {
			return errors.New("the container was not restarted once")
		}
		return isReady(p)
	})
	if last := after.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.Reason != "ContainerStatusUnknown" {
		t.Errorf("last state = %+v, want ContainerStatusUnknown", last)
	}
	if after.Status.PodIP != before.Status.PodIP {
		t.Errorf("the pod's address went from %s to %s", before.Status.PodIP, after.Status.PodIP)
	}
	if _, err := get(t.Context(), n.Dial, "http://"+after.Status.PodIP+":8080"); err != nil {
		t.Error(err)
	}
}

func TestNodeSelectorThatDoesNotMatch(t *testing.T) {
	f := newFixture(t, "selector")
	startNode(t, Options{Name: f.node})
	p := f.pod("shop", appImage+":v1", "serve")
	p.Spec.NodeSelector["disk"] = "fast"
	f.create(p)
	f.until("shop", func(p *corev1.Pod) error {
		c := condition(&p.Status, corev1.PodScheduled)
		if c == nil || c.Reason != corev1.PodReasonUnschedulable || !strings.Contains(c.Message, "disk=fast") {
			return errors.New("the pod is not said to be unschedulable")
		}
		return nil
	})
}
