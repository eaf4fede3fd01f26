package controller

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
)

// shop is the namespace of the world.
const shop = "shop"

// attemptOfAll is the attempt at which the versions of the world were rejected.
const attemptOfAll = 2

// fataler is what the world needs of a test.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a repository behind Git's own services, an API server in memory, and
// the Revert controllers that work on both. One thing happens at a time: what
// happens in the middle of a reconcile is run from within its calls, so that
// every run of a world is the same.
type world struct {
	fataler
	bare   string
	url    string
	api    client.WithWatch
	layout layout
	now    time.Time
	// stable and rejected are template hashes by Rollout.
	stable, rejected map[string]string
	// badCommit declared the rejected versions.
	badCommit string
	clock     int64
	// happened counts the faults.
	happened map[string]int

	controllers [2]*controllerInWorld
	// questions go to a git cat-file, and objects come from it.
	questions   io.Writer
	objects     *bufio.Reader
	stopReading func()
	// active is the controller whose calls are served now.
	active *controllerInWorld
}

// controllerInWorld is one process.
type controllerInWorld struct {
	*revertReconciler
	w      *world
	ctx    context.Context
	cancel context.CancelFunc
	// calls counts those of this reconcile, and fault is what happens at one of them.
	calls int
	fault fault
	// dead is true after a crash, cut while Git can't be reached.
	dead, cut bool
	// did is true once the fault has happened.
	did bool
}

// gitServer serves all worlds of a test, each below a path of its own.
type gitServer struct {
	*httptest.Server
	dir    string
	worlds map[string]*world
}

func newGitServer(t *testing.T) *gitServer {
	s := &gitServer{dir: t.TempDir(), worlds: map[string]*world{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		s.worlds[name].serve(rw, req, rest)
	}))
	t.Cleanup(s.Close)
	return s
}

// newWorld makes a repository whose head declares two Rollouts with rejected
// versions, and the objects that a rollout controller has left of that.
func (s *gitServer) newWorld(t fataler, arranged layout) *world {
	name := fmt.Sprintf("%d.git", len(s.worlds))
	w := &world{fataler: t, bare: filepath.Join(s.dir, name), url: s.URL + "/" + name, layout: arranged,
		now: time.Unix(1_700_000_000, 0), clock: 1_700_000_000, happened: map[string]int{}}
	s.worlds[name] = w
	if err := os.CopyFS(w.bare, os.DirFS(s.seed(t, arranged))); err != nil {
		t.Fatalf("%v", err)
	}
	w.badCommit = w.head()
	w.rejected = w.hashes(w.badCommit)
	first := w.history()[1].hash
	w.stable = w.hashes(first)
	w.makeAPI(first)
	w.restart(0)
	w.restart(1)
	return w
}

// seed is a repository to copy.
func (s *gitServer) seed(t fataler, arranged layout) string {
	bare := filepath.Join(s.dir, strings.ReplaceAll(fmt.Sprint(arranged), "/", "-"))
	if _, err := os.Stat(bare); err == nil {
		return bare
	}
	w := &world{fataler: t, bare: bare, clock: 1_600_000_000}
	w.git("", "init", "-q", "--bare", "--template=", "-b", "main", bare)
	for _, pair := range [][2]string{{"core.fsync", "none"}, {"gc.auto", "0"}, {"core.logAllRefUpdates", "always"}, {"uploadpack.allowFilter", "true"}} {
		w.git(bare, "config", pair[0], pair[1])
	}
	hook := "#!/bin/sh\n[ ! -e declined ] || { echo 'GH013: Repository rule violations found' >&2; exit 1; }\n"
	if err := errors.Join(os.Mkdir(filepath.Join(bare, "hooks"), 0o755), os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755)); err != nil {
		t.Fatalf("%v", err)
	}
	w.person("First", arranged.files("app:1"))
	w.person("Second", arranged.files("app:2"))
	return bare
}

func (w *world) git(dir string, args ...string) {
	w.Helper()
	if _, err := runGit(dir, nil, nil, args...); err != nil {
		w.Fatalf("git %v: %v", args, err)
	}
}

func runGit(dir string, in io.Reader, env []string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, in
	cmd.Env = append(append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, said.String())
	}
	return out, err
}

// commitOf is a commit in the world's repository.
type commitOf struct{ hash, parent, author, message string }

// read asks git cat-file for an object, by whatever names it.
func (w *world) read(name string) (hash string, data []byte) {
	w.Helper()
	if w.objects == nil {
		w.startReading()
	}
	if _, err := fmt.Fprintln(w.questions, name); err != nil {
		w.Fatalf("%v", err)
	}
	head, err := w.objects.ReadString('\n')
	if err != nil {
		w.Fatalf("%v", err)
	}
	var kind string
	var size int
	if _, err := fmt.Sscan(head, &hash, &kind, &size); err != nil {
		w.Fatalf("git cat-file says %q of %q", head, name)
	}
	data = make([]byte, size+1) // and a line break
	if _, err := io.ReadFull(w.objects, data); err != nil {
		w.Fatalf("%v", err)
	}
	return hash, data[:size]
}

// startReading starts one process that answers for all.
func (w *world) startReading() {
	w.Helper()
	cmd := exec.Command("git", "cat-file", "--batch")
	cmd.Dir = w.bare
	in, err := cmd.StdinPipe()
	if err != nil {
		w.Fatalf("%v", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatalf("%v", err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatalf("%v", err)
	}
	w.questions, w.objects = in, bufio.NewReader(out)
	w.stopReading = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// close ends what the world has started.
func (w *world) close() {
	if w.stopReading != nil {
		w.stopReading()
	}
	_ = os.RemoveAll(w.bare)
}

func (w *world) commit(name string) commitOf {
	w.Helper()
	hash, data := w.read(name)
	header, message, _ := strings.Cut(string(data), "\n\n")
	out := commitOf{hash: hash, message: message}
	for _, line := range strings.Split(header, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "parent":
			out.parent = value
		case "author":
			out.author, _, _ = strings.Cut(value, " <")
		}
	}
	return out
}

func (w *world) head() string { return w.commit("main").hash }

// history is what the head descends from, newest first: here nobody merges.
func (w *world) history() []commitOf {
	w.Helper()
	var out []commitOf
	for next := "main"; next != ""; next = out[len(out)-1].parent {
		out = append(out, w.commit(next))
	}
	return out
}

// files at a commit.
func (w *world) files(commit string) map[string]string {
	w.Helper()
	out := map[string]string{}
	_, tree := w.read(commit + ":apps")
	for len(tree) > 0 {
		entry, rest, _ := bytes.Cut(tree, []byte{0})
		_, name, _ := strings.Cut(string(entry), " ")
		const hashSize = 20
		_, data := w.read(fmt.Sprintf("%x", rest[:hashSize]))
		out["apps/"+name], tree = string(data), rest[hashSize:]
	}
	return out
}

// person pushes a commit; an empty text deletes the file.
func (w *world) person(subject string, files map[string]string) {
	w.Helper()
	w.clock++
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Dev <dev@example.com> %d +0000\ndata %d\n%s\n", w.clock, len(subject), subject)
	if subject != "First" {
		in.WriteString("from refs/heads/main^0\n")
	}
	for name, text := range files {
		if text == "" {
			fmt.Fprintf(&in, "D %s\n", name)
			continue
		}
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	in.WriteString("done\n")
	if _, err := runGit(w.bare, &in, nil, "fast-import", "--quiet", "--done"); err != nil {
		w.Fatalf("pushing %q: %v", subject, err)
	}
}

// serve is Git's smart HTTP, by Git's own services.
func (w *world) serve(rw http.ResponseWriter, req *http.Request, path string) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client has gone
	}
	c := w.active
	var out []byte
	if !c.call(path, func() { out, err = w.answer(req, path, body) }) || err != nil {
		rw.WriteHeader(http.StatusBadGateway)
		return
	}
	kind := "application/x-" + path + "-result"
	if path == "info/refs" {
		kind = "application/x-" + req.URL.Query().Get("service") + "-advertisement"
	}
	rw.Header().Set("Content-Type", kind)
	_, _ = rw.Write(out)
}

func (w *world) answer(req *http.Request, path string, body []byte) ([]byte, error) {
	name := strings.TrimPrefix(path, "git-")
	args := []string{"--stateless-rpc", w.bare}
	var start []byte
	if path == "info/refs" {
		service := req.URL.Query().Get("service")
		name = strings.TrimPrefix(service, "git-")
		args = []string{"--stateless-rpc", "--http-backend-info-refs", w.bare}
		line := "# service=" + service + "\n"
		start = fmt.Appendf(nil, "%04x%s0000", len(line)+4, line)
	}
	env := []string{"GIT_PROTOCOL=" + req.Header.Get("Git-Protocol")}
	out, err := runGit(w.bare, bytes.NewReader(body), env, append([]string{name}, args...)...)
	return append(start, out...), err
}

// makeAPI holds what the other controllers have written.
func (w *world) makeAPI(first string) {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)))
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "sync", UID: "sync"}}
	sync.Spec = v1alpha1.GitSyncSpec{URL: w.url, Path: "apps"}
	objects := []client.Object{sync}
	for _, name := range rolloutNames {
		source, err := json.Marshal(v1alpha1.Source{Hash: w.rejected[name], Revision: "main@sha1:" + w.badCommit, GitSync: shop + "/sync"})
		if err != nil {
			w.Fatalf("%v", err)
		}
		rollout := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID(name), Annotations: map[string]string{v1alpha1.SourceAnnotation: string(source)}}}
		rollout.Status.StableRS = w.stable[name]
		rollout.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: w.rejected[name], Attempt: attemptOfAll, Reason: v1alpha1.AbortFailed, Time: metav1.NewTime(w.now)}}
		var files []apply.File
		for file, text := range w.files(first) {
			if strings.Contains(text, "name: "+name+"\n") {
				files = append(files, apply.File{Path: file, Mode: "100644", Data: []byte(text)})
			}
		}
		packed, err := apply.PackSource(gitsync.Revision{Branch: "main", Hash: first}, files)
		if err != nil {
			w.Fatalf("%v", err)
		}
		raw, err := json.Marshal(packed)
		if err != nil {
			w.Fatalf("%v", err)
		}
		objects = append(objects, rollout, w.newRevert(name), &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: apply.SourceName(name, w.stable[name])}, Data: runtime.RawExtension{Raw: raw}})
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Revert{}, &v1alpha1.Rollout{}, &v1alpha1.GitSync{}).Build()
}

func (w *world) revertName(rollout string) string {
	return fmt.Sprintf("%s-%s-%d", rollout, w.rejected[rollout], attemptOfAll)
}

func (w *world) newRevert(rollout string) *v1alpha1.Revert {
	return &v1alpha1.Revert{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: w.revertName(rollout), UID: types.UID("revert-" + rollout), CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.RevertRequest{
			Rollout: v1alpha1.RevertRollout{Namespace: shop, Name: rollout, UID: rollout}, GitSync: v1alpha1.RevertGitSync{Namespace: shop, Name: "sync"},
			Rejected: w.rejected[rollout], Stable: w.stable[rollout], Attempt: attemptOfAll, Reason: v1alpha1.AbortFailed,
			RejectedRevision: "main@sha1:" + w.badCommit, RejectedSubject: "Second", AbortedAt: metav1.NewTime(w.now),
		},
	}
}

func (w *world) revert(rollout string) *v1alpha1.Revert {
	w.Helper()
	out := &v1alpha1.Revert{}
	if err := w.api.Get(context.Background(), types.NamespacedName{Namespace: shop, Name: w.revertName(rollout)}, out); err != nil {
		w.Fatalf("%v", err)
	}
	return out
}

// restart makes a new process that remembers nothing.
func (w *world) restart(i int) {
	c := &controllerInWorld{w: w}
	api := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return c.apiCall("get", func() error { return under.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, under client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return c.apiCall("list", func() error { return under.List(ctx, l, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, under client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return c.apiCall("status", func() error { return under.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	c.revertReconciler = &revertReconciler{
		own: api, events: &events.FakeRecorder{}, poll: func(types.NamespacedName) {},
		options: Options{Now: func() time.Time { return w.now }},
		git:     &repositories{secrets: api, stores: map[string]*sharedStore{}, users: map[types.NamespacedName]string{}},
	}
	w.controllers[i] = c
}

// errLost is a call whose answer was lost, or that was never made.
var errLost = errors.New("the connection was lost")

func (c *controllerInWorld) apiCall(what string, do func() error) error {
	var err error
	if !c.call(what, func() { err = do() }) {
		return errLost
	}
	return err
}

// reconcile runs one reconcile with a fault in it. A process that crashed is
// replaced by a new one.
func (w *world) reconcile(i int, rollout string, f fault) {
	c := w.controllers[i]
	before := w.active
	w.active = c
	defer func() { w.active = before }()
	c.ctx, c.cancel = context.WithTimeout(context.Background(), time.Minute)
	defer c.cancel()
	c.calls, c.fault, c.cut, c.did = 0, f, false, false
	_, _ = c.Reconcile(c.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: shop, Name: w.revertName(rollout)}})
	if c.did {
		w.happened[string(f.kind)]++
	}
	if c.dead {
		w.restart(i)
	}
}
