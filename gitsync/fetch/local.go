package fetch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// startLocal runs the service of a repository on this machine's disk. It needs a
// git binary, which the image does not have: file is for tests and the demo.
func (w *wire) startLocal(ctx context.Context, service string) (*pipe, error) {
	binary, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("a file URL needs a git binary on the PATH: %w", err)
	}
	command := exec.CommandContext(ctx, binary, strings.TrimPrefix(service, "git-"), w.endpoint.Path)
	command.Env = withoutGit(os.Environ())
	errors := &tail{}
	command.Stderr = errors
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	var once sync.Once
	wait := func() { once.Do(func() { _ = command.Wait() }) }
	stop := func() {
		_ = in.Close()
		_ = command.Process.Kill()
		wait()
	}
	return &pipe{in: in, out: &capped{from: out, left: w.maxResponse}, errors: errors, wait: wait, stop: stop}, nil
}

// withoutGit drops variables such as GIT_DIR, which would point git elsewhere.
func withoutGit(env []string) []string {
	var kept []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, "GIT_") {
			kept = append(kept, pair)
		}
	}
	return kept
}
