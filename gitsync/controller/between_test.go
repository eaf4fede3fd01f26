package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// commitAll makes a commit of each message and pushes them at once, the last one
// with the files. It returns them, oldest first.
func (l *lab) commitAll(files map[string]string, messages ...string) []string {
	l.Helper()
	l.pull()
	var out []string
	for _, message := range messages[:len(messages)-1] {
		l.git(l.work, "commit", "-q", "--allow-empty", "-m", message)
		out = append(out, l.git(l.work, "rev-parse", "HEAD"))
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(l.work, name), []byte(text), 0o644); err != nil {
			l.Fatal(err)
		}
	}
	l.git(l.work, "add", "-A")
	l.git(l.work, "commit", "-q", "--allow-empty", "-m", messages[len(messages)-1])
	l.git(l.work, "push", "-q", "origin", "main")
	return append(out, l.git(l.work, "rev-parse", "HEAD"))
}

func (l *lab) sourceOf(name string) v1alpha1.Source {
	l.Helper()
	var source v1alpha1.Source
	text := l.object(v1alpha1.GroupVersion.String(), v1alpha1.RolloutKind, name).GetAnnotations()[v1alpha1.SourceAnnotation]
	if err := json.Unmarshal([]byte(text), &source); err != nil {
		l.Fatal(err)
	}
	return source
}

// holdBack puts a template's hash among those that a Rollout has rejected.
func (l *lab) holdBack(name, hash string) {
	l.Helper()
	live := l.object(v1alpha1.GroupVersion.String(), v1alpha1.RolloutKind, name)
	before := client.MergeFrom(live.DeepCopy())
	live.Object["status"] = map[string]any{"rejected": []any{map[string]any{"hash": hash, "attempt": int64(1), "reason": "Failed", "time": "2026-01-01T00:00:00Z"}}}
	if err := l.client.Status().Patch(l.Context(), live, before); err != nil {
		l.Fatal(err)
	}
}

// A trailer counts although no poll ever saw its commit at the head: with another
// on top of it, after a restart, and when its own tree could not be applied.
func TestTrailersOfCommitsBetweenPolls(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"web.yaml": rollout("web", "app:2")})
	l.sync("sync")
	l.start()
	l.waitReady("sync", meta.ReconciliationSucceededReason, "")
	rejected := l.sourceOf("web").Hash
	l.holdBack("web", rejected)
	l.waitApplied("sync", l.commit("Back", map[string]string{"web.yaml": rollout("web", "app:1")}))

	trailer := "\n\n" + v1alpha1.RetryTrailer + ": " + rejected
	made := l.commitAll(nil, "Unrelated", "Try again"+trailer, "Docs", "More docs")
	l.waitApplied("sync", made[3])
	if got := l.sourceOf("web"); !slices.Equal(got.Retry, []string{rejected}) || got.Revision != "main@sha1:"+made[1] || got.Subject != "Try again" {
		t.Errorf("the trailer between two polls gave %+v", got)
	}

	l.stop()
	made = l.commitAll(nil, "Try once more"+trailer, "Docs")
	l.start()
	l.waitApplied("sync", made[1])
	if got := l.sourceOf("web"); got.Revision != "main@sha1:"+made[0] {
		t.Errorf("the trailer of a commit before a restart gave %+v", got)
	}

	bad := l.commitAll(map[string]string{"bad.yaml": "kind: [\n"}, "A third time"+trailer)
	l.waitReady("sync", v1alpha1.ReasonInvalidManifest, "bad.yaml")
	l.stop()
	l.start()
	good := l.commitAll(map[string]string{"bad.yaml": "# mended\n"}, "Mend")
	l.waitApplied("sync", good[0])
	if got := l.sourceOf("web"); got.Revision != "main@sha1:"+bad[0] || got.Subject != "A third time" {
		t.Errorf("the trailer of a tree that could not be applied gave %+v", got)
	}
	before := l.writes()
	l.waitApplied("sync", l.commit("Nothing", nil))
	for _, write := range l.writes()[len(before):] {
		if strings.Contains(write, "rollouts") {
			t.Errorf("a trailer counted twice: %s", write)
		}
	}
}

func TestIrreversibleBetweenPolls(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"web.yaml": rollout("web", "app:1")})
	l.sync("sync")
	l.start()
	l.waitReady("sync", meta.ReconciliationSucceededReason, "")
	made := l.commitAll(map[string]string{"web.yaml": rollout("web", "app:2")}, "Migrate\n\n"+v1alpha1.IrreversibleTrailer+": web", "Release")
	l.waitApplied("sync", made[1])
	if got := l.sourceOf("web"); !got.Irreversible || got.Revision != "main@sha1:"+made[1] {
		t.Errorf("got %+v", got)
	}
}

// dryRuns counts the comparisons in the namespace so far.
func (l *lab) dryRuns() int {
	l.Helper()
	all, err := l.cluster.Writes()
	if err != nil {
		l.Fatal(err)
	}
	count := 0
	for _, w := range all {
		if w.Namespace == l.namespace && w.DryRun() {
			count++
		}
	}
	return count
}

// poll asks for a poll and waits for its end.
func (l *lab) poll(sync *v1alpha1.GitSync, token string) {
	l.Helper()
	l.annotate(sync, meta.ReconcileRequestAnnotation, token)
	l.wait(func() string {
		got := &v1alpha1.GitSync{}
		if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: sync.Name}, got); err != nil {
			l.Fatal(err)
		}
		if got.Status.LastHandledReconcileAt != token {
			return "the requested poll was not made"
		}
		return ""
	})
}

// What was compared once is not compared again, until an hour has passed.
func TestPollsCompareOnlyWhatHasChanged(t *testing.T) {
	l := newLab(t)
	var offset atomic.Int64
	l.options.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())).Truncate(time.Second) }
	files := map[string]string{"web.yaml": rollout("web", "app:1")}
	for i := range 20 {
		files[fmt.Sprintf("c%d.yaml", i)] = configMap(fmt.Sprintf("c%d", i), "1")
	}
	l.commit("First", files)
	sync := l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Interval.Duration = time.Hour })
	l.start()
	l.waitReady("sync", meta.ReconciliationSucceededReason, "")
	l.poll(sync, "settle")
	before := l.dryRuns()
	l.poll(sync, "one")
	l.poll(sync, "two")
	if got := l.dryRuns() - before; got != 0 {
		t.Errorf("two polls with nothing new made %d comparisons", got)
	}
	live := l.object("v1", "ConfigMap", "c3")
	live.Object["data"] = map[string]any{"value": "by hand"}
	if err := l.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	l.poll(sync, "drift")
	if got := l.object("v1", "ConfigMap", "c3").Object["data"].(map[string]any)["value"]; got != "1" {
		t.Errorf("drift stays: %v", got)
	}
	if got := l.dryRuns() - before; got != 1 {
		t.Errorf("drift of one object made %d comparisons", got)
	}
	offset.Store(int64(memoryAge))
	before = l.dryRuns()
	l.poll(sync, "an hour later")
	if got := l.dryRuns() - before; got != 21 {
		t.Errorf("an hour later %d of 21 objects were compared", got)
	}
}

func TestTwoGitSyncsOfOneObject(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"one/a.yaml": configMap("a", "1"), "two/a.yaml": configMap("a", "2"), "two/b.yaml": configMap("b", "2")})
	l.sync("one", func(s *v1alpha1.GitSync) { s.Spec.Path = "one" })
	l.start()
	l.waitReady("one", meta.ReconciliationSucceededReason, "")
	l.sync("two", func(s *v1alpha1.GitSync) { s.Spec.Path = "two" })
	says := fmt.Sprintf("two/a.yaml, document 1, ConfigMap/%s/a: it belongs to GitSync %s/one", l.namespace, l.namespace)
	l.waitReady("two", v1alpha1.ReasonOwnedByAnother, says)
	uid := l.object("v1", "ConfigMap", "a").GetUID()
	before := l.writes()
	polls := time.Now().Add(3 * time.Second)
	l.wait(func() string {
		if time.Now().Before(polls) {
			return "waiting for polls"
		}
		return ""
	})
	if wrote := l.writes()[len(before):]; len(wrote) != 0 {
		t.Errorf("they fight: %v", wrote)
	}
	l.waitReady("two", v1alpha1.ReasonOwnedByAnother, says)
	if l.object("v1", "ConfigMap", "b") == nil {
		t.Error("the rest of the second was not applied")
	}
	moved := l.commit("Move", map[string]string{"one/a.yaml": "", "one/c.yaml": configMap("c", "1")})
	l.waitApplied("one", moved)
	l.waitApplied("two", moved)
	live := l.object("v1", "ConfigMap", "a")
	if live == nil || live.GetUID() != uid || live.Object["data"].(map[string]any)["value"] != "2" {
		t.Errorf("it was not taken over: %v", live)
	}
	if got := l.ready("one"); got.Reason != meta.ReconciliationSucceededReason {
		t.Errorf("the first is %+v", got)
	}
}
