package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rights are the controller's namespace and ServiceAccount and what manifests/rbac
// gives it, no more.
func (w *World) rights() ([]client.Object, error) {
	namespace := &corev1.Namespace{}
	namespace.Name = systemNamespace
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = systemNamespace, accountName
	objects := []client.Object{namespace, account}
	for _, file := range []string{"role.yaml", "tenant.yaml", "leader-election.yaml", "bindings.yaml"} {
		some, err := readObjects(filepath.Join(w.Root, "manifests", "rbac", file))
		if err != nil {
			return nil, err
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

// tenant is a namespace with the ServiceAccount pushback-apply, which GitSyncs
// apply with there.
func tenant(name string) []client.Object {
	namespace := &corev1.Namespace{}
	namespace.Name = name
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = name, "pushback-apply"
	binding := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pushback-tenant"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: name, Name: account.Name}},
	}
	binding.Namespace, binding.Name = name, "pushback-tenant"
	return []client.Object{namespace, account, binding}
}

// installRights makes the rights.
func (w *World) installRights(ctx context.Context) error {
	objects, err := w.rights()
	if err != nil {
		return err
	}
	return w.createAll(ctx, objects)
}

// AddTenant makes a namespace that GitSyncs can apply in.
func (w *World) AddTenant(ctx context.Context, name string) error {
	return w.createAll(ctx, tenant(name))
}

func (w *World) createAll(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		if err := w.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func readObjects(path string) ([]client.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var objects []client.Object
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := newObject()
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
