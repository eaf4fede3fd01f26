package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/e2e/child"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/ports"
)

// installRights makes the controller's ServiceAccount and gives it what
// manifests/rbac says, no more.
func (w *World) installRights(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	namespace.Name = systemNamespace
	if err := w.create(ctx, namespace); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = systemNamespace, "pushback"
	if err := w.create(ctx, account); err != nil {
		return err
	}
	for _, file := range []string{"role.yaml", "tenant.yaml", "leader-election.yaml", "bindings.yaml"} {
		if err := w.applyFile(ctx, filepath.Join(w.Root, "manifests", "rbac", file)); err != nil {
			return err
		}
	}
	return nil
}

// AddTenant makes a namespace with the ServiceAccount pushback-apply, which
// GitSyncs apply with there.
func (w *World) AddTenant(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{}
	namespace.Name = name
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = name, "pushback-apply"
	binding := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pushback-tenant"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: name, Name: account.Name}},
	}
	binding.Namespace, binding.Name = name, "pushback-tenant"
	for _, object := range []client.Object{namespace, account, binding} {
		if err := w.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) create(ctx context.Context, object client.Object) error {
	err := w.Client.Create(ctx, object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

func (w *World) applyFile(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := newObject()
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := w.create(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// ControllerStart bounds how long a controller may take to be ready.
const ControllerStart = 60 * time.Second

// StartController runs a controller process with the rights of its
// ServiceAccount, and waits until it is ready.
func (w *World) StartController(ctx context.Context, name string, flags ...string) error {
	config, err := w.Cluster.ServiceAccountConfig(ctx, systemNamespace, "pushback")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(w.Dir, name+".kubeconfig")
	if err := cluster.WriteKubeconfig(config, kubeconfig); err != nil {
		return err
	}
	health, err := ports.Take()
	if err != nil {
		return err
	}
	w.leases = append(w.leases, health)
	address := health.Address()
	args := append([]string{
		"--kubeconfig=" + kubeconfig, "--health-addr=" + address, "--metrics-addr=0",
		"--prometheus-address=" + w.PromURL, "--default-service-account=pushback-apply",
		"--allow-file-urls", "--leader-elect", "--leader-election-namespace=" + systemNamespace,
	}, flags...)
	process, err := child.Start(child.Spec{
		Path: w.binaries.controller, Args: args, Env: os.Environ(), Log: w.ControllerLog(name),
	})
	if err != nil {
		return err
	}
	w.controllers[name] = process
	return w.awaitReady(ctx, name, "http://"+address+"/readyz", process)
}

func (w *World) awaitReady(ctx context.Context, name, url string, process *child.Process) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, ControllerStart, true, func(ctx context.Context) (bool, error) {
		select {
		case <-process.Done():
			return false, fmt.Errorf("controller %s ended with code %d: see %s", name, process.Exit().Code, w.ControllerLog(name))
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil // not listening yet
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for controller %s: %w", name, err)
	}
	return nil
}

// ControllerLog is the path of a controller's log.
func (w *World) ControllerLog(name string) string { return filepath.Join(w.Dir, name+".log") }

// KillController ends a controller without warning, as kill -9 does.
func (w *World) KillController(name string) error {
	process, ok := w.controllers[name]
	if !ok {
		return fmt.Errorf("no controller %s", name)
	}
	delete(w.controllers, name)
	if err := process.Kill(); err != nil {
		return err
	}
	<-process.Done()
	return nil
}

// StopController asks a controller to end.
func (w *World) StopController(name string) error {
	process, ok := w.controllers[name]
	if !ok {
		return nil
	}
	delete(w.controllers, name)
	return process.Stop(30 * time.Second)
}
