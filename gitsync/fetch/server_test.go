package fetch_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// repo is a bare repository behind git's own HTTP server, and a clone to work in.
type repo struct {
	t    testing.TB
	bare string
	work string
	URL  string

	mu sync.Mutex
	// wrap changes how requests are served; nil leaves them to git.
	wrap func(next http.Handler) http.Handler
	// in and out count bytes and requests since reset.
	requests int
	out      int
}

// newRepo makes a repository with one commit on main that holds the files.
func newRepo(t testing.TB, files map[string]string) *repo {
	t.Helper()
	r := &repo{t: t, bare: filepath.Join(t.TempDir(), "r.git"), work: filepath.Join(t.TempDir(), "work")}
	r.run("", "init", "-q", "--bare", "-b", "main", r.bare)
	for _, pair := range [][2]string{{"http.receivepack", "true"}, {"uploadpack.allowFilter", "true"}, {"core.fsync", "none"}, {"gc.auto", "0"}} {
		r.run(r.bare, "config", pair[0], pair[1])
	}
	r.run("", "init", "-q", "-b", "main", r.work)
	r.run(r.work, "remote", "add", "origin", r.bare)
	server := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(server.Close)
	r.URL = server.URL + "/r.git"
	if files != nil {
		r.push("first", files)
	}
	return r
}

func (r *repo) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	wrap := r.wrap
	r.requests++
	r.mu.Unlock()
	backend := &cgi.Handler{
		Path: gitExec(r.t), Args: []string{"http-backend"}, Dir: r.bare,
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.bare), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=tester",
			"GIT_PROTOCOL=" + req.Header.Get("Git-Protocol")},
		Stderr: discard{},
	}
	var handler http.Handler = backend
	if wrap != nil {
		handler = wrap(backend)
	}
	handler.ServeHTTP(&counted{ResponseWriter: w, r: r}, req)
}

// counted counts the bytes of answers.
type counted struct {
	http.ResponseWriter
	r *repo
}

func (c *counted) Write(p []byte) (int, error) {
	c.r.mu.Lock()
	c.r.out += len(p)
	c.r.mu.Unlock()
	return c.ResponseWriter.Write(p)
}

func (c *counted) Flush() {
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func gitExec(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// through sets how requests are served from now on.
func (r *repo) through(wrap func(next http.Handler) http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrap = wrap
}

// traffic returns and resets the counters.
func (r *repo) traffic() (requests, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests, bytes = r.requests, r.out
	r.requests, r.out = 0, 0
	return requests, bytes
}

// run runs git and returns what it prints.
func (r *repo) run(dir string, args ...string) string {
	r.t.Helper()
	out, err := r.try(dir, args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (r *repo) try(dir string, args ...string) (string, error) {
	return r.git(dir, "", args...)
}

// feed runs a command on the server's repository with an input.
func (r *repo) feed(command, input string) {
	r.t.Helper()
	if out, err := r.git(r.bare, input, command, "--quiet"); err != nil {
		r.t.Fatalf("git %s: %v\n%s", command, err, out)
	}
}

func (r *repo) git(dir, input string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.fsync", "GIT_CONFIG_VALUE_0=none", "GIT_CONFIG_KEY_1=gc.auto", "GIT_CONFIG_VALUE_1=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// push writes files into the clone, commits and pushes; it returns the commit.
// An empty text deletes the file.
func (r *repo) push(message string, files map[string]string) string {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.work, name)
		if text == "" {
			r.run(r.work, "rm", "-q", name)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.run(r.work, "add", "-A")
	r.run(r.work, "commit", "-q", "--allow-empty", "-m", message)
	r.run(r.work, "push", "-q", "origin", "HEAD:main")
	return r.run(r.work, "rev-parse", "HEAD")
}

// head of main on the server.
func (r *repo) head() string { return r.run(r.bare, "rev-parse", "main") }

// remote is main over HTTP.
func (r *repo) remote() fetch.Remote { return fetch.Remote{URL: r.URL, Branch: "main"} }

// hook installs a hook in the bare repository.
func (r *repo) hook(name, script string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.bare, "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mustFetch(t testing.TB, s *fetch.Store, r fetch.Remote, prefixes ...string) *fetch.Tree {
	t.Helper()
	tree, err := s.Fetch(testContext(t), r, prefixes...)
	if err != nil {
		t.Fatalf("fetch: %v", err)
	}
	return tree
}

func mustRead(t testing.TB, tree *fetch.Tree, name string) string {
	t.Helper()
	data, _, err := tree.ReadFile(name)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return string(data)
}

func spec(message string) fetch.CommitSpec {
	who := fetch.Identity{Name: "Pushback", Email: "pushback@example.com"}
	return fetch.CommitSpec{Author: who, Committer: who, When: time.Unix(1_700_000_000, 0), Message: message}
}

// incompressible text of n bytes, the same every time.
func incompressible(n int) string {
	source := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(source.Uint32())
	}
	return string(out)
}
