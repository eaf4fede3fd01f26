package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestOneDemoAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	first, err := claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(dir); !errors.Is(err, errInUse) {
		t.Errorf("a second demo: %v, want errInUse", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the second demo emptied the folder of the first: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := claim(dir)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	defer next.Close()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was not emptied: %v", err)
	}
}

func TestAForeignFolderIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(dir); !errors.Is(err, errForeign) {
		t.Errorf("%v, want errForeign", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestMissingToolsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := checkTools(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v, want exec.ErrNotFound", err)
	}
}

func TestTheTimelineNamesVersionsAndSteps(t *testing.T) {
	weight, index := int32(25), int32(1)
	o := &v1alpha1.Rollout{Spec: v1alpha1.RolloutSpec{
		Template: &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"args":["--version=v4","--error-rate=0"]}]}}`)},
		Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{Steps: []v1alpha1.CanaryStep{
			{SetWeight: &weight}, {Pause: &v1alpha1.RolloutPause{}}}}},
	}}
	o.Status.Step, o.Status.CurrentStepIndex = "1/2", &index
	if got := declaredVersion(o); got != "v4" {
		t.Errorf("version %q, want v4", got)
	}
	if got, want := stepText(o), "  1/2 steps done, now a pause"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	index = 2
	if got, want := stepText(o), "  1/2 steps done"; got != want {
		t.Errorf("after the last step %q, want %q", got, want)
	}
}
