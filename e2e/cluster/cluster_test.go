package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestServerVersionCanBeParsed(t *testing.T) {
	c := shared.Cluster(t)
	v, err := clientOf(t, c.RESTConfig()).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if v.GitVersion != "v1.37.2" || v.Major != "1" || v.Minor != "37" {
		t.Errorf("version = %s (%s.%s), want v1.37.2", v.GitVersion, v.Major, v.Minor)
	}
}

func TestKubeconfig(t *testing.T) {
	c := shared.Cluster(t)
	path := filepath.Join(t.TempDir(), "folder", "kubeconfig")
	if err := c.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig holds a token and its mode is %v (%v), want 0600", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, config).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("listing secrets as the administrator: %v", err)
	}
}

func TestServiceAccountHasItsRightsOnly(t *testing.T) {
	c := shared.Cluster(t)
	ns := clustertest.Namespace(t, c)
	admin := clientOf(t, c.RESTConfig())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: ns}}}
	if _, err := admin.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := c.ServiceAccountConfig(t.Context(), ns, "default")
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, config)
	clustertest.Eventually(t, 30*time.Second, func() error { // until the authorizer has seen the binding
		_, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		return err
	})
	if _, err := client.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets: %v, want forbidden", err)
	}
	if _, err := c.ServiceAccountConfig(t.Context(), ns, "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("token of a missing service account: %v, want not found", err)
	}
}

func TestHTTPRouteIsServed(t *testing.T) {
	c := shared.Cluster(t)
	ns := clustertest.Namespace(t, c)
	client := clientOf(t, c.RESTConfig()).Discovery().RESTClient()
	route := fmt.Sprintf(`{"apiVersion":%q,"kind":"HTTPRoute","metadata":{"name":"shop"},"spec":{"rules":[{"backendRefs":[{"name":"shop","port":80}]}]}}`, gatewayv1.GroupVersion)
	path := fmt.Sprintf("/apis/%s/namespaces/%s/httproutes", gatewayv1.GroupVersion, ns)
	if err := client.Post().AbsPath(path).Body([]byte(route)).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := c.InstallCRDs(t.Context(), t.TempDir()); !errors.Is(err, cluster.ErrNoCRDs) {
		t.Errorf("installing from an empty folder: %v, want %v", err, cluster.ErrNoCRDs)
	}
}

// TestControllersWork: a namespace with an object in it goes away, which takes the namespace controller; an owned
// object follows its owner, which takes the garbage collector.
func TestControllersWork(t *testing.T) {
	c := shared.Cluster(t)
	ns := clustertest.Namespace(t, c)
	maps := clientOf(t, c.RESTConfig()).CoreV1().ConfigMaps(ns)
	owner, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}
	if _, err := maps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 60*time.Second, func() error { return gone(maps.Get(t.Context(), "owned", metav1.GetOptions{})) })

	namespaces := clientOf(t, c.RESTConfig()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, 60*time.Second, func() error { return gone(namespaces.Get(t.Context(), ns, metav1.GetOptions{})) })
}

func gone(_ any, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("it is still there (%v)", err)
}

func TestClusterRolesAreAggregated(t *testing.T) {
	c := shared.Cluster(t)
	clustertest.Eventually(t, 60*time.Second, func() error {
		role, err := clientOf(t, c.RESTConfig()).RbacV1().ClusterRoles().Get(t.Context(), "edit", metav1.GetOptions{})
		if err == nil && len(role.Rules) == 0 {
			err = errors.New("the role edit has no rules")
		}
		return err
	})
}

func TestWritesAreRecorded(t *testing.T) {
	c := shared.Cluster(t)
	ns := clustertest.Namespace(t, c)
	config := c.RESTConfig()
	config.UserAgent = "audit-test"
	maps := clientOf(t, config).CoreV1().ConfigMaps(ns)
	o, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Update(t.Context(), o, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	writes, err := c.Writes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range writes {
		if w.Agent == "audit-test" {
			got = append(got, fmt.Sprint(w.User, w.Verb, w.Resource, w.Namespace == ns, w.Name, w.Code, w.DryRun()))
		}
	}
	want := []string{fmt.Sprint("admin", "create", "configmaps", true, "a", 201, false), fmt.Sprint("admin", "update", "configmaps", true, "a", 200, true)}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("writes = %v, want %v", got, want)
	}
}

func TestServerThatDoesNotStartIsNamedWithItsLog(t *testing.T) {
	shared.Cluster(t) // so that the binaries are there
	assets, err := cluster.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	_, err = cluster.Start(t.Context(), cluster.Options{Assets: assets, APIServerArgs: []string{"--no-such-flag"}})
	var failed *cluster.ServerError
	if !errors.As(err, &failed) || failed.Server != "kube-apiserver" || failed.Tail == "" {
		t.Errorf("err = %v, want a ServerError of kube-apiserver with its log", err)
	}
	if took := time.Since(started); took > cluster.StartTimeout/2 {
		t.Errorf("it took %s to see that the server had ended", took)
	}
}

func TestFolderIsOfOneClusterAtATime(t *testing.T) {
	shared.Cluster(t)
	assets, err := cluster.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	first, err := cluster.Start(t.Context(), cluster.Options{Assets: assets, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Start(t.Context(), cluster.Options{Assets: assets, Dir: dir}); !errors.Is(err, cluster.ErrInUse) {
		t.Errorf("err = %v, want %v", err, cluster.ErrInUse)
	}
	if _, err := clientOf(t, first.RESTConfig()).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the cluster that ran was harmed: %v", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(first.LogDir(), "kube-apiserver.log")); err != nil {
		t.Errorf("the logs of a folder that was given are gone: %v", err)
	}
}

func TestStartStopsWithItsContext(t *testing.T) {
	shared.Cluster(t)
	assets, err := cluster.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := cluster.Start(ctx, cluster.Options{Assets: assets, Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data was left behind: %v", err)
	}
}
