package fetch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
)

func TestFetch_ReadsAndFollows(t *testing.T) {
	r := newRepo(t, map[string]string{"apps/web/a.yaml": "a: 1\n", "apps/db/b.yaml": "b: 1\n", "README": "hi\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote(), "apps/web")
	if got := mustRead(t, tree, "apps/web/a.yaml"); got != "a: 1\n" {
		t.Fatalf("got %q", got)
	}
	var hidden *fetch.NotLoadedError
	if _, _, err := tree.ReadFile("apps/db/b.yaml"); !errors.As(err, &hidden) {
		t.Fatalf("want NotLoadedError for what was not asked for, got %v", err)
	}
	if err := store.Load(testContext(t), r.remote(), tree, "apps/db"); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, tree, "apps/db/b.yaml"); got != "b: 1\n" {
		t.Fatalf("got %q", got)
	}
	second := r.push("second\n\nPushback-Retry: abc", map[string]string{"apps/web/a.yaml": "a: 2\n"})
	next := mustFetch(t, store, r.remote(), "apps/web")
	if next.Commit != second || next.Parent != tree.Commit || next.Subject != "second" || !strings.Contains(next.Message, "Pushback-Retry: abc") {
		t.Fatalf("wrong commit: %+v", next)
	}
	if got := mustRead(t, next, "apps/web/a.yaml"); got != "a: 2\n" {
		t.Fatalf("got %q", got)
	}
	if got := mustRead(t, tree, "apps/web/a.yaml"); got != "a: 1\n" {
		t.Fatalf("the older tree changed: %q", got)
	}
	var walked []string
	if err := next.Walk("", func(e fetch.Entry) error { walked = append(walked, e.Path); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"README", "apps/db/b.yaml", "apps/web/a.yaml"}, walked); diff != "" {
		t.Fatal(diff)
	}
}

// A new commit costs what changed, and an idle poll one small request, however
// many refs there are (git.md 5.2 number 3).
func TestFetch_CostsWhatChanged(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("apps/%03d/app.yaml", i)] = strings.Repeat(fmt.Sprintf("key%d: value\n", i), 60)
	}
	r := newRepo(t, files)
	var refs strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&refs, "create refs/pull/%d/head %s\n", i, r.head())
	}
	r.stdin(r.bare, refs.String(), "update-ref", "--stdin")
	store := fetch.NewStore(fetch.Limits{})
	mustFetch(t, store, r.remote())
	r.traffic()
	head, err := store.Head(testContext(t), r.remote())
	if err != nil || head != r.head() {
		t.Fatalf("head %q, %v", head, err)
	}
	if requests, bytes := r.traffic(); requests != 1 || bytes > 1024 {
		t.Errorf("an idle poll took %d requests and %d bytes", requests, bytes)
	}
	for i := range 3 {
		r.push("next", map[string]string{"apps/007/app.yaml": fmt.Sprintf("key: %d\n", i)})
		r.traffic()
		tree := mustFetch(t, store, r.remote())
		if requests, bytes := r.traffic(); requests > 3 || bytes > 20_000 {
			t.Errorf("a new commit took %d requests and %d bytes", requests, bytes)
		}
		if got := mustRead(t, tree, "apps/007/app.yaml"); got != fmt.Sprintf("key: %d\n", i) {
			t.Fatalf("got %q", got)
		}
	}
}

// Restoring an old blob under a shallow store and a server with bitmaps is what
// a revert is, and what go-git's porcelain breaks on (git.md 1.4 T2, 5.2 number 1).
func TestFetch_RestoredBlobWithBitmaps(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n", "b.yaml": "b\n"})
	for i := 2; i <= 6; i++ {
		r.push("v", map[string]string{"a.yaml": fmt.Sprintf("v: %d\n", i)})
	}
	r.run(r.bare, "repack", "-a", "-d", "-q", "--write-bitmap-index")
	for _, scheme := range []string{"http", "file"} {
		t.Run(scheme, func(t *testing.T) {
			remote := r.remote()
			if scheme == "file" {
				remote.URL = "file://" + r.bare
			}
			store := fetch.NewStore(fetch.Limits{})
			mustFetch(t, store, remote)
			r.push("restore", map[string]string{"a.yaml": "v: 3\n"})
			tree := mustFetch(t, store, remote)
			if got := mustRead(t, tree, "a.yaml") + mustRead(t, tree, "b.yaml"); got != "v: 3\nb\n" {
				t.Fatalf("got %q", got)
			}
			r.push("on", map[string]string{"a.yaml": "v: 6\n"})
		})
	}
}

// A branch that is rewritten is followed, to an older commit and to an
// unrelated one (git.md 5.2 number 2).
func TestC119_ForcePushIsFollowed(t *testing.T) {
	for _, scheme := range []string{"http", "file"} {
		t.Run(scheme, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
			first := r.head()
			for i := 2; i <= 4; i++ {
				r.push("v", map[string]string{"a.yaml": fmt.Sprintf("v: %d\n", i)})
			}
			remote := r.remote()
			if scheme == "file" {
				remote.URL = "file://" + r.bare
			}
			store := fetch.NewStore(fetch.Limits{})
			mustFetch(t, store, remote)
			r.run(r.work, "reset", "-q", "--hard", first)
			r.run(r.work, "push", "-q", "-f", "origin", "HEAD:main")
			tree := mustFetch(t, store, remote)
			if tree.Commit != first || mustRead(t, tree, "a.yaml") != "v: 1\n" {
				t.Fatalf("at %s", tree.Commit)
			}
			r.run(r.work, "checkout", "-q", "--orphan", "other")
			r.run(r.work, "commit", "-q", "-m", "unrelated")
			r.run(r.work, "push", "-q", "-f", "origin", "HEAD:main")
			tree = mustFetch(t, store, remote)
			if tree.Commit != r.head() || tree.Parent != "" || mustRead(t, tree, "a.yaml") != "v: 1\n" {
				t.Fatalf("at %s", tree.Commit)
			}
		})
	}
}

func TestC134_EmptyRepositoryMissingBranchMissingPath(t *testing.T) {
	for _, scheme := range []string{"http", "file"} {
		t.Run(scheme, func(t *testing.T) {
			r := newRepo(t, nil)
			remote := r.remote()
			if scheme == "file" {
				remote.URL = "file://" + r.bare
			}
			store := fetch.NewStore(fetch.Limits{})
			if _, err := store.Fetch(testContext(t), remote); !errors.Is(err, gitsync.ErrEmptyRepository) {
				t.Fatalf("want EmptyRepository, got %v", err)
			}
			r.push("first", map[string]string{"a.yaml": "a\n"})
			missing := remote
			missing.Branch = "release"
			if _, err := store.Fetch(testContext(t), missing); !errors.Is(err, gitsync.ErrBranchNotFound) {
				t.Fatalf("want BranchNotFound, got %v", err)
			}
			tree := mustFetch(t, store, remote, "apps") // the first commit heals it
			if _, err := tree.List("apps"); !errors.Is(err, gitsync.ErrPathNotFound) {
				t.Fatalf("want PathNotFound, got %v", err)
			}
			gone := remote
			gone.URL = strings.Replace(remote.URL, "r.git", "gone.git", 1)
			if _, err := store.Fetch(testContext(t), gone); !errors.Is(err, gitsync.ErrRepositoryNotFound) {
				t.Fatalf("want RepositoryNotFound, got %v", err)
			}
		})
	}
}

func TestFetch_BranchDeletedAndMadeAgain(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	store := fetch.NewStore(fetch.Limits{})
	mustFetch(t, store, r.remote())
	r.run(r.bare, "update-ref", "refs/heads/keep", "main")
	r.run(r.bare, "update-ref", "-d", "refs/heads/main")
	if _, err := store.Fetch(testContext(t), r.remote()); !errors.Is(err, gitsync.ErrBranchNotFound) {
		t.Fatalf("want BranchNotFound, got %v", err)
	}
	r.push("again", map[string]string{"a.yaml": "v: 2\n"})
	if got := mustRead(t, mustFetch(t, store, r.remote()), "a.yaml"); got != "v: 2\n" {
		t.Fatalf("got %q", got)
	}
}

// A large file in a folder is left on the server, and refused by name.
func TestFetch_LargeFileIsNotDownloaded(t *testing.T) {
	files := map[string]string{"big.bin": incompressible(3 << 20)}
	for i := range 100 {
		files[fmt.Sprintf("f%d.yaml", i)] = "a: 1\n"
	}
	for name, few := range map[string]bool{"folder by folder": false, "one by one": true} {
		t.Run(name, func(t *testing.T) {
			set := files
			if few {
				set = map[string]string{"big.bin": files["big.bin"], "f0.yaml": "a: 1\n"}
			}
			r := newRepo(t, set)
			r.traffic()
			tree := mustFetch(t, fetch.NewStore(fetch.Limits{}), r.remote())
			if _, bytes := r.traffic(); bytes > 2_500_000 {
				t.Errorf("%d bytes were downloaded", bytes)
			}
			if _, _, err := tree.ReadFile("big.bin"); !errors.Is(err, gitsync.ErrUnusable) {
				t.Errorf("want a refusal, got %v", err)
			}
			if got := mustRead(t, tree, "f0.yaml"); got != "a: 1\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Servers without filters give the whole commit.
func TestFetch_ServerWithoutFilter(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n", "d/b.yaml": "b\n"})
	r.run(r.bare, "config", "uploadpack.allowFilter", "false")
	store := fetch.NewStore(fetch.Limits{})
	mustFetch(t, store, r.remote())
	r.push("next", map[string]string{"a.yaml": "v: 2\n"})
	tree := mustFetch(t, store, r.remote(), "d")
	if got := mustRead(t, tree, "a.yaml") + mustRead(t, tree, "d/b.yaml"); got != "v: 2\nb\n" {
		t.Fatalf("got %q", got)
	}
}
