package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/e2e/node"
	"github.com/pushback-dev/pushback/e2e/world"
)

// The walk-through checks itself: what doesn't happen is an error.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("the demo needs the control plane")
	}
	s, err := parse([]string{"--keep", "--dir", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s.kept = func(instructions string) {
		defer interrupt()
		follow(t, instructions)
	}
	if err := perform(ctx, s); err != nil {
		t.Fatal(err)
	}
}

// follow does what the instructions of --keep say: a good version, then a bad
// one, and looks until the bad one is reverted.
func follow(t *testing.T, instructions string) {
	t.Helper()
	script := "set -e\n"
	for _, line := range strings.Split(instructions, "\n") {
		line = strings.TrimSpace(line)
		for _, command := range []string{"export ", "curl ", "cd ", "sed ", "git "} {
			if strings.HasPrefix(line, command) {
				script += line + "\n"
			}
		}
	}
	script += `until git pull -q && git log -1 --format=%s | grep -q 'Revert "Release shop v5"'; do sleep 0.2; done` + "\n"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the instructions can't be followed: %v\n%s\n%s", err, script, out)
	}
}

func TestDemoOnACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the demo needs the control plane")
	}
	u := startUsersCluster(t)
	args := []string{"--cluster", "--image", usersImage + ":v9", "--dir", t.TempDir()}
	refusals := map[string]client.Object{
		"a namespace of the name": &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		"an installed Pushback":   &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pushback-controller"}},
	}
	for name, object := range refusals {
		t.Run("is refused over "+name, func(t *testing.T) {
			u.create(t, object)
			before := len(u.demosWrites(t))
			if err := run(t.Context(), args); !errors.Is(err, world.ErrNotOurs) {
				t.Errorf("the demo ended with %v, want %v", err, world.ErrNotOurs)
			}
			if writes := u.demosWrites(t)[before:]; len(writes) > 0 {
				t.Errorf("the refused demo wrote: %+v", writes)
			}
			u.remove(t, object)
		})
	}
	t.Run("leaves the cluster as it was", func(t *testing.T) {
		// What an earlier demo left is deleted, what was there before stays.
		u.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{world.DemoLabel: "true"}}})
		u.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "left"}})
		if err := u.cluster.InstallGatewayAPI(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := u.objects(t)
		first := len(u.demosWrites(t))
		if err := run(t.Context(), args); err != nil {
			t.Fatal(err)
		}
		after := u.objects(t)
		before = slices.DeleteFunc(before, func(s string) bool { return s == "Namespace/"+namespace })
		if !slices.Equal(before, after) {
			t.Errorf("before the demo there was\n%s\nand after it\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
		writes := u.demosWrites(t)[first:]
		if !slices.ContainsFunc(writes, func(w cluster.Write) bool { return w.Verb == "create" && w.Name == namespace }) {
			t.Errorf("the audit does not show that the demo made its namespace: %d writes", len(writes))
		}
		for _, w := range writes {
			if !expected(w) {
				t.Errorf("the demo wrote beside its own objects: %+v", w)
			}
		}
	})
}

// expected says whether the demo's user has said that it writes this.
func expected(w cluster.Write) bool {
	switch w.Resource {
	case "namespaces":
		return w.Name == namespace || w.Name == "pushback-system"
	case "customresourcedefinitions":
		return strings.HasSuffix(w.Name, ".pushback.dev")
	case "clusterroles", "clusterrolebindings":
		return w.Name == "pushback-controller" || w.Name == "pushback-tenant"
	default:
		return w.Namespace == namespace || w.Namespace == "pushback-system"
	}
}

// usersImage is what the user's node knows the project's image as.
const usersImage = "registry.example/mirror/pushback"

// usersCluster stands for a cluster that the demo knows by its kubeconfig only.
type usersCluster struct {
	cluster *cluster.Cluster
	client  client.Client
}

// startUsersCluster runs a cluster with a node until the test ends, and points KUBECONFIG at it.
func startUsersCluster(t *testing.T) *usersCluster {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(t.Context(), cluster.Options{AuditWrites: true, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	account := c.RESTConfig()
	account.UserAgent = "users-node"
	n, err := node.New(node.Options{
		Config: account, Images: map[string]node.Image{usersImage: {Path: filepath.Join(root, "bin", "pushback")}},
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
			t.Error(err)
		}
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	own := c.RESTConfig()
	own.UserAgent = "the-test"
	made, err := client.New(own, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &usersCluster{cluster: c, client: made}
}

func (u *usersCluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := u.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (u *usersCluster) remove(t *testing.T, object client.Object) {
	t.Helper()
	clustertest.Eventually(t, 60*time.Second, func() error {
		if err := u.client.Delete(t.Context(), object); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		return errors.New("it is still there")
	})
}

// objects lists what a demo could leave.
func (u *usersCluster) objects(t *testing.T) []string {
	t.Helper()
	var all []string
	for kind, list := range map[string]client.ObjectList{
		"Namespace": &corev1.NamespaceList{}, "ClusterRole": &rbacv1.ClusterRoleList{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBindingList{}, "CRD": &apiextensionsv1.CustomResourceDefinitionList{},
	} {
		if err := u.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			all = append(all, kind+"/"+item.(client.Object).GetName())
		}
	}
	slices.Sort(all)
	return all
}

// demosWrites are the administrator's writes that are not the node's nor the test's.
func (u *usersCluster) demosWrites(t *testing.T) []cluster.Write {
	t.Helper()
	all, err := u.cluster.Writes()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(w cluster.Write) bool {
		return w.User != "admin" || w.Agent == "users-node" || w.Agent == "the-test" || strings.HasPrefix(w.Agent, "kube-controller-manager")
	})
}

func TestClusterFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		kubeconfig string
		args       []string
		want       error  // nil for any
		names      string // what the error must name
	}{
		"no KUBECONFIG":       {"", []string{"--cluster"}, errNoKubeconfig, "KUBECONFIG"},
		"no file":             {filepath.Join(t.TempDir(), "none"), []string{"--cluster"}, nil, "no current context"},
		"no current context":  {empty, []string{"--cluster"}, nil, empty},
		"an image of no use":  {"", []string{"--image", "a/b:c"}, nil, "--cluster"},
		"an image of no form": {"", []string{"--cluster", "--image", "a: b"}, nil, "--image"},
		"an argument":         {"", []string{"cluster"}, nil, "cluster"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.kubeconfig)
			_, err := parse(c.args)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("error %v, want %v, naming %q", err, c.want, c.names)
			}
		})
	}
}
