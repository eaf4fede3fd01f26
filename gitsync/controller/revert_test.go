package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// declaredHash is the hash that the source annotation of a Rollout names.
func (l *lab) declaredHash(name string) string {
	l.Helper()
	live := l.object("pushback.dev/v1alpha1", "Rollout", name)
	if live == nil {
		return ""
	}
	var source v1alpha1.Source
	if err := json.Unmarshal([]byte(live.GetAnnotations()[v1alpha1.SourceAnnotation]), &source); err != nil {
		l.Fatal(err)
	}
	return source.Hash
}

// roll commits a new image for a Rollout and waits until the cluster has it.
func (l *lab) roll(sync, name, before, after string) (commit, hash string) {
	l.Helper()
	l.pull()
	file := "apps/" + name + ".yaml"
	text, err := os.ReadFile(filepath.Join(l.work, file))
	if err != nil {
		l.Fatal(err)
	}
	old := l.declaredHash(name)
	commit = l.commit("Roll "+name+" to "+after, map[string]string{file: strings.Replace(string(text), before, after, 1)})
	l.wait(func() string {
		if hash = l.declaredHash(name); hash == old {
			return "the new image of " + name + " was not applied"
		}
		return ""
	})
	return commit, hash
}

// judge writes the status of a Rollout as its controller does.
func (l *lab) judge(name string, edit func(*v1alpha1.RolloutStatus)) {
	l.Helper()
	live := &v1alpha1.Rollout{}
	err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, live)
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil {
		before := live.DeepCopy()
		edit(&live.Status)
		err = l.client.Status().Patch(l.Context(), live, client.MergeFrom(before))
	}
	if err != nil {
		l.Fatal(err)
	}
}

// condemn notes a version as rejected, at an attempt.
func condemn(rejected, stable string, attempt int64) func(*v1alpha1.RolloutStatus) {
	return func(status *v1alpha1.RolloutStatus) {
		status.StableRS = stable
		status.Rejected = append(slices.DeleteFunc(status.Rejected, func(r v1alpha1.RejectedVersion) bool { return r.Hash == rejected }),
			v1alpha1.RejectedVersion{Hash: rejected, Attempt: attempt, Reason: v1alpha1.AbortFailed, Time: metav1.Now()})
	}
}

// reject rejects a version and creates its Revert, as the Rollout's controller does.
func (l *lab) reject(sync, name, rejected, stable string, edits ...func(*v1alpha1.Revert)) string {
	l.Helper()
	revert := &v1alpha1.Revert{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("%s-%s-1", name, rejected), Labels: map[string]string{v1alpha1.RolloutNameLabel: name}},
		Spec: v1alpha1.RevertRequest{
			Rollout: v1alpha1.RevertRollout{Namespace: l.namespace, Name: name}, GitSync: v1alpha1.RevertGitSync{Namespace: l.namespace, Name: sync},
			Rejected: rejected, Stable: stable, Attempt: 1, Reason: v1alpha1.AbortFailed, Message: "success-rate was 0.5, wanted >= 0.95",
			RejectedRevision: "main@sha1:" + strings.Repeat("a", 40), RejectedSubject: "Roll " + name, AbortedAt: metav1.Time{Time: time.Now().Truncate(time.Second)},
		},
	}
	for _, edit := range edits {
		edit(revert)
	}
	l.judge(name, condemn(rejected, stable, revert.Spec.Attempt))
	l.ask(revert)
	return revert.Name
}

// ask creates a Revert.
func (l *lab) ask(revert *v1alpha1.Revert) {
	l.Helper()
	if err := l.client.Create(l.Context(), revert); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) revertStatus(name string) v1alpha1.RevertStatus {
	l.Helper()
	revert := &v1alpha1.Revert{}
	if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, revert); err != nil {
		l.Fatal(err)
	}
	return revert.Status
}

func (l *lab) waitPhase(name string, phase v1alpha1.RevertPhase, reason string) v1alpha1.RevertStatus {
	l.Helper()
	var status v1alpha1.RevertStatus
	l.wait(func() string {
		if status = l.revertStatus(name); status.Phase != phase || status.Reason != reason {
			return fmt.Sprintf("Revert %s: want %s %s, got %+v", name, phase, reason, status)
		}
		return ""
	})
	return status
}

func TestRevertIsPushedAndObserved(t *testing.T) {
	l := newLab(t)
	v1 := rollout("web", "app:1")
	l.commit("First", map[string]string{"apps/web.yaml": v1, "apps/other.yaml": configMap("other", "1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declaredHash("web")
	_, rejected := l.roll("sync", "web", "app:1", "app:2")
	// C02: somebody edits the neighbourhood meanwhile.
	edited := strings.Replace(strings.Replace(v1, "app:1", "app:2", 1), "replicas: 1   # small", "replicas: 2   # not so small", 1)
	l.commit("Scale", map[string]string{"apps/web.yaml": edited, "apps/other.yaml": configMap("other", "2")})

	commits := l.commits()
	name := l.reject("sync", "web", rejected, stable)
	status := l.waitPhase(name, v1alpha1.RevertObserved, "")
	if want := strings.Replace(edited, "app:2", "app:1", 1); l.file("apps/web.yaml") != want {
		t.Errorf("the file is not as before but for the image:\n%s", cmp.Diff(want, l.file("apps/web.yaml")))
	}
	if l.commits() != commits+1 {
		t.Errorf("want one commit more, got %d", l.commits()-commits)
	}
	head := l.git(l.bare, "rev-parse", "main")
	if status.Commit != head || status.ShortCommit != head[:7] || status.Branch != "main" || !cmp.Equal(status.Files, []string{"apps/web.yaml"}) || status.PushedAt == nil {
		t.Errorf("the status is %+v", status)
	}
	if !strings.Contains(status.PlannedDiff, "-        image: 'app:2' # bumped by hand\n+        image: 'app:1' # bumped by hand\n") {
		t.Errorf("the planned diff is %s", status.PlannedDiff)
	}
	message := l.git(l.bare, "log", "-1", "--format=%an <%ae>%n%B", "main")
	for _, want := range []string{"Pushback <pushback@noreply.pushback.dev>", `Revert "Roll web"`, "success-rate was 0.5", "Pushback-Rollout: " + l.namespace + "/web", "Pushback-Rejected-Template: " + rejected, "Pushback-Restored-Template: " + stable} {
		if !strings.Contains(message, want) {
			t.Errorf("want %q in the message:\n%s", want, message)
		}
	}
	l.wait(func() string {
		if l.declaredHash("web") != stable {
			return "the cluster was not brought back"
		}
		return ""
	})
}

func TestRevertsThatHaveNothingToPush(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/a.yaml": rollout("a", "app:1"), "apps/b.yaml": rollout("b", "app:1"), "apps/c.yaml": rollout("c", "app:1"), "apps/d.yaml": rollout("d", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		stable[name] = l.declaredHash(name)
	}
	_, byHand := l.roll("sync", "a", "app:1", "app:2")
	l.roll("sync", "a", "app:2", "app:1")
	_, third := l.roll("sync", "b", "app:1", "app:2")
	l.roll("sync", "b", "app:2", "app:3")
	_, gone := l.roll("sync", "d", "app:1", "app:2")
	l.commit("Remove d", map[string]string{"apps/d.yaml": ""})
	commits := l.commits()
	l.waitPhase(l.reject("sync", "a", byHand, stable["a"]), v1alpha1.RevertAlreadyReverted, "")
	l.waitPhase(l.reject("sync", "b", third, stable["b"]), v1alpha1.RevertSuperseded, "")
	l.waitPhase(l.reject("sync", "c", stable["c"], ""), v1alpha1.RevertNoTarget, "")
	l.waitPhase(l.reject("sync", "d", gone, stable["d"]), v1alpha1.RevertSuperseded, "")
	if l.commits() != commits {
		t.Error("something was pushed")
	}
}

func TestRevertsThatAreBlocked(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path, s.Spec.Revert = "apps", &v1alpha1.RevertSpec{Owner: "west"} })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declaredHash("web")
	_, rejected := l.roll("sync", "web", "app:1", "app:2")
	commits := l.commits()
	name := l.reject("sync", "web", rejected, stable)
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonNotOwner)
	elsewhere := l.reject("sync", "web", rejected, stable, func(r *v1alpha1.Revert) {
		r.Name, r.Spec.Rollout.Namespace = "of-another-namespace", "kube-system"
	})
	l.waitPhase(elsewhere, v1alpha1.RevertBlocked, v1alpha1.RevertReasonPolicy)
	missing := l.reject("missing", "web", rejected, stable, func(r *v1alpha1.Revert) { r.Name = "of-no-gitsync" })
	l.waitPhase(missing, v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)

	l.settings("sync", v1alpha1.RevertSpec{Mode: v1alpha1.RevertNone})
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonPolicy)
	l.settings("sync", v1alpha1.RevertSpec{Budget: &v1alpha1.RevertBudget{PerRollout: ptr.To[int32](0)}})
	if status := l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonBudget); !strings.Contains(status.PlannedDiff, "app:1") || status.RetryAt == nil {
		t.Errorf("want the planned diff and the next try, got %+v", status)
	}
	l.settings("sync", v1alpha1.RevertSpec{SecretRef: &meta.LocalObjectReference{Name: "nobody-made-it"}})
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonAuth)
	// Nothing may be written: then it is of no interest that nothing could be read.
	l.settings("sync", v1alpha1.RevertSpec{Mode: v1alpha1.RevertNone, SecretRef: &meta.LocalObjectReference{Name: "nobody-made-it"}})
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonPolicy)
	if l.commits() != commits {
		t.Error("something was pushed")
	}
	// As the words say, a person reverts by hand; then the Revert is done.
	l.settings("sync", v1alpha1.RevertSpec{Mode: v1alpha1.RevertNone})
	l.roll("sync", "web", "app:2", "app:1")
	l.waitPhase(name, v1alpha1.RevertAlreadyReverted, "")
}

// settings replaces the revert settings of a GitSync.
func (l *lab) settings(name string, spec v1alpha1.RevertSpec) {
	l.Helper()
	sync := &v1alpha1.GitSync{}
	if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, sync); err != nil {
		l.Fatal(err)
	}
	before := sync.DeepCopy()
	sync.Spec.Revert = &spec
	if err := l.client.Patch(l.Context(), sync, client.MergeFrom(before)); err != nil {
		l.Fatal(err)
	}
}

// C31: a hook declines; the server's words are shown, and when the rule is gone
// the next new head brings the revert about.
func TestC31_ADeclinedPushIsBlockedAndTriedAgain(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declaredHash("web")
	rolled, rejected := l.roll("sync", "web", "app:1", "app:2")
	l.waitApplied("sync", rolled) // what is tried again later is tried because of a new head
	hook := filepath.Join(l.bare, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	commits := l.commits()
	name := l.reject("sync", "web", rejected, stable)
	status := l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonPolicy)
	if !strings.Contains(status.Message, "GH006") || l.commits() != commits || status.PushedAt != nil {
		t.Errorf("want the server's words and no commit, got %+v", status)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	l.commit("Unrelated", map[string]string{"README.md": "x\n"})
	l.waitPhase(name, v1alpha1.RevertObserved, "")
	if l.commits() != commits+2 {
		t.Errorf("want the unrelated commit and one revert, got %d", l.commits()-commits)
	}
}

// A controller that was killed between the push and the status finds its own commit.
func TestRevertIsAdoptedAfterACrash(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declaredHash("web")
	_, rejected := l.roll("sync", "web", "app:1", "app:2")
	name := l.reject("sync", "web", rejected, stable)
	pushed := l.waitPhase(name, v1alpha1.RevertObserved, "").Commit
	commits := l.commits()
	l.stop()
	revert := &v1alpha1.Revert{}
	if err := l.client.Get(t.Context(), types.NamespacedName{Namespace: l.namespace, Name: name}, revert); err != nil {
		t.Fatal(err)
	}
	revert.Status = v1alpha1.RevertStatus{}
	if err := l.client.Status().Update(t.Context(), revert); err != nil {
		t.Fatal(err)
	}
	l.start()
	status := l.waitPhase(name, v1alpha1.RevertObserved, "")
	if status.Commit != pushed || status.PushedAt == nil || l.commits() != commits {
		t.Errorf("want commit %s adopted and no other, got %+v", pushed, status)
	}
}

// C11: two Rollouts of one repository are rejected in the same second.
func TestC11_TwoRevertsOfOneBranch(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/a.yaml": rollout("a", "app:1"), "apps/b.yaml": rollout("b", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stableA, stableB := l.declaredHash("a"), l.declaredHash("b")
	_, rejectedA := l.roll("sync", "a", "app:1", "app:2")
	_, rejectedB := l.roll("sync", "b", "app:1", "app:2")
	commits := l.commits()
	one, two := l.reject("sync", "a", rejectedA, stableA), l.reject("sync", "b", rejectedB, stableB)
	l.waitPhase(one, v1alpha1.RevertObserved, "")
	l.waitPhase(two, v1alpha1.RevertObserved, "")
	if l.commits() != commits+2 || !strings.Contains(l.file("apps/a.yaml"), "app:1") || !strings.Contains(l.file("apps/b.yaml"), "app:1") {
		t.Errorf("want two commits with one change each, got %s", l.git(l.bare, "log", "--stat", "main"))
	}
}

// C131: branches ask for names and addresses of the organisation.
func TestC131_AuthorAndCommitterAreTheSettings(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) {
		s.Spec.Path = "apps"
		s.Spec.Revert = &v1alpha1.RevertSpec{
			Author: &v1alpha1.GitIdentity{Name: "Ada", Email: "ada@example.com"}, Committer: &v1alpha1.GitIdentity{Name: "Bot", Email: "bot@example.com"},
		}
	})
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declaredHash("web")
	_, rejected := l.roll("sync", "web", "app:1", "app:2")
	l.waitPhase(l.reject("sync", "web", rejected, stable), v1alpha1.RevertObserved, "")
	if got, want := l.git(l.bare, "log", "-1", "--format=%an <%ae> %cn <%ce>", "main"), "Ada <ada@example.com> Bot <bot@example.com>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Law 12: an edit that another GitSync or kustomization would notice is not pushed.
func TestASharedFileIsNotReverted(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{
		"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": rollout("web", "app:1"),
		"apps/kustomization.yaml": "resources: [../base]\nimages: [{name: app, newTag: '5'}]\n",
		"mine/kustomization.yaml": "resources: [../base]\n",
		"more/kustomization.yaml": "resources: [../base]\nnamePrefix: more-\n",
	})
	l.sync("mine", func(s *v1alpha1.GitSync) { s.Spec.Path = "mine" })
	l.start()
	l.waitReady("mine", "ReconciliationSucceeded", "")
	stable := l.declaredHash("web")
	l.commit("Roll the base", map[string]string{"base/web.yaml": rollout("web", "app:2")})
	l.wait(func() string {
		if l.declaredHash("web") == stable {
			return "the new image was not applied"
		}
		return ""
	})
	commits := l.commits()
	status := l.waitPhase(l.reject("mine", "web", l.declaredHash("web"), stable), v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)
	if l.commits() != commits || !strings.Contains(status.Message, "more") {
		t.Errorf("want a refusal that names the overlay, got %+v", status)
	}
}

// C121: the image that a kustomization sets is brought back where it is set.
func TestC121_AnImageOfAKustomizationIsReverted(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{
		"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": rollout("web", "app:0"),
		"apps/kustomization.yaml": "resources: [../base]\nimages:\n- name: app\n  newTag: v1 # good\nconfigMapGenerator: [{name: c, literals: [a=b]}]\n",
	})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable, before := l.declaredHash("web"), l.file("apps/kustomization.yaml")
	l.commit("Roll", map[string]string{"apps/kustomization.yaml": strings.Replace(before, "v1", "v2", 1)})
	l.wait(func() string {
		if l.declaredHash("web") == stable {
			return "the new image was not applied"
		}
		return ""
	})
	l.waitPhase(l.reject("sync", "web", l.declaredHash("web"), stable), v1alpha1.RevertObserved, "")
	if diff := cmp.Diff(before, l.file("apps/kustomization.yaml")); diff != "" {
		t.Error(diff)
	}
}

func TestFinishedRevertsAgeOut(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.options.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour).Truncate(time.Second) }
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	name := l.reject("sync", "web", "0000000000", l.declaredHash("web"))
	l.wait(func() string {
		if l.object("pushback.dev/v1alpha1", "Revert", name) != nil {
			return "the old Revert is still there"
		}
		return ""
	})
}
