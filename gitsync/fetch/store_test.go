package fetch_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
// many refs there are.
func TestFetch_CostsWhatChanged(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("apps/%03d/app.yaml", i)] = strings.Repeat(fmt.Sprintf("key%d: value\n", i), 60)
	}
	r := newRepo(t, files)
	head := r.head()
	refs := "# pack-refs with: peeled fully-peeled sorted \n"
	for i := range 10000 {
		refs += fmt.Sprintf("%s refs/pull/%05d/head\n", head, i)
	}
	if err := os.WriteFile(filepath.Join(r.bare, "packed-refs"), []byte(refs), 0o644); err != nil {
		t.Fatal(err)
	}
	store := fetch.NewStore(fetch.Limits{})
	mustFetch(t, store, r.remote())
	r.traffic()
	got, err := store.Head(testContext(t), r.remote())
	if err != nil || got != head {
		t.Fatalf("head %q, %v", got, err)
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
// a revert is, and what go-git's porcelain breaks on.
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
// unrelated one.
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

// A large file is left on the server, and refused by name, whether a folder is
// asked for or a few files. In the second case the answer is cut off at a limit;
// how much of it the kernel had taken by then can't be asserted.
func TestFetch_LargeFileIsNotDownloaded(t *testing.T) {
	big := incompressible(3 << 20)
	for name, c := range map[string]struct{ files, most int }{"folder by folder": {100, 200_000}, "one by one": {1, 8 << 20}} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"big.bin": big}
			for i := range c.files {
				files[fmt.Sprintf("f%d.yaml", i)] = fmt.Sprintf("a: %d\n", i)
			}
			r := newRepo(t, files)
			r.traffic()
			tree := mustFetch(t, fetch.NewStore(fetch.Limits{}), r.remote())
			if _, bytes := r.traffic(); bytes > c.most {
				t.Errorf("%d bytes were downloaded", bytes)
			}
			if _, _, err := tree.ReadFile("big.bin"); !errors.Is(err, gitsync.ErrUnusable) {
				t.Errorf("want a refusal, got %v", err)
			}
			if got := mustRead(t, tree, "f0.yaml"); got != "a: 0\n" {
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

// Links inside the repository lead to the real file; all others are errors for
// that path only.
func TestC124_Links(t *testing.T) {
	r := newRepo(t, map[string]string{"shared/values.yaml": "v: 1\n", "a/own.yaml": "a\n", "shared/deep/x.yaml": "x\n"})
	for name, target := range map[string]string{
		"a/values.yaml": "../shared/values.yaml", "a/dir": "../shared/deep", "a/dangling.yaml": "nowhere.yaml",
		"a/loop1.yaml": "loop2.yaml", "a/loop2.yaml": "loop1.yaml", "a/out.yaml": "../../etc/passwd", "a/abs.yaml": "/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(r.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.run(r.work, "update-index", "--add", "--cacheinfo", "160000,"+r.head()+",sub")
	if err := os.Mkdir(filepath.Join(r.work, "sub"), 0o755); err != nil { // a submodule that isn't checked out
		t.Fatal(err)
	}
	r.push("links", map[string]string{"lfs.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote(), "a")
	if got := mustRead(t, tree, "a/values.yaml"); got != "v: 1\n" {
		t.Errorf("got %q", got)
	}
	if entry, err := tree.Stat("a/values.yaml"); err != nil || entry.Path != "shared/values.yaml" || entry.Mode != fetch.ModeFile {
		t.Errorf("%+v, %v", entry, err)
	}
	if err := store.Load(testContext(t), r.remote(), tree, "a/dir", "lfs.yaml"); err != nil {
		t.Fatal(err)
	}
	if got := mustRead(t, tree, "a/dir/x.yaml"); got != "x\n" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{"a/dangling.yaml", "a/loop1.yaml", "a/out.yaml", "a/abs.yaml", "sub", "sub/x.yaml", "lfs.yaml", "a"} {
		if _, _, err := tree.ReadFile(name); !errors.Is(err, gitsync.ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := mustRead(t, tree, "a/own.yaml"); got != "a\n" {
		t.Errorf("got %q", got)
	}
	outcome, err := store.Push(testContext(t), r.remote(), tree, map[string][]byte{"a/values.yaml": []byte("v: 2\n")}, spec("through a link"))
	if err != nil || outcome.Kind != fetch.Pushed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := r.run(r.bare, "diff", "--raw", "--abbrev=4", "main~1", "main"); !strings.HasSuffix(got, "shared/values.yaml") || strings.Contains(got, "\n") {
		t.Errorf("the commit changes %q", got)
	}
}

// Four readers and a sync at once, under the race detector.
func TestTree_ConcurrentReaders(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 200 {
				if data, _, err := tree.ReadFile("a.yaml"); err != nil || string(data) != "v: 1\n" {
					t.Errorf("%q, %v", data, err)
				}
			}
		})
	}
	for i := range 3 {
		r.push("next", map[string]string{"a.yaml": fmt.Sprintf("v: %d\n", i+2)})
		mustFetch(t, store, r.remote())
	}
	wait.Wait()
}

// A server that gives no single object after it left them out is asked for everything.
func TestFetch_ServerThatRefusesSingleObjects(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	head := r.head()
	r.through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			if req.Method == http.MethodPost && strings.Contains(string(body), "want ") && !strings.Contains(string(body), head) {
				_, _ = w.Write([]byte("0045ERR upload-pack: not our ref 0123456789012345678901234567890123456789"[:69]))
				return
			}
			req.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(w, req)
		})
	})
	if got := mustRead(t, mustFetch(t, fetch.NewStore(fetch.Limits{}), r.remote()), "a.yaml"); got != "v: 1\n" {
		t.Errorf("got %q", got)
	}
}

// Limits stop what a hostile server sends.
func TestLimits(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": strings.Repeat("aaaaaaaa\n", 100_000), "b.bin": incompressible(100_000)})
	for name, limits := range map[string]fetch.Limits{
		"response": {Response: 50_000}, "inflated": {Inflated: 500_000}, "objects": {Objects: 1},
	} {
		r.run(r.bare, "config", "uploadpack.allowFilter", "false")
		if _, err := fetch.NewStore(limits).Fetch(testContext(t), r.remote()); !errors.Is(err, gitsync.ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
