package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/lint"
)

// The sample that ships is as it is meant.
func TestLintOfTheSample(t *testing.T) {
	for format, want := range map[string]string{"": "", "json": "[]\n", "github": ""} {
		args := []string{"lint", "../../manifests/samples/shop"}
		if format != "" {
			args = append(args, "-o", format)
		}
		out, _, err := execute(t.Context(), args...)
		if err != nil || out != want {
			t.Errorf("%q: %v\n%s", format, err, out)
		}
	}
}

func TestLintPrintsWhatItFinds(t *testing.T) {
	path := onDisk(t, strings.ReplaceAll(checkout, "%s", ""))
	for format, wants := range map[string][]string{
		"":       {"rollout.yaml:1: warning: Rollout/checkout spec.strategy.canary.steps[0]: setWeight 10 gives the new version 25% of the traffic: 1 of 4 pods; ", "[share-is-rounded]", "[nothing-is-measured]"},
		"github": {"::warning file=rollout.yaml,line=1,title=share-is-rounded::Rollout/checkout spec.strategy.canary.steps[0]: setWeight 10 gives the new version 25%25 of"},
	} {
		out, _, err := execute(t.Context(), "lint", path, "-o", format)
		if format == "" {
			out, _, err = execute(t.Context(), "lint", path)
		}
		if err == nil || !strings.Contains(err.Error(), "2 of 2 findings") {
			t.Errorf("%q: error %v", format, err)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%q does not print %q:\n%s", format, want, out)
			}
		}
	}
	out, _, _ := execute(t.Context(), "lint", path, "-o", "json")
	var found []lint.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 2 {
		t.Errorf("%v: %s", err, out)
	}
	out, _, _ = execute(t.Context(), "lint", path, "-o", "sarif")
	var report sarif
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Version != "2.1.0" || len(report.Runs) != 1 || len(report.Runs[0].Results) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	first := report.Runs[0].Results[0]
	if first.Level != "warning" || first.Locations[0].Physical.Artifact.URI != "rollout.yaml" || first.Locations[0].Physical.Region.StartLine != 1 {
		t.Errorf("%+v", first)
	}
}

func TestEscapedInWorkflowCommands(t *testing.T) {
	if got := escaped("a%b\nc:d,e", true); got != "a%25b%0Ac%3Ad%2Ce" {
		t.Errorf("property %q", got)
	}
	if got := escaped("a%b\nc:d,e", false); got != "a%25b%0Ac:d,e" {
		t.Errorf("message %q", got)
	}
}
