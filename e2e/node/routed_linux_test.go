package node

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// insideVariable marks the run of this test binary inside a network namespace.
const insideVariable = "NODE_TEST_INSIDE_NETNS"

// TestRoutedProcessListensOnThePodsAddress runs itself again in a network namespace in which the whole pod range is local.
func TestRoutedProcessListensOnThePodsAddress(t *testing.T) {
	if os.Getenv(insideVariable) != "" {
		launchRouted(t)
		return
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("needs the ip command")
	}
	script := ip + ` link set lo up && ` + ip + ` route add local 10.244.0.0/16 dev lo && exec "$0" -test.run='^TestRoutedProcessListensOnThePodsAddress$' -test.v`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, os.Args[0])
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		t.Skipf("this machine gives no network namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func launchRouted(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &processLauncher{
		images: map[string]Image{appImage: {Path: binary, Env: []string{appVariable + "=1"}}}, logs: logs(t.TempDir()),
		table: newTable(netip.MustParsePrefix("10.244.0.0/16"), Routed),
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "demo", UID: "u1"}, Status: corev1.PodStatus{PodIP: "10.244.3.7"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: appImage, Args: []string{"serve"},
			Env: []corev1.EnvVar{{Name: "ANSWER", Value: "routed"}}, Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}},
	}
	run, err := l.launch(t.Context(), launch{pod: pod, container: &pod.Spec.Containers[0], started: time.Now(), tell: func(event) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { run.stop(0); <-run.done() }()
	var plain net.Dialer
	clustertest.Eventually(t, 20*time.Second, func() error {
		got, err := get(t.Context(), plain.DialContext, "http://10.244.3.7:8080")
		if err == nil && got != "routed" {
			t.Fatalf("answer = %q", got)
		}
		return err
	})
	if text, err := os.ReadFile(filepath.Join(string(l.logs), "demo_shop_u1", "app", "0.log")); err != nil || len(text) == 0 {
		t.Errorf("the log is %q, %v", text, err)
	}
}
