package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// commitAt is a commit with the trailers that it has.
func commitAt(digit string, retry ...string) Commit {
	return Commit{Revision: revision(digit), Subject: "Commit " + digit, Retry: retry}
}

// A trailer counts wherever it is between the last whole apply and the head, and
// it counts once, however often it is read again while syncs fail.
func TestTrailersBelowTheHeadCountOnce(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, webRollout}
	second := slices.Clone(docs)
	second[4] = strings.Replace(webRollout, "app:1", "app:2", 1)
	third := slices.Clone(docs)
	third[4] = strings.Replace(webRollout, "app:1", "app:3", 1)

	b.mustApply(second...)
	rejected := b.source().Hash
	live := b.get("pushback.dev/v1alpha1", "Rollout", "web")
	live.Object["status"] = map[string]any{"rejected": []any{map[string]any{"hash": rejected, "attempt": int64(1), "reason": "Failed", "time": "2026-01-01T00:00:00Z"}}}
	if err := b.client.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	type said struct{ Revision, Retry, Commits string }
	hash := func(digits string) string {
		var out []string
		for _, digit := range digits {
			out = append(out, strings.Repeat(string(digit), 40))
		}
		return strings.Join(out, ",")
	}
	for _, step := range []struct {
		name    string
		docs    []string
		commits []Commit
		want    said
		quiet   bool
	}{
		{"the stable template is back", docs, []Commit{commitAt("b")}, said{"b", "", ""}, false},
		{"a trailer below the head", docs, []Commit{commitAt("d"), commitAt("c", rejected, "0000000000")}, said{"c", rejected, "c"}, false},
		{"the same commits again", docs, []Commit{commitAt("d"), commitAt("c", rejected)}, said{"c", rejected, "c"}, true},
		{"more commits, the sync having failed", docs, []Commit{commitAt("e"), commitAt("d"), commitAt("c", rejected)}, said{"c", rejected, "c"}, true},
		{"a second trailer", docs, []Commit{commitAt("f"), commitAt("e", rejected), commitAt("d"), commitAt("c", rejected)}, said{"e", rejected, "ec"}, false},
		{"another template", third, []Commit{commitAt("1"), commitAt("f"), commitAt("e", rejected), commitAt("c", rejected)}, said{"1", "", "ec"}, false},
		{"the rejected template", second, []Commit{commitAt("2"), commitAt("1"), commitAt("e", rejected), commitAt("c", rejected)}, said{"2", "", "ec"}, false},
		{"a whole apply, and nothing between", second, []Commit{commitAt("2")}, said{"2", "", "ec"}, true},
		{"a trailer with the template", docs, []Commit{commitAt("4"), commitAt("3", rejected)}, said{"4", rejected, "3"}, false},
	} {
		b.in.Commit, b.in.Between = step.commits[0], step.commits[1:]
		wrote := b.writesDuring(func() { b.mustApply(step.docs...) })
		source := b.source()
		got := said{source.Revision, strings.Join(source.Retry, ","), strings.Join(source.RetryCommits, ",")}
		want := said{"main@sha1:" + hash(step.want.Revision), step.want.Retry, hash(step.want.Commits)}
		if diff := cmp.Diff(want, got); diff != "" || source.Subject != "Commit "+step.want.Revision {
			t.Errorf("%s: subject %q: %s", step.name, source.Subject, diff)
		}
		if step.quiet != (len(wrote) == 0) {
			t.Errorf("%s: wrote %v", step.name, wrote)
		}
	}
}

func TestIrreversibleBelowTheHead(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, webRollout}
	b.mustApply(docs...)
	b.in.Commit, b.in.Between = commitAt("b"), []Commit{{Revision: revision("c"), Irreversible: []string{b.namespace + "/web"}}}
	if b.mustApply(docs...); b.source().Irreversible {
		t.Error("a trailer marks a template that did not change")
	}
	docs[4] = strings.Replace(webRollout, "app:1", "app:2", 1)
	if b.mustApply(docs...); !b.source().Irreversible {
		t.Error("the trailer of a commit below the head is lost")
	}
	// Another try is for the same template, which is as irreversible as before.
	b.in.Commit, b.in.Between = commitAt("d", b.source().Hash), nil
	b.mustApply(docs...)
	if source := b.source(); !source.Irreversible || len(source.Retry) != 1 {
		t.Errorf("another try made it %+v", source)
	}
}

// What an older release wrote has no list of commits: its trailer is not noted again.
func TestANoteWithoutCommitsIsHeeded(t *testing.T) {
	source := noted{v1alpha1.Source{Retry: []string{"h"}, Revision: revision("c").String()}}
	for name, tc := range map[string]struct {
		retry retry
		want  bool
	}{
		"its own":        {retry{"h", commitAt("c")}, true},
		"another commit": {retry{"h", commitAt("d")}, false},
		"another hash":   {retry{"i", commitAt("c")}, false},
	} {
		if got := source.noted(tc.retry); got != tc.want {
			t.Errorf("%s: noted is %t", name, got)
		}
	}
}
