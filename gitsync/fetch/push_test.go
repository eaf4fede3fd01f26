package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// A commit holds the edited blob and nothing else; modes and links stay.
func TestC32_CommitIsParentPlusEdits(t *testing.T) {
	r := newRepo(t, map[string]string{"clusters/a/web.yaml": "v: 2\n", "clusters/b/web.yaml": "v: 2\n", "run.sh": "#!/bin/sh\n"})
	if err := os.Symlink("../a/web.yaml", filepath.Join(r.work, "clusters/b/link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.work, "clusters/a/web.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.push("modes", nil)
	for _, url := range []string{r.URL, "file://" + r.bare} {
		remote := fetch.Remote{URL: url, Branch: "main"}
		store := fetch.NewStore(fetch.Limits{})
		tree := mustFetch(t, store, remote, "clusters/a")
		data := mustRead(t, tree, "clusters/a/web.yaml")
		// The link leads to the real file, which is what is written (C124).
		entry, err := tree.Stat("clusters/a/web.yaml")
		if err != nil || entry.Mode != fetch.ModeExecutable {
			t.Fatalf("%+v, %v", entry, err)
		}
		outcome, err := store.Push(testContext(t), remote, tree, map[string][]byte{"clusters/a/web.yaml": []byte(data + "# more\n")}, spec("edit"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fetch.PushOutcome{Kind: fetch.Pushed, Commit: r.head(), Head: r.head()}, outcome); diff != "" {
			t.Error(diff)
		}
		if got := r.run(r.bare, "diff", "--raw", "--abbrev=4", "main~1", "main"); !strings.HasPrefix(got, ":100755 100755") || strings.Count(got, "\n") != 0 {
			t.Errorf("the commit changes\n%s", got)
		}
		r.run(r.bare, "fsck", "--strict")
		if got := r.run(r.bare, "show", "-s", "--format=%an|%ae|%at|%ct|%B", "main"); got != "Pushback|pushback@example.com|1700000000|1700000000|edit" {
			t.Errorf("commit %q", got)
		}
	}
}

// An edit that changes no byte makes no commit, however often.
func TestC44_NoChangeNoCommit(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	before := r.head()
	r.traffic()
	for range 60 {
		outcome, err := store.Push(testContext(t), r.remote(), tree, map[string][]byte{"a.yaml": []byte("v: 1\n")}, spec("nothing"))
		if err != nil || outcome.Kind != fetch.PushUnchanged || outcome.Head != before {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	if requests, _ := r.traffic(); requests != 0 || r.head() != before {
		t.Errorf("%d requests, head moved: %v", requests, r.head() != before)
	}
}

// Whatever words a server uses, a branch that moved is a race: the edit is made
// again on the new head.
func TestC11_RaceIsSeenByTheRef(t *testing.T) {
	for name, during := range map[string]bool{"before the push": false, "between advertisement and update": true} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a.yaml": "v: 1\n", "b.yaml": "v: 1\n"})
			store := fetch.NewStore(fetch.Limits{})
			tree := mustFetch(t, store, r.remote())
			var once sync.Once
			theirs := func() { once.Do(func() { r.push("theirs", map[string]string{"b.yaml": "v: 2\n"}) }) }
			if during {
				r.through(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						if strings.HasSuffix(req.URL.Path, "/git-receive-pack") {
							theirs()
						}
						next.ServeHTTP(w, req)
					})
				})
			} else {
				theirs()
			}
			edit := map[string][]byte{"a.yaml": []byte("v: 0\n")}
			outcome, err := store.Push(testContext(t), r.remote(), tree, edit, spec("ours"))
			if err != nil || outcome.Kind != fetch.Raced || outcome.Head != r.head() {
				t.Fatalf("want a race, got %+v, %v", outcome, err)
			}
			tree = mustFetch(t, store, r.remote())
			outcome, err = store.Push(testContext(t), r.remote(), tree, edit, spec("ours"))
			if err != nil || outcome.Kind != fetch.Pushed {
				t.Fatalf("%+v, %v", outcome, err)
			}
			if got := r.run(r.bare, "log", "--format=%s", "main"); got != "ours\ntheirs\nfirst" {
				t.Errorf("history %q", got)
			}
			if got := r.run(r.bare, "show", "main:a.yaml") + r.run(r.bare, "show", "main:b.yaml"); got != "v: 0v: 2" {
				t.Errorf("content %q", got)
			}
		})
	}
}

// A refusal is never a success, and the server's own words are kept.
func TestC31_RefusedPushIsAnErrorWithTheServersWords(t *testing.T) {
	for name, c := range map[string]struct {
		hook, script string
		class        gitsync.Class
		words        string
	}{
		"protected branch": {"pre-receive", "echo 'error: GH013: Repository rule violations found for refs/heads/main.'; echo '- Changes must be made through a pull request.'; exit 1", gitsync.ErrPolicy, "Changes must be made through a pull request"},
		"signatures":       {"pre-receive", "echo 'GH013: Commits must have verified signatures.' >&2; exit 1", gitsync.ErrSignature, "verified signatures"},
		"no reason":        {"update", "exit 1", gitsync.ErrPolicy, "hook declined"},
	} {
		for _, scheme := range []string{"http", "file"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
				r.hook(c.hook, c.script)
				remote := r.remote()
				if scheme == "file" {
					remote.URL = "file://" + r.bare
				}
				store := fetch.NewStore(fetch.Limits{})
				tree := mustFetch(t, store, remote)
				outcome, err := store.Push(testContext(t), remote, tree, map[string][]byte{"a.yaml": []byte("v: 0\n")}, spec("ours"))
				var failed *gitsync.Error
				if !errors.As(err, &failed) || failed.Class != c.class || !strings.Contains(failed.Words, c.words) {
					t.Fatalf("got %+v, %v", outcome, err)
				}
				if r.head() != tree.Commit {
					t.Error("the branch moved")
				}
			})
		}
	}
}

// What a proxy answers is not believed: the branch is read again.
func TestPush_AnswersThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(next http.Handler) http.Handler
		kind fetch.PushKind
	}{
		"200 and no body, nothing done": {func(http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		}, ""},
		"done, and the answer cut off": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				next.ServeHTTP(&muted{header: http.Header{}}, req)
				w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("0030"))
			})
		}, fetch.Pushed},
		"done, and 502": {func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				next.ServeHTTP(&muted{header: http.Header{}}, req)
				w.WriteHeader(http.StatusBadGateway)
			})
		}, fetch.Pushed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
			store := fetch.NewStore(fetch.Limits{})
			tree := mustFetch(t, store, r.remote())
			r.through(func(next http.Handler) http.Handler {
				lying := c.wrap(next)
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if strings.HasSuffix(req.URL.Path, "/git-receive-pack") {
						lying.ServeHTTP(w, req)
						return
					}
					next.ServeHTTP(w, req)
				})
			})
			outcome, err := store.Push(testContext(t), r.remote(), tree, map[string][]byte{"a.yaml": []byte("v: 0\n")}, spec("ours"))
			if c.kind == "" {
				if !errors.Is(err, gitsync.ErrTransient) || r.head() != tree.Commit {
					t.Fatalf("got %+v, %v", outcome, err)
				}
				return
			}
			if err != nil || outcome.Kind != c.kind || outcome.Commit != r.head() {
				t.Fatalf("got %+v, %v", outcome, err)
			}
		})
	}
}

// muted swallows an answer.
type muted struct{ header http.Header }

func (m *muted) Header() http.Header         { return m.header }
func (m *muted) Write(p []byte) (int, error) { return len(p), nil }
func (m *muted) WriteHeader(int)             {}

// Two controllers make the same commit; the loser finds it there.
func TestPush_TwoReplicasMakeOneCommit(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 2\n"})
	a, b := fetch.NewStore(fetch.Limits{}), fetch.NewStore(fetch.Limits{})
	one, two := mustFetch(t, a, r.remote()), mustFetch(t, b, r.remote())
	edit := map[string][]byte{"a.yaml": []byte("v: 1\n")}
	first, err := a.Push(testContext(t), r.remote(), one, edit, spec("revert"))
	if err != nil || first.Kind != fetch.Pushed {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := b.Push(testContext(t), r.remote(), two, edit, spec("revert"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if got := r.run(r.bare, "rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits", got)
	}
}

func TestPush_RefusesWhatIsNoEdit(t *testing.T) {
	r := newRepo(t, map[string]string{"d/a.yaml": "v: 1\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	good := spec("x")
	bad := spec("x")
	bad.Author.Name = "a <b>"
	for name, c := range map[string]struct {
		edits map[string][]byte
		spec  fetch.CommitSpec
	}{
		"a new file": {map[string][]byte{"new.yaml": nil}, good},
		"a folder":   {map[string][]byte{"d": nil}, good},
		"an author":  {map[string][]byte{"d/a.yaml": nil}, bad},
	} {
		if _, err := store.Push(testContext(t), r.remote(), tree, c.edits, c.spec); !errors.Is(err, gitsync.ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Many writers on one branch: everybody's change is there in the end, each in a
// commit of its own.
func TestPush_ManyWriters(t *testing.T) {
	files := map[string]string{}
	const writers = 5
	for i := range writers {
		files[fmt.Sprintf("%d.yaml", i)] = "v: 2\n"
	}
	r := newRepo(t, files)
	remote := fetch.Remote{URL: "file://" + r.bare, Branch: "main"}
	var wait sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wait.Go(func() {
			store := fetch.NewStore(fetch.Limits{})
			for range 3 * writers {
				tree, err := store.Fetch(context.Background(), remote)
				if err != nil {
					errs[i] = err
					return
				}
				outcome, err := store.Push(context.Background(), remote, tree,
					map[string][]byte{fmt.Sprintf("%d.yaml", i): []byte("v: 1\n")}, spec(fmt.Sprint("revert ", i)))
				if err == nil && outcome.Kind != fetch.Raced || err != nil && !errors.Is(err, gitsync.ErrRace) {
					errs[i] = err
					return
				}
			}
			errs[i] = errors.New("lost every race")
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := r.run(r.bare, "rev-list", "--count", "--no-merges", "main"); got != fmt.Sprint(writers+1) {
		t.Errorf("%s commits", got)
	}
	if got := r.run(r.bare, "grep", "-c", "v: 1", "main"); strings.Count(got, "\n") != writers-1 {
		t.Errorf("content\n%s", got)
	}
}

// A silent SSH server and a stalled pack end with the context, and leave nothing
// behind.
func TestContextBoundsEverything(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
		}
	}()
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	released := make(chan struct{})
	defer close(released)
	r.through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = w.Write([]byte("0"))
			w.(http.Flusher).Flush()
			select {
			case <-req.Context().Done():
			case <-released:
			}
		})
	})
	for name, remote := range map[string]fetch.Remote{
		"ssh":  {URL: "ssh://git@" + listener.Addr().String() + "/r.git", Branch: "main", Auth: sshAuth(t, listener.Addr().String(), nil)},
		"http": r.remote(),
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := fetch.NewStore(fetch.Limits{}).Fetch(ctx, remote)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, gitsync.ErrTransient) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			waitFor(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before+3 })
		})
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		case <-tick.C:
		}
	}
}
