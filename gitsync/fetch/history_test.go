package fetch_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// subjects of messages.
func subjects(messages []fetch.Message) []string {
	var out []string
	for _, message := range messages {
		out = append(out, message.Subject())
	}
	return out
}

func mustSince(t *testing.T, s *fetch.Store, r fetch.Remote, tree *fetch.Tree, old string) []fetch.Message {
	t.Helper()
	messages, err := s.Since(testContext(t), r, tree, old)
	if err != nil {
		t.Fatal(err)
	}
	if messages[0].Commit != tree.Commit || messages[0].Text != tree.Message {
		t.Errorf("the first message is %+v, not that of %s", messages[0], tree.Commit)
	}
	return messages
}

// servers are those that Since must manage with.
func servers(t *testing.T, test func(t *testing.T, r *repo, remote fetch.Remote)) {
	for name, configure := range map[string]func(*repo) fetch.Remote{
		"http": func(r *repo) fetch.Remote { return r.remote() },
		"file": func(r *repo) fetch.Remote { return fetch.Remote{URL: "file://" + r.bare, Branch: "main"} },
		"no filter": func(r *repo) fetch.Remote {
			r.run(r.bare, "config", "uploadpack.allowFilter", "false")
			return r.remote()
		},
		"blob:none alone": func(r *repo) fetch.Remote {
			r.run(r.bare, "config", "uploadpackfilter.allow", "false")
			r.run(r.bare, "config", "uploadpackfilter.blob:none.allow", "true")
			return r.remote()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
			test(t, r, configure(r))
		})
	}
}

func TestSince_IsWhatOldDoesNotReach(t *testing.T) {
	servers(t, func(t *testing.T, r *repo, remote fetch.Remote) {
		base := r.head()
		r.push("older", map[string]string{"a.yaml": "v: 2\n"})
		old := r.push("old", map[string]string{"a.yaml": "v: 3\n"})
		// A side branch that starts before old and holds a merge of its own.
		r.run(r.work, "checkout", "-q", "-b", "side", base)
		for _, subject := range []string{"side 1", "side 2"} {
			r.run(r.work, "commit", "-q", "--allow-empty", "-m", subject)
		}
		r.run(r.work, "checkout", "-q", "-b", "main2", old)
		r.run(r.work, "commit", "-q", "--allow-empty", "-m", "between\n\nPushback-Retry: abc")
		r.run(r.work, "merge", "-q", "--no-ff", "-m", "merge", "side")
		r.push("head", map[string]string{"a.yaml": "v: 4\n"})

		store := fetch.NewStore(fetch.Limits{})
		tree := mustFetch(t, store, remote)
		messages := mustSince(t, store, remote, tree, old)
		got := subjects(messages)
		sort.Strings(got)
		if diff := cmp.Diff([]string{"between", "head", "merge", "side 1", "side 2"}, got); diff != "" {
			t.Error(diff)
		}
		if !slices.ContainsFunc(messages, func(m fetch.Message) bool { return m.Text == "between\n\nPushback-Retry: abc\n" }) {
			t.Error("the message is not whole")
		}
		if got := mustRead(t, tree, "a.yaml"); got != "v: 4\n" {
			t.Errorf("the tree changed: %q", got)
		}
		r.push("later", map[string]string{"a.yaml": "v: 5\n"})
		if got := mustRead(t, mustFetch(t, store, remote), "a.yaml"); got != "v: 5\n" {
			t.Errorf("the store lost its way: %q", got)
		}
	})
}

// A merge whose first parent is old brings commits in all the same.
func TestSince_MergeOntoOld(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	base := r.head()
	old := r.push("old", map[string]string{"a.yaml": "v: 2\n"})
	r.run(r.work, "checkout", "-q", "-b", "side", base)
	r.run(r.work, "commit", "-q", "--allow-empty", "-m", "side")
	r.run(r.work, "checkout", "-q", "main")
	r.run(r.work, "merge", "-q", "--no-ff", "-m", "merge", "side")
	r.run(r.work, "push", "-q", "origin", "HEAD:main")
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	if diff := cmp.Diff([]string{"merge", "side"}, subjects(mustSince(t, store, r.remote(), tree, old))); diff != "" || tree.Parent != old {
		t.Error(diff)
	}
}

func TestSince_AnUnknownOldLeavesTheHeadAlone(t *testing.T) {
	servers(t, func(t *testing.T, r *repo, remote fetch.Remote) {
		base := r.head()
		r.push("two", map[string]string{"a.yaml": "v: 2\n"})
		replaced := r.push("three", map[string]string{"a.yaml": "v: 3\n"})
		for name, c := range map[string]struct {
			reset, old string
		}{
			"rewritten":                   {base, replaced},
			"lost":                        {base, strings.Repeat("0a", 20)},
			"first sync":                  {base, ""},
			"something that is no commit": {base, r.run(r.bare, "rev-parse", base+"^{tree}")},
		} {
			t.Run(name, func(t *testing.T) {
				r.run(r.work, "reset", "-q", "--hard", c.reset)
				r.run(r.work, "commit", "-q", "--allow-empty", "-m", "other")
				r.run(r.work, "commit", "-q", "--allow-empty", "-m", "head")
				r.run(r.work, "push", "-q", "-f", "origin", "HEAD:main")
				store := fetch.NewStore(fetch.Limits{})
				if diff := cmp.Diff([]string{"head"}, subjects(mustSince(t, store, remote, mustFetch(t, store, remote), c.old))); diff != "" {
					t.Error(diff)
				}
			})
		}
		r.run(r.work, "reset", "-q", "--hard", base)
		r.run(r.work, "push", "-q", "-f", "origin", "HEAD:main")
		store := fetch.NewStore(fetch.Limits{})
		if diff := cmp.Diff([]string{"first"}, subjects(mustSince(t, store, remote, mustFetch(t, store, remote), replaced))); diff != "" {
			t.Errorf("a branch that went back: %s", diff)
		}
	})
}

func TestSince_IsBounded(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	far := r.head()
	var script strings.Builder
	for i := range fetch.MaxHistory {
		fmt.Fprintf(&script, "commit refs/heads/many\ncommitter a <a@example.com> %d +0000\ndata 2\nc\n", 1_700_000_000+i)
		if i == 0 {
			fmt.Fprintf(&script, "from %s\n", far)
		}
		script.WriteString("\n")
	}
	r.feed("fast-import", script.String())
	r.run(r.work, "fetch", "-q", "origin", "many")
	r.run(r.work, "reset", "-q", "--hard", "FETCH_HEAD")
	near := r.run(r.work, "rev-parse", fmt.Sprintf("HEAD~%d", fetch.MaxHistory-1))
	r.push("head", map[string]string{"a.yaml": "v: 2\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	r.traffic()
	if got := mustSince(t, store, r.remote(), tree, near); len(got) != fetch.MaxHistory {
		t.Errorf("want %d messages, got %d", fetch.MaxHistory, len(got))
	}
	if requests, bytes := r.traffic(); requests != 1 || bytes > 200*fetch.MaxHistory {
		t.Errorf("they took %d requests and %d bytes", requests, bytes)
	}
	if got := mustSince(t, store, r.remote(), tree, far); len(got) != 1 {
		t.Errorf("one too many: want the head's message alone, got %d", len(got))
	}
}

func TestSince_CostsNothingForOneCommit(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	old := r.head()
	r.push("next", map[string]string{"a.yaml": "v: 2\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	r.traffic()
	for _, known := range []string{old, tree.Commit, ""} {
		if got := mustSince(t, store, r.remote(), tree, known); len(got) != 1 {
			t.Errorf("since %q: %v", known, subjects(got))
		}
	}
	if requests, _ := r.traffic(); requests != 0 {
		t.Errorf("it took %d requests", requests)
	}
}

// A server that ignores what it is told of sends all there is; old is found in it.
func TestSince_ServerThatSendsTooMuch(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	old := r.push("old", map[string]string{"a.yaml": "v: 2\n"})
	r.push("between", map[string]string{"a.yaml": "v: 3\n"})
	r.push("head", map[string]string{"a.yaml": "v: 4\n"})
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, r.remote())
	r.through(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			text := strings.Replace(string(body), "0032have "+old+"\n", "", 1)
			if text == string(body) {
				t.Errorf("nothing to leave out in %q", text)
			}
			req.Body, req.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
			next.ServeHTTP(w, req)
		})
	})
	if diff := cmp.Diff([]string{"head", "between"}, subjects(mustSince(t, store, r.remote(), tree, old))); diff != "" {
		t.Error(diff)
	}
}
