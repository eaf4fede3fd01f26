package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

var shared = clustertest.New(cluster.Options{})

// appVariable makes the test binary the app that pods run.
const appVariable = "NODE_TEST_APP"

func TestMain(m *testing.M) {
	if os.Getenv(appVariable) != "" {
		os.Exit(app(os.Args[1:]))
	}
	os.Exit(shared.Run(m))
}

// app is an HTTP server that does what its arguments say: "serve", "exit <code>", or "serve ignoring-sigterm".
func app(args []string) int {
	fmt.Println("args:", args)
	if args[0] == "exit" {
		code, err := strconv.Atoi(args[1])
		if err != nil {
			return 99
		}
		return code
	}
	if len(args) > 1 && args[1] == "ignoring-sigterm" {
		signal.Ignore(syscall.SIGTERM)
	}
	var sick atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getenv("ANSWER")) })
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/sicken", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	fmt.Println(http.ListenAndServe(os.Getenv(ListenVariable), mux))
	return 1
}

const appImage = "registry.example/team/app"

// quick is a back-off for tests.
var quick = Backoff{Initial: 200 * time.Millisecond, Max: time.Second, Reset: time.Minute}

// startNode runs a node until the test ends. Its pods are those of the namespaces that the test makes: it names
// itself in their node selector, since all tests of the package share a control plane.
func startNode(t *testing.T, o Options) *Node {
	t.Helper()
	n, stop := runNode(t, o)
	t.Cleanup(stop)
	return n
}

func runNode(t *testing.T, o Options) (n *Node, stop func()) {
	t.Helper()
	o.Config = shared.Cluster(t).RESTConfig()
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	if o.Restart == (Backoff{}) {
		o.Restart = quick
	}
	if o.Hollow == nil {
		binary, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o.Images = map[string]Image{appImage: {Path: binary, Env: []string{appVariable + "=1"}}}
		if o.LogDir == "" {
			o.LogDir = t.TempDir()
		}
	}
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return n, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with: %v", err)
		}
	}
}

type fixture struct {
	*testing.T
	client    kubernetes.Interface
	namespace string
	node      string
}

func newFixture(t *testing.T, node string) *fixture {
	t.Helper()
	c := shared.Cluster(t)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, client, clustertest.Namespace(t, c), node}
}

// pod is a pod of one container on the fixture's node.
func (f *fixture) pod(name, image string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: f.node},
			Containers: []corev1.Container{{
				Name: "app", Image: image, Args: args,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			}},
		},
	}
}

func (f *fixture) create(p *corev1.Pod) *corev1.Pod {
	f.Helper()
	created, err := f.client.CoreV1().Pods(f.namespace).Create(f.Context(), p, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return created
}

// until waits until the pod is so and returns it.
func (f *fixture) until(name string, check func(*corev1.Pod) error) *corev1.Pod {
	f.Helper()
	var pod *corev1.Pod
	clustertest.Eventually(f, 60*time.Second, func() (err error) {
		if pod, err = f.client.CoreV1().Pods(f.namespace).Get(f.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if err = check(pod); err != nil {
			err = fmt.Errorf("%w; its status is %+v", err, pod.Status)
		}
		return err
	})
	return pod
}

func isReady(p *corev1.Pod) error {
	if c := condition(&p.Status, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return nil
	}
	return errors.New("the pod is not ready")
}

func isUnready(p *corev1.Pod) error {
	if isReady(p) == nil {
		return errors.New("the pod is ready")
	}
	return nil
}

func waits(reason string) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == reason {
			return nil
		}
		return fmt.Errorf("the container does not wait with reason %s", reason)
	}
}

func inPhase(want corev1.PodPhase) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != want {
			return fmt.Errorf("the phase is not %s", want)
		}
		return nil
	}
}

func httpProbe(path string) *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}}}
}
