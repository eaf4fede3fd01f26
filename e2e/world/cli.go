package world

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// CLI runs bin/pushback against the cluster as its administrator. It returns
// both outputs together and the exit code; err is for a program that could not
// be run at all.
func (w *World) CLI(ctx context.Context, args ...string) (output string, code int, err error) {
	kubeconfig := filepath.Join(w.Dir, "kubeconfig")
	if err := w.Cluster.WriteKubeconfig(kubeconfig); err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, w.binaries.cli, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.String(), exit.ExitCode(), nil
	}
	return out.String(), 0, err
}
