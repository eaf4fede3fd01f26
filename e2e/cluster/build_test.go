package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const hello = "package main\n\nfunc main() { println(\"hello\") }\n"

// tinyModule is a module with one command that builds in no time.
func tinyModule(t *testing.T) (b builder, progress *bytes.Buffer) {
	t.Helper()
	progress = &bytes.Buffer{}
	b = builder{source: t.TempDir(), target: filepath.Join(t.TempDir(), "bin"), progress: progress}
	write(t, filepath.Join(b.source, "go.mod"), "module example.com/tiny\n\ngo 1.26\n")
	write(t, filepath.Join(b.source, "go.sum"), "")
	write(t, filepath.Join(b.source, "tiny", "main.go"), hello)
	return b, progress
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustBuild(t *testing.T, b builder) os.FileInfo {
	t.Helper()
	if err := b.build(t.Context(), []string{"tiny"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(b.target, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestBuildOnlyWhatChanged(t *testing.T) {
	b, progress := tinyModule(t)
	first := mustBuild(t, b)
	if !strings.Contains(progress.String(), "built tiny (1 of 1)") {
		t.Errorf("progress = %q", progress)
	}
	progress.Reset()
	if again := mustBuild(t, b); !os.SameFile(first, again) || progress.Len() > 0 {
		t.Errorf("built again although nothing changed: %q", progress)
	}
	for name, change := range map[string]func(){
		"a source":   func() { write(t, filepath.Join(b.source, "tiny", "main.go"), hello+"// changed\n") },
		"go.mod":     func() { write(t, filepath.Join(b.source, "go.mod"), "module example.com/tiny\n\ngo 1.25\n") },
		"the binary": func() { _ = os.Remove(filepath.Join(b.target, "tiny")) },
	} {
		mustBuild(t, b)
		change()
		progress.Reset() // not the file's identity: a new file may get the inode of a removed one
		if mustBuild(t, b); !strings.Contains(progress.String(), "built tiny (1 of 1)") {
			t.Errorf("not built again after a change of %s: %q", name, progress)
		}
	}
	out, err := exec.Command(filepath.Join(b.target, "tiny")).CombinedOutput()
	if err != nil || string(out) != "hello\n" {
		t.Errorf("the binary says %q, %v", out, err)
	}
}

func TestTwoBuildsWaitForEachOther(t *testing.T) {
	b, _ := tinyModule(t)
	var group sync.WaitGroup
	outputs := make([]bytes.Buffer, 3)
	for i := range outputs {
		group.Go(func() {
			mine := b
			mine.progress = &outputs[i]
			if err := mine.build(t.Context(), []string{"tiny"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	built := 0
	for i := range outputs {
		built += strings.Count(outputs[i].String(), "built tiny")
	}
	if built != 1 {
		t.Errorf("built %d times, want once", built)
	}
}

func TestLockGivesUpWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, &bytes.Buffer{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestFailedBuildSaysWhyAndLeavesNothing(t *testing.T) {
	b, _ := tinyModule(t)
	write(t, filepath.Join(b.source, "tiny", "main.go"), "package main\n\nfunc main() { undefinedThing() }\n")
	err := b.build(t.Context(), []string{"tiny"})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("err = %v, want the compiler's complaint", err)
	}
	if _, err := os.Stat(filepath.Join(b.target, "tiny")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of the binary: %v", err)
	}
	write(t, filepath.Join(b.source, "tiny", "main.go"), hello)
	mustBuild(t, b)
}

func TestGivenAssets(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "etcd"), "")
	write(t, filepath.Join(dir, "kubectl"), "")
	found, err := givenAssets(dir)
	if err != nil || len(found) != 1 || found["etcd"] != filepath.Join(dir, "etcd") {
		t.Errorf("found %v, %v; want only etcd", found, err)
	}
	if found, err := givenAssets(""); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v without a folder", found, err)
	}
	if _, err := givenAssets(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that isn't there is no error")
	}
}

func TestVersionIsThatOfTheModule(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "e2e", "controlplane", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "k8s.io/kubernetes " + version + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("controlplane/go.mod does not require %s", strings.TrimSpace(want))
	}
}

func TestHTTPRouteCRDIsThatOfTheModule(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(httpRouteCRD, want) {
		t.Error("e2e/cluster/crds is not what the module in go.mod ships: copy the file again")
	}
}

func TestReportCountsPackagesAndKeepsComplaints(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out, "tiny (1 of 1)", 3)
	for _, part := range []string{"internal/a\nexample.com/", "tiny\n# example.com/tiny\n", "./main.go:3:15: undefined: x\ngo: downloading example.com/m v1.0.0\n"} {
		if _, err := r.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	r.finished()
	if want := "# example.com/tiny\n./main.go:3:15: undefined: x"; r.complaints() != want {
		t.Errorf("complaints = %q, want %q", r.complaints(), want)
	}
	if !strings.Contains(out.String(), "2 packages compiled") {
		t.Errorf("progress = %q", out.String())
	}
}
