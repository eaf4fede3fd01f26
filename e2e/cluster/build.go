package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Assets are the paths of the control plane's binaries.
type Assets struct {
	Etcd              string
	APIServer         string
	ControllerManager string
}

// AssetsVariable names the environment variable that envtest's users know: a folder with binaries that are
// used as they are. What that folder lacks (envtest's has no controller manager) is built.
const AssetsVariable = "KUBEBUILDER_ASSETS"

// version is what the servers say of themselves. It must be that of k8s.io/kubernetes in controlplane/go.mod:
// without a version that can be parsed, kubectl refuses to talk to the server.
const version = "v1.37.2"

const modulePath = "github.com/pushback-dev/pushback"

// binaries are the commands of the controlplane module, in the order in which they are built.
var binaries = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// ErrNoCheckout says that the working directory is not inside a checkout of this project.
var ErrNoCheckout = errors.New("no go.mod of " + modulePath + " in the working directory or above")

// Build returns the control plane's binaries and builds those that are missing or out of date into bin/k8s of
// the checkout that the working directory is in. A cold build takes minutes and says on progress how far
// it is; when nothing changed nothing runs, not even the linker. Two builds at a time wait for each other.
func Build(ctx context.Context, progress io.Writer) (Assets, error) {
	given, err := givenAssets(os.Getenv(AssetsVariable))
	if err != nil {
		return Assets{}, err
	}
	paths := map[string]string{}
	var missing []string
	for _, name := range binaries {
		if paths[name] = given[name]; paths[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		root, err := Root()
		if err != nil {
			return Assets{}, err
		}
		b := builder{source: filepath.Join(root, "e2e", "controlplane"), target: filepath.Join(root, "bin", "k8s"), progress: progress}
		if err := b.build(ctx, missing); err != nil {
			return Assets{}, err
		}
		for _, name := range missing {
			paths[name] = filepath.Join(b.target, name)
		}
	}
	return Assets{Etcd: paths["etcd"], APIServer: paths["kube-apiserver"], ControllerManager: paths["kube-controller-manager"]}, nil
}

// givenAssets finds what the folder holds; no folder holds nothing.
func givenAssets(dir string) (map[string]string, error) {
	found := map[string]string{}
	if dir == "" {
		return found, nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s=%s is not a folder: unset it to have the control plane built, or point it at envtest's binaries", AssetsVariable, dir)
	}
	for _, name := range binaries {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			found[name] = path
		}
	}
	return found, nil
}

// Root finds the checkout that the working directory is in. Errors: ErrNoCheckout.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("%w (%s): run it from the checkout", ErrNoCheckout, start)
		}
	}
}

// builder builds commands of one module into one folder.
type builder struct {
	source, target string
	progress       io.Writer
}

func (b builder) build(ctx context.Context, names []string) error {
	if err := os.MkdirAll(b.target, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", b.target, err)
	}
	unlock, err := lock(ctx, filepath.Join(b.target, ".lock"), b.progress)
	if err != nil {
		return err
	}
	defer unlock()
	toolchain, err := b.toolchain(ctx)
	if err != nil {
		return err
	}
	for i, name := range names {
		want, err := stamp(b.source, name, toolchain)
		if err != nil {
			return err
		}
		if b.fresh(name, want) {
			continue
		}
		step := fmt.Sprintf("%s (%d of %d)", name, i+1, len(names))
		if err := b.compile(ctx, name, step); err != nil {
			return err
		}
		if err := os.WriteFile(b.stampFile(name), []byte(want), 0o644); err != nil {
			return fmt.Errorf("writing the stamp of %s: %w", name, err)
		}
	}
	return nil
}

func (b builder) stampFile(name string) string { return filepath.Join(b.target, "."+name+".stamp") }

func (b builder) fresh(name, want string) bool {
	got, err := os.ReadFile(b.stampFile(name))
	if err != nil || string(got) != want {
		return false
	}
	info, err := os.Stat(filepath.Join(b.target, name))
	return err == nil && info.Mode().IsRegular()
}

// toolchain says with what the module would be built, for the stamp.
func (b builder) toolchain(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT")
	cmd.Dir, cmd.Env = b.source, buildEnv()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking go for its version in %s: %w", b.source, err)
	}
	return string(out), nil
}

func buildEnv() []string {
	// The user's flags and workspace are for their own code: with them the result would not be what the stamp says.
	return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
}

// buildFlags make the result depend on nothing but the sources: not on where the checkout is, nor on its commit.
var buildFlags = []string{"-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=" + version}

func (b builder) compile(ctx context.Context, name, step string) error {
	report := newReport(b.progress, step, b.packages(ctx, name))
	defer report.stop()
	partial := filepath.Join(b.target, "."+name+".partial")
	defer os.Remove(partial)
	args := append([]string{"build", "-v", "-o", partial}, buildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+name)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.source, buildEnv(), report, report
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("building %s: %w", name, context.Cause(ctx))
		}
		return fmt.Errorf("building %s: %w\n%s", name, err, report.complaints())
	}
	if err := os.Rename(partial, filepath.Join(b.target, name)); err != nil {
		return fmt.Errorf("installing %s: %w", name, err)
	}
	report.finished()
	return nil
}

// packages is how many packages the command is made of, the upper bound of what is compiled; 0 if unknown.
func (b builder) packages(ctx context.Context, name string) int {
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-deps", "./"+name)
	cmd.Dir, cmd.Env = b.source, buildEnv()
	out, err := cmd.Output()
	if err != nil {
		return 0 // go build says what is wrong, and better
	}
	return strings.Count(string(out), "\n")
}
