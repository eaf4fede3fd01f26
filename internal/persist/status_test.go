package persist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

var shared = clustertest.New(cluster.Options{}, installOldCRD)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// installOldCRD installs the Rollouts of a release that knew no attempt.
func installOldCRD(c *cluster.Cluster, ctx context.Context) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "manifests", "crd", "pushback.dev_rollouts.yaml"))
	if err != nil {
		return err
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	path := []string{"schema", "openAPIV3Schema", "properties", "status", "properties", "attempt"}
	if _, found, _ := unstructured.NestedFieldNoCopy(versions[0].(map[string]any), path...); !found {
		return fmt.Errorf("the CRD has no status.attempt that could be taken out")
	}
	unstructured.RemoveNestedField(versions[0].(map[string]any), path...)
	if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
		return err
	}
	if text, err = yaml.Marshal(crd); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "old-crd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "rollouts.yaml"), text, 0o600); err != nil {
		return err
	}
	return c.InstallCRDs(ctx, dir)
}

func rollout(t *testing.T) (client.Client, *v1alpha1.Rollout) {
	t.Helper()
	c := shared.Cluster(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	made := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: clustertest.Namespace(t, c), Name: "web"}}
	made.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	made.Spec.Template = &runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}
	made.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{}
	if err := live.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	return live, made
}

// C100: an API server with an older CRD drops fields without a word.
func TestC100_WhatWasNotKeptIsNamed(t *testing.T) {
	c, read := rollout(t)
	next := read.DeepCopy()
	next.Status.Attempt, next.Status.Phase = 3, v1alpha1.RolloutPhaseProgressing
	var dropped *NotKeptError
	if err := Status(t.Context(), c, read, next, v1alpha1.FieldManagerRollout); !errors.As(err, &dropped) {
		t.Fatalf("want a NotKeptError, got %v", err)
	}
	if diff := cmp.Diff(&NotKeptError{Kind: "Rollout", Fields: []string{"attempt"}}, dropped); diff != "" {
		t.Error(diff)
	}
}

func TestStatusIsBoundToWhatWasRead(t *testing.T) {
	c, read := rollout(t)
	first := read.DeepCopy()
	first.Status.Phase = v1alpha1.RolloutPhaseProgressing
	first.Status.AbortedAt = &metav1.Time{Time: time.Now()} // stored in whole seconds
	if err := Status(t.Context(), c, read, first, v1alpha1.FieldManagerRollout); err != nil {
		t.Fatal(err)
	}
	second := read.DeepCopy()
	second.Status.Phase = v1alpha1.RolloutPhaseHealthy
	if err := Status(t.Context(), c, read, second, v1alpha1.FieldManagerRollout); !apierrors.IsConflict(err) {
		t.Fatalf("over an older read: want a conflict, got %v", err)
	}
	// A field that goes is gone, and the next write may follow at once.
	third := first.DeepCopy()
	third.Status.AbortedAt = nil
	if err := Status(t.Context(), c, first, third, v1alpha1.FieldManagerRollout); err != nil {
		t.Fatal(err)
	}
	live := &v1alpha1.Rollout{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(read), live); err != nil {
		t.Fatal(err)
	}
	if live.Status.AbortedAt != nil || live.Status.Phase != v1alpha1.RolloutPhaseProgressing || live.ResourceVersion != third.ResourceVersion {
		t.Errorf("stored: %+v at version %s, want %s", live.Status, live.ResourceVersion, third.ResourceVersion)
	}
	if err := c.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if err := Status(t.Context(), c, third, first, v1alpha1.FieldManagerRollout); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Errorf("of a Rollout that is gone: got %v", err)
	}
}
