package controller

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/gatewayapi"
)

var shared = clustertest.New(cluster.Options{AuditWrites: true}, (*cluster.Cluster).InstallGatewayAPI, clustertest.CRDs("manifests/crd"))

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // what goes wrong is in conditions, which the tests read
	os.Exit(shared.Run(m))
}

// lab is a namespace with a repository beside it, and the two controllers.
type lab struct {
	*testing.T
	cluster   *cluster.Cluster
	client    client.Client
	namespace string
	bare      string
	work      string
	options   Options
	stop      func()
}

const patience = 30 * time.Second

func newLab(t *testing.T) *lab {
	t.Helper()
	c := shared.Cluster(t)
	l := &lab{T: t, cluster: c, namespace: clustertest.Namespace(t, c), bare: t.TempDir() + "/repo.git", work: t.TempDir()}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	var err error
	if l.client, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	l.git("", "init", "--bare", "-q", "-b", "main", l.bare)
	l.git("", "clone", "-q", l.bare, l.work)
	l.git(l.work, "checkout", "-q", "-B", "main")
	l.options = Options{AllowFileURLs: true, ClusterName: "east", Concurrent: 4, RouterFor: func(tr *v1alpha1.RolloutTrafficRouting) (routers.Router, error) {
		if settings, err := routers.GatewayAPI(tr); err != nil || settings == nil {
			return nil, err
		}
		return gatewayapi.New(nil, nil), nil
	}}
	return l
}

// start runs the controllers until the test ends or stop is called.
func (l *lab) start() {
	l.Helper()
	mgr, err := ctrl.NewManager(l.cluster.RESTConfig(), ctrl.Options{
		Scheme: l.client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{l.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		l.Fatal(err)
	}
	if err := SetupWithManager(mgr, l.options); err != nil {
		l.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	l.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			l.Error(err)
		}
	}
	l.Cleanup(func() { l.stop() })
}

func (l *lab) git(dir string, args ...string) string {
	l.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Dev", "GIT_AUTHOR_EMAIL=dev@example.com", "GIT_COMMITTER_NAME=Dev", "GIT_COMMITTER_EMAIL=dev@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files (empty text deletes), pushes them and returns the commit.
func (l *lab) commit(message string, files map[string]string) string {
	l.Helper()
	l.pull()
	for name, text := range files {
		file := filepath.Join(l.work, name)
		if text == "" {
			if err := os.Remove(file); err != nil {
				l.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			l.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			l.Fatal(err)
		}
	}
	l.git(l.work, "add", "-A")
	l.git(l.work, "commit", "-q", "--allow-empty", "-m", message)
	for {
		push := exec.Command("git", "push", "-q", "origin", "main")
		push.Dir = l.work
		out, err := push.CombinedOutput()
		if err == nil {
			return l.git(l.work, "rev-parse", "HEAD")
		}
		if !strings.Contains(string(out), "fetch first") && !strings.Contains(string(out), "lock") {
			l.Fatalf("git push: %v\n%s", err, out)
		}
		l.pull() // a revert was pushed meanwhile
	}
}

func (l *lab) pull() {
	l.Helper()
	if l.git(l.bare, "branch", "--list", "main") != "" {
		l.git(l.work, "pull", "-q", "--rebase", "origin", "main")
	}
}

// file is a file at the head of the branch.
func (l *lab) file(name string) string {
	l.Helper()
	cmd := exec.Command("git", "show", "main:"+name)
	cmd.Dir = l.bare
	out, err := cmd.Output()
	if err != nil {
		l.Fatalf("git show %s: %v", name, err)
	}
	return string(out)
}

func (l *lab) commits() int {
	l.Helper()
	return len(strings.Split(l.git(l.bare, "log", "--format=%H", "main"), "\n"))
}

// sync creates a GitSync of the repository, changed by edits.
func (l *lab) sync(name string, edits ...func(*v1alpha1.GitSync)) *v1alpha1.GitSync {
	l.Helper()
	sync := &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec:       v1alpha1.GitSyncSpec{Interval: metav1.Duration{Duration: time.Second}, URL: "file://" + l.bare, Prune: true},
	}
	for _, edit := range edits {
		edit(sync)
	}
	if err := l.client.Create(l.Context(), sync); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = l.client.Delete(context.Background(), sync) })
	return sync
}

// wait waits until check is empty, and fails with what it says last.
func (l *lab) wait(check func() string) {
	l.Helper()
	deadline := time.Now().Add(patience)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			l.Fatal(complaint)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (l *lab) ready(name string) *metav1.Condition {
	l.Helper()
	sync := &v1alpha1.GitSync{}
	if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, sync); err != nil {
		l.Fatal(err)
	}
	return apimeta.FindStatusCondition(sync.Status.Conditions, meta.ReadyCondition)
}

// waitReady waits for a reason and a part of the message.
func (l *lab) waitReady(name, reason, message string) {
	l.Helper()
	l.wait(func() string {
		ready := l.ready(name)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, message) {
			return fmt.Sprintf("GitSync %s: want Ready with %s and %q, got %+v", name, reason, message, ready)
		}
		return ""
	})
}

func (l *lab) waitApplied(name, commit string) {
	l.Helper()
	l.waitReady(name, meta.ReconciliationSucceededReason, "main@sha1:"+commit)
}

func (l *lab) object(apiVersion, kind, name string) *unstructured.Unstructured {
	l.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, u)
	if client.IgnoreNotFound(err) != nil {
		l.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return u
}

// writes lists the writes to the namespace so far.
func (l *lab) writes() []string {
	l.Helper()
	all, err := l.cluster.Writes()
	if err != nil {
		l.Fatal(err)
	}
	var out []string
	for _, w := range all {
		if w.Namespace == l.namespace && !w.DryRun() {
			out = append(out, fmt.Sprintf("%s %s/%s/%s", w.Verb, w.Resource, w.Name, w.Subresource))
		}
	}
	return out
}

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  value: %q\n", name, value)
}

// rollout is a Rollout's document with comments and odd quoting that must survive.
func rollout(name, image string) string {
	return fmt.Sprintf(`# the %[1]s service
apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata:
  name: %[1]s
spec:
  replicas: 1   # small
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      containers:
      - name: app
        image: '%[2]s' # bumped by hand
  strategy:
    canary:
      steps:
      - setWeight: 20
`, name, image)
}
