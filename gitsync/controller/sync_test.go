package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestSyncAppliesPrunesAndIsThenQuiet(t *testing.T) {
	l := newLab(t)
	first := l.commit("First", map[string]string{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1"), "web.yaml": rollout("web", "app:1")})
	l.sync("sync")
	l.start()
	l.waitApplied("sync", first)
	sync := &v1alpha1.GitSync{}
	key := types.NamespacedName{Namespace: l.namespace, Name: "sync"}
	if err := l.client.Get(t.Context(), key, sync); err != nil {
		t.Fatal(err)
	}
	wantInventory := []v1alpha1.ResourceRef{
		{ID: l.namespace + "_a__ConfigMap", Version: "v1"}, {ID: l.namespace + "_b__ConfigMap", Version: "v1"},
		{ID: l.namespace + "_web_pushback.dev_Rollout", Version: "v1alpha1"},
	}
	if diff := cmp.Diff(wantInventory, sync.Status.Inventory.Entries); diff != "" {
		t.Error(diff)
	}
	if sync.Status.LastAppliedRevision != "main@sha1:"+first || sync.Status.LastAttemptedRevision != "" || sync.Status.ObservedGeneration != sync.Generation {
		t.Errorf("the status is %+v", sync.Status)
	}
	if len(sync.Status.Conditions) != 1 {
		t.Errorf("want Ready alone, got %+v", sync.Status.Conditions)
	}

	before := l.writes()
	l.annotate(sync, meta.ReconcileRequestAnnotation, "now")
	l.wait(func() string {
		if err := l.client.Get(t.Context(), key, sync); err != nil {
			t.Fatal(err)
		}
		if sync.Status.LastHandledReconcileAt != "now" {
			return "the requested reconcile was not echoed"
		}
		return ""
	})
	// Several polls go by with nothing new.
	polls := time.Now().Add(3 * time.Second)
	l.wait(func() string {
		if time.Now().Before(polls) {
			return "waiting for polls"
		}
		return ""
	})
	if wrote := l.writes()[len(before):]; !slices.Equal(wrote, []string{"patch gitsyncs/sync/", "patch gitsyncs/sync/status"}) {
		t.Errorf("want the annotation and its echo, and nothing else; got %v", wrote)
	}

	second := l.commit("Second", map[string]string{"a.yaml": configMap("a", "2"), "b.yaml": ""})
	l.waitApplied("sync", second)
	if got := l.object("v1", "ConfigMap", "a").Object["data"].(map[string]any)["value"]; got != "2" {
		t.Errorf("a is %v", got)
	}
	if l.object("v1", "ConfigMap", "b") != nil {
		t.Error("b left Git and is still there")
	}
}

// Law 9: what fails goes on failing without a write, however often it is tried.
func TestFailuresAreQuiet(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"good/a.yaml": configMap("a", "1"), "bad/a.yaml": "kind: [\n"})
	l.sync("bad", func(s *v1alpha1.GitSync) { s.Spec.Path = "bad" })
	l.sync("path", func(s *v1alpha1.GitSync) { s.Spec.Path = "nowhere" })
	l.sync("branch", func(s *v1alpha1.GitSync) { s.Spec.Ref = &v1alpha1.GitRef{Branch: "nope"} })
	l.start()
	l.waitReady("bad", v1alpha1.ReasonInvalidManifest, "bad/a.yaml")
	l.waitReady("path", v1alpha1.ReasonPathNotFound, "nowhere")
	l.waitReady("branch", v1alpha1.ReasonBranchNotFound, "nope")
	// A repository that has lost an object tells its head and can't be fetched.
	broken := t.TempDir() + "/broken.git"
	l.git("", "clone", "-q", "--bare", l.bare, broken)
	blob := l.git(broken, "rev-parse", "main:good/a.yaml")
	if err := os.Remove(filepath.Join(broken, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	l.sync("broken", func(s *v1alpha1.GitSync) { s.Spec.Path, s.Spec.URL = "good", "file://"+broken })
	l.waitReady("broken", v1alpha1.ReasonGitOperationFailed, "")
	before := l.writes()
	polls := time.Now().Add(4 * time.Second)
	l.wait(func() string {
		if time.Now().Before(polls) {
			return "waiting for polls"
		}
		return ""
	})
	if wrote := l.writes()[len(before):]; len(wrote) != 0 {
		t.Errorf("failing again was written: %v", wrote)
	}
}

func (l *lab) annotate(object client.Object, key, value string) {
	l.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if err := l.client.Patch(l.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		l.Fatal(err)
	}
}

func TestC46_C58_C76_ABadFileLeavesItsOwnObjectsAndOthersGoOn(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"one/a.yaml": configMap("a", "1"), "two/b.yaml": configMap("b", "1")})
	l.sync("one", func(s *v1alpha1.GitSync) { s.Spec.Path = "one" })
	l.sync("two", func(s *v1alpha1.GitSync) { s.Spec.Path = "two" })
	l.start()
	l.waitReady("one", meta.ReconciliationSucceededReason, "")
	bad := strings.Replace(configMap("a", "2"), "data:", "data:\n  x: y\ndata:", 1)
	second := l.commit("Bad", map[string]string{"one/a.yaml": bad, "one/new.yaml": configMap("new", "1"), "two/b.yaml": configMap("b", "2")})
	l.waitReady("one", v1alpha1.ReasonInvalidManifest, "one/a.yaml, document 1 (line 7)")
	l.waitApplied("two", second)
	if got := l.object("v1", "ConfigMap", "a").Object["data"].(map[string]any)["value"]; got != "1" || l.object("v1", "ConfigMap", "new") != nil {
		t.Error("objects of the bad tree were touched")
	}
	sync := &v1alpha1.GitSync{}
	if err := l.client.Get(t.Context(), types.NamespacedName{Namespace: l.namespace, Name: "one"}, sync); err != nil {
		t.Fatal(err)
	}
	if !apimeta.IsStatusConditionTrue(sync.Status.Conditions, meta.StalledCondition) || sync.Status.LastAttemptedRevision != "main@sha1:"+second {
		t.Errorf("want Stalled at the new commit, got %+v", sync.Status)
	}
	// C76: a newer head ends it, whatever was tried before.
	third := l.commit("Good", map[string]string{"one/a.yaml": configMap("a", "3")})
	l.waitApplied("one", third)
	if l.object("v1", "ConfigMap", "new") == nil {
		t.Error("the rest of the tree was not applied")
	}
}

func TestC134_EmptyRepositoryBranchAndPath(t *testing.T) {
	l := newLab(t)
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", v1alpha1.ReasonEmptyRepository, "")
	l.commit("First", map[string]string{"README.md": "hello\n"})
	l.waitReady("sync", v1alpha1.ReasonPathNotFound, "apps")
	second := l.commit("Second", map[string]string{"apps/a.yaml": configMap("a", "1")})
	l.waitApplied("sync", second)
	l.sync("other", func(s *v1alpha1.GitSync) { s.Spec.Ref = &v1alpha1.GitRef{Branch: "nope"} })
	l.waitReady("other", v1alpha1.ReasonBranchNotFound, "nope")
	// The folder goes away: nothing is pruned.
	l.commit("Third", map[string]string{"apps/a.yaml": ""})
	l.waitReady("sync", v1alpha1.ReasonPathNotFound, "apps")
	if l.object("v1", "ConfigMap", "a") == nil {
		t.Error("a was pruned with its folder")
	}
}

func TestC137_ObjectsWithoutANameAreLeftOut(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"a.yaml": configMap("a", "1"), "job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"})
	l.sync("sync")
	l.start()
	l.waitReady("sync", v1alpha1.ReasonInvalidManifest, "job.yaml")
	if l.object("v1", "ConfigMap", "a") == nil {
		t.Error("the other object was not applied")
	}
}

func TestC56_WhatTheServiceAccountMayNotIsForbidden(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"a.yaml": configMap("a", "1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.ServiceAccountName = "nobody" })
	l.options.DefaultServiceAccount = "default"
	l.sync("standard")
	l.start()
	l.waitReady("sync", v1alpha1.ReasonForbidden, "nobody")
	l.waitReady("standard", v1alpha1.ReasonForbidden, l.namespace+":default")
	if l.object("v1", "ConfigMap", "a") != nil {
		t.Error("it was applied all the same")
	}
}

func TestSpecsThatCanNotBeUsed(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"a.yaml": configMap("a", "1")})
	l.options.AllowFileURLs = false
	l.sync("disk")
	l.sync("secret", func(s *v1alpha1.GitSync) {
		s.Spec.URL, s.Spec.SecretRef = "https://127.0.0.1:1/r.git", &meta.LocalObjectReference{Name: "nope"}
	})
	l.sync("unbuilt", func(s *v1alpha1.GitSync) { s.Spec.Mode = v1alpha1.GitSyncModeObserve })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "half"}, StringData: map[string]string{"username": "u"}}
	if err := l.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	l.sync("half", func(s *v1alpha1.GitSync) {
		s.Spec.URL, s.Spec.SecretRef = "https://127.0.0.1:1/r.git", &meta.LocalObjectReference{Name: "half"}
	})
	l.start()
	l.waitReady("disk", v1alpha1.ReasonInvalidGitSync, "--allow-file-urls")
	l.waitReady("secret", v1alpha1.ReasonAuthenticationFailed, "nope")
	l.waitReady("unbuilt", v1alpha1.ReasonInvalidGitSync, "spec.mode")
	l.waitReady("half", v1alpha1.ReasonAuthenticationFailed, "password")
}

func TestSuspendedGitSyncsRest(t *testing.T) {
	l := newLab(t)
	first := l.commit("First", map[string]string{"a.yaml": configMap("a", "1")})
	sync := l.sync("sync")
	l.start()
	l.waitApplied("sync", first)
	if err := l.client.Patch(t.Context(), sync, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))); err != nil {
		t.Fatal(err)
	}
	l.commit("Second", map[string]string{"a.yaml": configMap("a", "2")})
	polls := time.Now().Add(3 * time.Second)
	l.wait(func() string {
		if time.Now().Before(polls) {
			return "waiting for polls that don't come"
		}
		return ""
	})
	if got := l.object("v1", "ConfigMap", "a").Object["data"].(map[string]any)["value"]; got != "1" {
		t.Errorf("a suspended GitSync applied %v", got)
	}
	if err := l.client.Patch(t.Context(), sync, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))); err != nil {
		t.Fatal(err)
	}
	l.wait(func() string {
		if got := l.object("v1", "ConfigMap", "a").Object["data"].(map[string]any)["value"]; got != "2" {
			return "it was not resumed"
		}
		return ""
	})
}

func TestTrailers(t *testing.T) {
	const hash = "0123456789"
	tests := map[string]struct {
		message string
		want    []string
	}{
		"last paragraph":                   {"Subject\n\nBody.\n\nPushback-Retry: " + hash + "\nSigned-off-by: A <a@b>\n", []string{hash}},
		"the name's case doesn't count":    {"Subject\n\npushback-retry: " + hash, []string{hash}},
		"in the middle, by a squash merge": {"Subject (#1)\n\n* One\n\nPushback-Retry: a\n\n* Two\n\nPushback-Retry: b\n", []string{"a", "b"}},
		"CRLF":                             {"Subject\r\n\r\nPushback-Retry: a\r\n", []string{"a"}},
		"in running text it is none":       {"Subject\n\nWrite the line\nPushback-Retry: a\nto lift the hold.\n", nil},
		"none":                             {"Subject", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, trailers(tc.message, v1alpha1.RetryTrailer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
