// Package clustertest shares one control plane among the tests of a package. A test package declares
//
//	var shared = clustertest.New(cluster.Options{}, (*cluster.Cluster).InstallGatewayAPI)
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestX(t *testing.T) {
//		c := shared.Cluster(t)
//		namespace := clustertest.Namespace(t, c)
//
// The control plane starts with the first test that asks for it, so that unit tests beside it stay fast, and
// stops after the last. Tests keep apart by namespaces. It may import what package cluster may, and testing.
package clustertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/cluster"
)

// Step prepares a cluster that has just started.
type Step func(c *cluster.Cluster, ctx context.Context) error

// Shared is the control plane of a test package.
type Shared struct {
	options cluster.Options
	steps   []Step

	once    sync.Once
	cluster *cluster.Cluster
	err     error
}

// New declares a control plane; nothing starts yet. The steps run once, in order, when it has started; methods
// such as (*cluster.Cluster).InstallGatewayAPI are steps.
func New(o cluster.Options, steps ...Step) *Shared { return &Shared{options: o, steps: steps} }

// CRDs is the step that installs the CustomResourceDefinitions of a folder of the checkout, such as "manifests/crd".
func CRDs(dir string) Step {
	return func(c *cluster.Cluster, ctx context.Context) error {
		root, err := cluster.Root()
		if err != nil {
			return err
		}
		return c.InstallCRDs(ctx, root+"/"+dir)
	}
}

// Run runs the package's tests and then stops the control plane. It returns the exit status for os.Exit.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	// Whoever asks now finds that it is too late, instead of starting a cluster that nobody stops.
	s.once.Do(func() { s.err = fmt.Errorf("the tests are over") })
	if s.cluster == nil {
		return code
	}
	select {
	case err := <-s.cluster.Failed():
		fmt.Fprintln(os.Stderr, "clustertest:", err)
		code = max(code, 1)
	default:
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "clustertest: stopping the control plane:", err)
		code = max(code, 1)
	}
	return code
}

// Cluster is the control plane, started if need be. With "go test -short" the test is skipped.
func (s *Shared) Cluster(t testing.TB) *cluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane: not with -short")
	}
	s.once.Do(s.start)
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

func (s *Shared) start() {
	ctx := context.Background() // no single test's: the cluster outlives it
	if s.cluster, s.err = cluster.Start(ctx, s.options); s.err != nil {
		return
	}
	for _, step := range s.steps {
		if s.err = step(s.cluster, ctx); s.err != nil {
			return
		}
	}
}

// Namespace makes a namespace with a name of its own, waits for its default service account, which pods need,
// and deletes it when the test ends, without waiting.
func Namespace(t testing.TB, c *cluster.Cluster) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now.
		err := client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", ns.Name, err)
		}
	})
	Eventually(t, 60*time.Second, func() error {
		_, err := client.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return ns.Name
}

// Eventually polls until check returns nil, and fails the test with its last error when that takes longer than the timeout.
func Eventually(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still not so after %s: %v", timeout, err)
		}
	}
}
