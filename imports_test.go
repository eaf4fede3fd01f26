package pushback_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pushback-dev/pushback"

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	found := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")] = p
	}
}

// pure packages decide or judge: what they import may not do I/O.
var pure = []string{
	"api/v1alpha1", "templatehash", "validation", "routers", "analysis", "reconciler/plan", "reconciler/plan/plansim", "reconciler/experiment/plan",
	"gitsync", "gitsync/translate", "gitsync/revert", "gitsync/revert/yamledit", "revertspec",
	"forecast", "lint", "lab/exact", "lab/proxy/table", "lab/proxy/httproute",
}

// forbidden to a pure package, directly.
var forbidden = []string{
	"net", "net/http", "os", "os/exec", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand",
	"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/go-logr/logr", "github.com/go-git/go-git",
}

func TestPurePackagesDoNoIO(t *testing.T) {
	all := packages(t)
	for _, name := range pure {
		p, ok := all[name]
		if !ok {
			t.Errorf("package %s is marked PURE and doesn't exist", name)
			continue
		}
		for _, imported := range p.Imports {
			for _, bad := range forbidden {
				if imported == bad || (strings.Contains(bad, ".") && strings.HasPrefix(imported, bad+"/")) {
					t.Errorf("%s is PURE and imports %s", name, imported)
				}
			}
			local, ours := strings.CutPrefix(imported, module+"/")
			if ours && !slices.Contains(pure, local) {
				t.Errorf("%s is PURE and imports %s, which is not", name, local)
			}
		}
	}
}

// clocks are calls that a pure package takes as arguments instead.
var clocks = []string{"time.Now(", "time.Since(", "time.Until(", "time.Sleep(", "time.After(", "metav1.Now(", "rand."}

func TestPurePackagesReadNoClock(t *testing.T) {
	all := packages(t)
	for _, name := range pure {
		p := all[name]
		for _, file := range p.GoFiles {
			src := readFile(t, filepath.Join(p.Dir, file))
			for number, line := range strings.Split(src, "\n") {
				code, _, _ := strings.Cut(line, "//")
				for _, call := range clocks {
					if strings.Contains(code, call) {
						t.Errorf("%s/%s:%d reads a clock or a random source: %s", name, file, number+1, strings.TrimSpace(line))
					}
				}
			}
		}
	}
}

// borders: the first may not import the second, nor anything below it.
func TestImportDirections(t *testing.T) {
	borders := []struct{ from, to, why string }{
		{"api", "", "it holds serialised types and nothing else"},
		{"reconciler", "gitsync", "the Rollout's controller knows Git by the source annotation and the Revert object only"},
		{"gitsync", "reconciler", "gitsync hands over by the API server"},
		{"reconciler", "routers/gatewayapi", "only cmd/controller names concrete routers"},
		{"reconciler", "analysis/cloudwatch", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/datadog", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/graphite", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/influxdb", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/job", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/kayenta", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/newrelic", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/prometheus", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/skywalking", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/wavefront", "only cmd/controller names concrete providers"},
		{"reconciler", "analysis/web", "only cmd/controller names concrete providers"},
		{"gitsync", "routers/gatewayapi", "only cmd/controller names concrete routers"},
		{"gitsync/fetch", "gitsync/render", "steps never import each other"},
		{"gitsync/fetch", "gitsync/translate", "steps never import each other"},
		{"gitsync/fetch", "gitsync/apply", "steps never import each other"},
		{"gitsync/fetch", "gitsync/revert", "steps never import each other"},
		{"gitsync/render", "gitsync/fetch", "steps never import each other"},
		{"gitsync/render", "gitsync/translate", "steps never import each other"},
		{"gitsync/render", "gitsync/apply", "steps never import each other"},
		{"gitsync/render", "gitsync/revert", "steps never import each other"},
		{"gitsync/translate", "gitsync/fetch", "steps never import each other"},
		{"gitsync/translate", "gitsync/render", "steps never import each other"},
		{"gitsync/translate", "gitsync/apply", "steps never import each other"},
		{"gitsync/translate", "gitsync/revert", "steps never import each other"},
		{"gitsync/apply", "gitsync/fetch", "steps never import each other"},
		{"gitsync/apply", "gitsync/render", "steps never import each other"},
		{"gitsync/apply", "gitsync/translate", "steps never import each other"},
		{"gitsync/apply", "gitsync/revert", "steps never import each other"},
		{"gitsync/revert", "gitsync/fetch", "steps never import each other"},
		{"gitsync/revert", "gitsync/render", "steps never import each other"},
		{"gitsync/revert", "gitsync/translate", "steps never import each other"},
		{"gitsync/revert", "gitsync/apply", "steps never import each other"},
	}
	all := packages(t)
	below := func(name, folder string) bool {
		return folder == "" || name == folder || strings.HasPrefix(name, folder+"/")
	}
	for _, border := range borders {
		for name, p := range all {
			if !below(name, border.from) || (border.from == "" && name == "") {
				continue
			}
			for _, imported := range p.Imports {
				local, ours := strings.CutPrefix(imported, module+"/")
				if ours && below(local, border.to) && !below(local, border.from) {
					t.Errorf("%s imports %s: %s", name, local, border.why)
				}
			}
		}
	}
}

// The product's binary holds nothing of the lab and of the test control plane.
func TestControllerHoldsNoTestCode(t *testing.T) {
	controller, ok := packages(t)["cmd/controller"]
	if !ok {
		t.Fatal("cmd/controller doesn't exist")
	}
	for _, dep := range controller.Deps {
		local, ours := strings.CutPrefix(dep, module+"/")
		if ours && (strings.HasPrefix(local, "lab") || strings.HasPrefix(local, "e2e")) {
			t.Errorf("cmd/controller links %s", local)
		}
		if dep == "testing" || strings.HasPrefix(dep, "github.com/prometheus/prometheus/") {
			t.Errorf("cmd/controller links %s", dep)
		}
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	for name, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		documented := false
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			documented = documented || parsed.Doc != nil
		}
		if !documented {
			t.Errorf("package %q has no doc comment", name)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
