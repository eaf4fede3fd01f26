package world

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pushback-dev/pushback/e2e/child"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/ports"
)

// ControllerStart bounds how long a controller may take to be ready.
const ControllerStart = 60 * time.Second

// StartController runs a controller process with the rights of its
// ServiceAccount, and waits until it is ready.
func (w *World) StartController(ctx context.Context, name string, flags ...string) error {
	config, err := cluster.ServiceAccountConfig(ctx, w.REST, systemNamespace, accountName)
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
	if w.existing != nil {
		args = append(args, "--leader-elect=false") // it is the only one, and a Lease would be one more thing to leave
	}
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

// ControllerPid is the process id of a controller that runs; 0 when it doesn't.
func (w *World) ControllerPid(name string) int {
	if process := w.controllers[name]; process != nil {
		return process.Pid()
	}
	return 0
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
