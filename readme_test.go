package pushback_test

import (
	"os"
	"strings"
	"testing"
)

// runners says for each command of the README's sh blocks what runs it: CI
// itself, or a test (file and function).
var runners = map[string]struct{ file, function string }{
	"make demo":             {"e2e/demo/demo_test.go", "TestDemo"},
	"make demo ARGS=--keep": {"e2e/demo/demo_test.go", `parse([]string{"--keep"`},
	`KUBECONFIG=~/.kube/config make demo ARGS="--cluster --image registry.example.com/pushback:v0.1.0"`: {"e2e/demo/demo_test.go", "TestDemoOnACluster"},
	"make test": {".ci/run", "make test"},
	"bin/pushback plan manifests/samples/shop":             {"cmd/pushback/plan_test.go", `"../../manifests/samples/shop"`},
	"bin/pushback lint manifests/samples/shop":             {"cmd/pushback/lint_test.go", `"../../manifests/samples/shop"`},
	"kubectl apply --server-side -k manifests/install":     {"e2e/stories/install_test.go", "TestInstall"},
	"kubectl -n shop create serviceaccount pushback-apply": {"e2e/world/rights.go", `"pushback-apply"`},
	"kubectl -n shop create rolebinding pushback-apply --clusterrole=pushback-tenant --serviceaccount=shop:pushback-apply": {"e2e/world/rights.go", `Name: "pushback-tenant"`},
	"bin/pushback -n shop list":         {"e2e/stories/cli_test.go", `"list"`},
	"bin/pushback -n shop get shop -w":  {"e2e/stories/cli_test.go", `"get", "web", "-w"`},
	"bin/pushback -n shop history shop": {"e2e/stories/cli_test.go", `"history", "web"`},
	"bin/pushback -n shop status shop":  {"e2e/stories/cli_test.go", `"status", "web"`},
	"bin/pushback -n shop promote shop": {"e2e/stories/cli_test.go", `"promote", "web"`},
	"bin/pushback -n shop abort shop":   {"e2e/stories/cli_test.go", `"abort", "web"`},
	"bin/pushback -n shop retry shop":   {"e2e/stories/cli_test.go", `"retry", "web"`},
	"bin/pushback -n shop pause shop":   {"e2e/stories/cli_test.go", `"pause", "web"`},
	"bin/pushback -n shop resume shop":  {"e2e/stories/cli_test.go", `"resume", "web"`},
	"bin/pushback -n shop restart shop": {"e2e/stories/cli_test.go", `"restart", "web"`},
	"bin/pushback -n shop undo shop":    {"e2e/stories/cli_test.go", `"undo", "web"`},
}

func TestEveryCommandOfTheReadmeIsRun(t *testing.T) {
	readme := readFile(t, "README.md")
	seen := 0
	for _, command := range commands(readme) {
		seen++
		runner, ok := runners[command]
		if !ok {
			t.Errorf("nothing runs the README's command %q: add a test, and name it here", command)
			continue
		}
		text, err := os.ReadFile(runner.file)
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		if !strings.Contains(string(text), runner.function) {
			t.Errorf("%q: %s does not hold %s any more", command, runner.file, runner.function)
		}
	}
	if seen == 0 {
		t.Error("no command was found in the README")
	}
}

// commands are the lines of the sh blocks.
func commands(readme string) []string {
	var out []string
	inside := false
	for _, line := range strings.Split(readme, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside && strings.TrimSpace(line) != "":
			command, _, _ := strings.Cut(line, "  #")
			out = append(out, strings.TrimSpace(command))
		}
	}
	return out
}
