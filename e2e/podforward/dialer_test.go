package podforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/e2e/node"
)

var shared = clustertest.New(cluster.Options{})

const (
	// appVariable makes the test binary the app that pods run; its value is what the app answers.
	appVariable = "PODFORWARD_TEST_APP"
	appImage    = "registry.example/team/app"
)

func TestMain(m *testing.M) {
	if answer := os.Getenv(appVariable); answer != "" {
		fmt.Println(http.ListenAndServe(os.Getenv(node.ListenVariable), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprintf(w, "%s%s%s", answer, r.URL.Path, body)
		})))
		os.Exit(1)
	}
	os.Exit(shared.Run(m))
}

type fixture struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	dialer    *Dialer
}

// newFixture runs a node that answers the API server, and makes a Dialer for a namespace of its own.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := shared.Cluster(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(node.Options{
		Config: c.RESTConfig(), Name: strings.ToLower(t.Name()), Images: map[string]node.Image{appImage: {Path: binary}},
		LogDir: t.TempDir(), Serving: c.NodeTLS(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the node ended with: %v", err)
		}
	})
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, client: client, namespace: clustertest.Namespace(t, c)}
	if f.dialer, err = New(c.RESTConfig(), f.namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.dialer.Close() })
	return f
}

// pod starts a pod that answers with its name, and returns its address.
func (f *fixture) pod(name string) string {
	f.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: strings.ToLower(f.Name())},
			Containers: []corev1.Container{{
				Name: "app", Image: appImage, Env: []corev1.EnvVar{{Name: appVariable, Value: name}},
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")},
				}},
			}},
		},
	}
	if _, err := f.client.CoreV1().Pods(f.namespace).Create(f.Context(), pod, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	clustertest.Eventually(f, 60*time.Second, func() (err error) {
		if pod, err = f.client.CoreV1().Pods(f.namespace).Get(f.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the pod is not ready")
	})
	return pod.Status.PodIP
}

// http is a client that reaches pods.
func (f *fixture) http(keep bool) *http.Client {
	transport := &http.Transport{DialContext: f.dialer.DialContext, DisableKeepAlives: !keep}
	f.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func ask(client *http.Client, address, path, body string) (string, error) {
	response, err := client.Post("http://"+address+path, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestDialReachesEachPod(t *testing.T) {
	f := newFixture(t)
	large := strings.Repeat("0123456789abcdef", 64<<10/16)
	for name, address := range map[string]string{"one": f.pod("one") + ":8080", "two": f.pod("two") + ":8080"} {
		for _, keep := range []bool{true, false} {
			client := f.http(keep)
			var group sync.WaitGroup
			for i := range 40 {
				group.Go(func() {
					path := fmt.Sprintf("/%d/", i)
					got, err := ask(client, address, path, large)
					if err != nil || got != name+path+large {
						t.Errorf("pod %s, keep-alive %v: %d bytes, error %v", name, keep, len(got), err)
					}
				})
			}
			group.Wait()
		}
	}
	// Streams that ended must not stay: a demo opens thousands.
	clustertest.Eventually(t, 30*time.Second, func() error {
		f.dialer.mu.Lock()
		defer f.dialer.mu.Unlock()
		for l := range f.dialer.all {
			if l.streams > 40 {
				return fmt.Errorf("%d streams are open", l.streams)
			}
		}
		if got := len(f.dialer.all); got != 2 {
			return fmt.Errorf("%d shared connections for 2 pods", got)
		}
		return nil
	})
}

func TestReadSaysWhyAPortIsRefused(t *testing.T) {
	f := newFixture(t)
	conn, err := f.dialer.DialContext(t.Context(), "tcp", f.pod("app")+":9999")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("reading from a port where nothing listens: %v, want the node's reason", err)
	}
}

func TestDialRefuses(t *testing.T) {
	c := shared.Cluster(t)
	dialer, err := New(c.RESTConfig(), clustertest.Namespace(t, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialer.Close() })
	cases := map[string]struct {
		network, address string
		want             error
	}{
		"an address that no pod has": {"tcp", "10.244.255.254:80", ErrNoPod},
		"another network":            {"udp", "10.244.0.1:80", nil},
		"a name":                     {"tcp", "shop:80", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conn, err := dialer.DialContext(t.Context(), c.network, c.address)
			if err == nil {
				conn.Close()
				t.Fatal("it was dialed")
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// A pod's end breaks what is open to it, and its address then finds the next pod that has it.
func TestDialFindsTheNextPodOfAnAddress(t *testing.T) {
	f := newFixture(t)
	address := f.pod("first") + ":8080"
	if got, err := ask(f.http(false), address, "/", ""); err != nil || got != "first/" {
		t.Fatalf("%q, %v", got, err)
	}
	open, err := f.dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := open.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if err := f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "first", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading from a pod that is gone: %v, want an end", err)
	}
	clustertest.Eventually(t, 30*time.Second, func() error {
		conn, err := f.dialer.DialContext(t.Context(), "tcp", address)
		if errors.Is(err, ErrNoPod) {
			return nil
		}
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return fmt.Errorf("the pod that is gone is still dialed: %w", err)
	})
}

func TestCloseEndsConnections(t *testing.T) {
	f := newFixture(t)
	address := f.pod("app") + ":8080"
	conn, err := f.dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := f.dialer.Close(); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("reading after Close: %v, want an end", err)
	}
	if _, err := f.dialer.DialContext(t.Context(), "tcp", address); !errors.Is(err, ErrClosed) {
		t.Errorf("dialing after Close: %v, want %v", err, ErrClosed)
	}
}
