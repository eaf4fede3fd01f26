package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/templatehash"
)

// rolloutNames of every world.
var rolloutNames = []string{"web", "api"}

// layout is where the documents stand: Rollout -> file. Two may share one.
type layout map[string]string

var layouts = []layout{
	{"web": "apps/web.yaml", "api": "apps/api.yaml"},
	{"web": "apps/all.yaml", "api": "apps/all.yaml"},
}

func (l layout) files(image string) map[string]string {
	out := map[string]string{"apps/other.yaml": configMap("other", "1")}
	for _, name := range rolloutNames {
		if out[l[name]] != "" {
			out[l[name]] += "---\n"
		}
		out[l[name]] += rollout(name, image)
	}
	return out
}

// fault is something that happens at one call of a reconcile.
type fault struct {
	// at is the number of the call from 0, or the first one with a name.
	at   int
	name string
	kind faultKind
	// meanwhile is run for kind between.
	meanwhile func()
}

type faultKind string

const (
	// noFault happens never.
	noFault faultKind = ""
	// between: something else happens before the call.
	between faultKind = "between"
	// crashBefore and crashAfter end the process, before the call or when it was carried out.
	crashBefore faultKind = "crash before"
	crashAfter  faultKind = "crash after"
	// lost: the call is carried out, and the answer lost.
	lost faultKind = "lost"
	// cutOff is the same, and Git can't be reached any more.
	cutOff faultKind = "cut off"
)

// call serves one call of a controller, with what the fault does to it. It is
// true when the answer gets through.
func (c *controllerInWorld) call(name string, do func()) bool {
	number := c.calls
	c.calls++
	ofGit := strings.Contains(name, "-pack") || name == "info/refs"
	if c.dead || c.cut && ofGit {
		return false
	}
	f := c.fault
	if c.did || f.kind == noFault || (f.name == "" && f.at != number) || (f.name != "" && f.name != name) {
		do()
		return true
	}
	c.did = true
	switch f.kind {
	case between:
		f.meanwhile()
		do()
		return true
	case crashBefore:
		c.dead = true
		c.cancel()
	case crashAfter:
		do()
		c.dead = true
		c.cancel()
	case lost:
		do()
	case cutOff:
		do()
		c.cut = true
	}
	return false
}

// documents are the objects at a commit by kind and name; nil when a file can't be parsed.
func (w *world) documents(commit string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, text := range w.files(commit) {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
		for {
			var object map[string]any
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil
			}
			if object != nil {
				out[fmt.Sprint(object["kind"], "/", object["metadata"].(map[string]any)["name"])] = object
			}
		}
	}
	return out
}

// broken stands for the hash of what can't be parsed.
const broken = "broken"

// hashes of the Rollouts' templates at a commit; none for one that is not there.
func (w *world) hashes(commit string) map[string]string {
	w.Helper()
	documents := w.documents(commit)
	out := map[string]string{}
	for _, name := range rolloutNames {
		if documents == nil {
			out[name] = broken
			continue
		}
		object, found := documents["Rollout/"+name]
		if !found {
			continue
		}
		text, err := json.Marshal(object["spec"].(map[string]any)["template"])
		if err != nil {
			w.Fatalf("%v", err)
		}
		if out[name], err = templatehash.Hash(templatehash.Version, text); err != nil {
			w.Fatalf("%v", err)
		}
	}
	return out
}

// deed is what somebody does to the repository.
type deed string

const (
	editNeighbour deed = "edits the same document"
	editOther     deed = "edits another file"
	restyle       deed = "writes the image otherwise"
	pushThird     deed = "declares a third version"
	pushGood      deed = "reverts by hand"
	pushBad       deed = "declares the rejected version"
	remove        deed = "removes the Rollout"
	breakFile     deed = "breaks a file"
	decline       deed = "switches a hook on or off"
	ask           deed = "deletes the Revert, and it is asked for again"
	retry         deed = "lifts the hold"
)

var image = regexp.MustCompile(`image: ['"]?app:\d+['"]?`)

// do carries a deed out.
func (w *world) do(what deed, name string) {
	w.Helper()
	file := w.layout[name]
	files := w.files(w.head())
	text := files[file]
	// The documents of a shared file are told apart by their first line.
	begin := strings.Index(text, "# the "+name+" service\n")
	end := len(text)
	if next := strings.Index(text[max(begin, 0):], "---\n"); begin >= 0 && next >= 0 {
		end = begin + next
	}
	push := func(document string) {
		if begin < 0 { // it was removed
			w.person(fmt.Sprint(what), map[string]string{file: strings.TrimPrefix(text+"---\n"+document, "---\n")})
			return
		}
		whole := text[:begin] + document + text[end:]
		if document == "" {
			whole = strings.TrimPrefix(whole, "---\n")
		}
		w.person(fmt.Sprint(what), map[string]string{file: whole})
	}
	document := rollout(name, "app:1")
	if begin >= 0 {
		document = text[begin:end]
	}
	switch what {
	case editNeighbour:
		w.clock++
		push(regexp.MustCompile(`replicas: \d+`).ReplaceAllString(document, fmt.Sprintf("replicas: %d", w.clock%1000)))
	case editOther:
		w.person(fmt.Sprint(what), map[string]string{"apps/other.yaml": configMap("other", fmt.Sprint(w.clock))})
	case restyle:
		push(image.ReplaceAllStringFunc(document, func(was string) string {
			return `image: "app:` + strings.Trim(was[len("image: ")+1:], `'"ap:`) + `"`
		}))
	case pushThird:
		push(image.ReplaceAllString(document, "image: app:3"))
	case pushGood:
		push(image.ReplaceAllString(document, "image: app:1"))
	case pushBad:
		push(image.ReplaceAllString(document, "image: 'app:2'"))
	case remove:
		push("")
	case breakFile:
		if fixed, found := strings.CutSuffix(files["apps/other.yaml"], "]\n"); found {
			w.person("fixes a file", map[string]string{"apps/other.yaml": fixed})
			return
		}
		w.person(fmt.Sprint(what), map[string]string{"apps/other.yaml": files["apps/other.yaml"] + "]\n"})
	case decline:
		w.decline(!w.declines())
	case ask:
		w.askAgain(name)
	case retry:
		w.liftHold(name)
	}
}

func (w *world) declines() bool {
	_, err := os.Stat(filepath.Join(w.bare, "declined"))
	return err == nil
}

func (w *world) decline(on bool) {
	var err error
	switch at := filepath.Join(w.bare, "declined"); {
	case on:
		err = os.WriteFile(at, nil, 0o644)
	case w.declines():
		err = os.Remove(at)
	}
	if err != nil {
		w.Fatalf("%v", err)
	}
}

// askAgain is somebody's delete of a Revert that isn't worked off, after which
// the Rollout's controller makes it again.
func (w *world) askAgain(name string) {
	live := w.revert(name)
	if phase := live.Status.Phase; phase != "" && phase != v1alpha1.RevertPending && phase != v1alpha1.RevertBlocked {
		return
	}
	ctx := context.Background()
	if err := errors.Join(w.api.Delete(ctx, live), w.api.Create(ctx, w.newRevert(name))); err != nil {
		w.Fatalf("%v", err)
	}
}

func (w *world) liftHold(name string) {
	live := &v1alpha1.Rollout{}
	ctx := context.Background()
	if err := w.api.Get(ctx, types.NamespacedName{Namespace: shop, Name: name}, live); err != nil {
		w.Fatalf("%v", err)
	}
	before := live.DeepCopy()
	live.Status.Rejected[0].Cleared = true
	if err := w.api.Status().Patch(ctx, live, client.MergeFrom(before)); err != nil {
		w.Fatalf("%v", err)
	}
}

// ours are the commits of a Rollout's Revert, newest first.
func (w *world) ours(name string) []string {
	w.Helper()
	var out []string
	for _, commit := range w.history() {
		if slices.Contains(trailers(commit.message, v1alpha1.RolloutTrailer), shop+"/"+name) {
			out = append(out, commit.hash)
		}
	}
	return out
}

// Law 13 and the parts of law 12 that hang on time: whatever people push, however
// the server answers, whenever a process dies, and though two work at the same
// Revert, history is only added to, a version is reverted once, nothing else is
// touched, and when the trouble is over Git doesn't claim the rejected version
// but for a reason that is said.
func TestLaw13_RevertsInAnyOrderOfEvents(t *testing.T) {
	const most = 40 * time.Second // then the rest of the cases pass unseen
	server := newGitServer(t)
	begin, seen, failing := time.Now(), map[string]int{}, false
	rapid.Check(t, func(rt *rapid.T) {
		if time.Since(begin) > most && !failing { // a failure is made smaller all the same
			return
		}
		defer func() { failing = failing || rt.Failed() }()
		w := server.newWorld(rt, rapid.SampledFrom(layouts).Draw(rt, "layout"))
		defer w.close()
		retried := map[string]int{}
		for range rapid.IntRange(1, 6).Draw(rt, "moves") {
			name := rapid.SampledFrom(rolloutNames).Draw(rt, "rollout")
			if rapid.IntRange(0, 2).Draw(rt, "who") == 0 {
				what := rapid.SampledFrom(append(slices.Clone(deeds), retry)).Draw(rt, "deed")
				w.do(what, name)
				if _, before := retried[name]; what == retry && !before {
					retried[name] = len(w.ours(name))
				}
				continue
			}
			i := rapid.IntRange(0, 1).Draw(rt, "controller")
			w.reconcile(i, name, w.drawFault(rt, i, name))
		}
		w.settle()
		w.checkHistory()
		for _, name := range rolloutNames {
			count, wasRetried := retried[name]
			if ours := w.ours(name); wasRetried && len(ours) > count {
				rt.Fatalf("%s was reverted after a person had lifted the hold: %v", name, ours)
			}
			seen[w.check(name, wasRetried)]++
		}
		for kind, count := range w.happened {
			seen[kind] += count
		}
		seen["worlds"]++
	})
	t.Logf("%v in %s", seen, time.Since(begin).Round(time.Second))
	if seen["worlds"] < 5 {
		t.Errorf("only %d worlds in %s: the test says nothing", seen["worlds"], most)
	}
}

// deeds that may happen at any time.
var deeds = []deed{editNeighbour, editOther, restyle, pushThird, pushGood, pushBad, pushBad, remove, breakFile, decline, ask}

func (w *world) drawFault(rt *rapid.T, controller int, name string) fault {
	f := fault{kind: rapid.SampledFrom([]faultKind{noFault, between, between, crashBefore, crashAfter, lost, cutOff}).Draw(rt, "fault")}
	if f.kind == noFault {
		return f
	}
	f.name = rapid.SampledFrom([]string{"git-receive-pack", "git-receive-pack", "status", ""}).Draw(rt, "at the call")
	if f.name == "" {
		f.at = rapid.IntRange(0, 25).Draw(rt, "number")
	}
	if f.kind != between {
		return f
	}
	other := rapid.SampledFrom(rolloutNames).Draw(rt, "meanwhile")
	if rapid.Bool().Draw(rt, "the other controller") {
		f.meanwhile = func() { w.reconcile(1-controller, other, fault{}) }
		return f
	}
	what := rapid.SliceOfN(rapid.SampledFrom(deeds), 1, 2).Draw(rt, "deeds")
	f.meanwhile = func() {
		for _, one := range what {
			w.do(one, other)
		}
	}
	return f
}

// settle ends the trouble and lets both controllers work until nothing changes.
func (w *world) settle() {
	w.decline(false)
	for range 6 {
		w.now = w.now.Add(2 * blockedRetry)
		for i := range w.controllers {
			for _, name := range rolloutNames {
				w.reconcile(i, name, fault{})
			}
		}
		if !slices.ContainsFunc(rolloutNames, func(name string) bool { return w.unsettled(name) }) {
			return
		}
	}
}

func (w *world) unsettled(name string) bool {
	phase := w.revert(name).Status.Phase
	return !phase.Final() && phase != v1alpha1.RevertBlocked
}

// checkHistory: every commit that was the head once is in the history of the
// head, and those of ours change one template each and nothing else.
func (w *world) checkHistory() {
	w.Helper()
	log, err := os.ReadFile(filepath.Join(w.bare, "logs", "refs", "heads", "main"))
	if err != nil {
		w.Fatalf("%v", err)
	}
	var history []string
	for _, commit := range w.history() {
		history = append(history, commit.hash)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(log)), "\n") {
		if was := strings.Fields(line)[1]; !slices.Contains(history, was) {
			w.Fatalf("commit %s was the head, and is not in the history any more", was)
		}
	}
	for _, name := range rolloutNames {
		ours := w.ours(name)
		if len(ours) > 1 {
			w.Fatalf("%s was reverted %d times: %v", name, len(ours), ours)
		}
		for _, commit := range ours {
			w.checkCommit(name, commit)
		}
	}
}

func (w *world) checkCommit(name, commit string) {
	w.Helper()
	parent := w.commit(commit).parent
	if was, is := w.hashes(parent)[name], w.hashes(commit)[name]; was != w.rejected[name] || is != w.stable[name] {
		w.Fatalf("%s: commit %s goes from template %s to %s, want from %s to %s", name, commit, was, is, w.rejected[name], w.stable[name])
	}
	before, after := w.documents(parent), w.documents(commit)
	for _, documents := range []map[string]map[string]any{before, after} {
		delete(documents["Rollout/"+name]["spec"].(map[string]any), "template")
	}
	if diff := cmp.Diff(before, after); diff != "" {
		w.Fatalf("%s: commit %s changes more than the template:\n%s", name, commit, diff)
	}
	was, is := w.files(parent), w.files(commit)
	changed := 0
	for file, text := range is {
		lines := strings.Split(was[file], "\n")
		for i, line := range strings.Split(text, "\n") {
			if i >= len(lines) || lines[i] != line {
				changed++
			}
		}
	}
	if changed != 1 || len(was) != len(is) {
		w.Fatalf("%s: commit %s changes %d lines, want the image's alone", name, commit, changed)
	}
}

// check judges how it ended, and names the end.
func (w *world) check(name string, retried bool) string {
	w.Helper()
	status := w.revert(name).Status
	hash := w.hashes(w.head())[name]
	ours := w.ours(name)
	fail := func(why string) {
		w.Helper()
		log := ""
		for _, commit := range w.history() {
			log += fmt.Sprintln(commit.hash[:7], commit.author, strings.SplitN(commit.message, "\n", 2)[0])
		}
		w.Fatalf("%s: %s; the head has template %q (stable %s, rejected %s), our commits are %v, the Revert says %+v\n%s", name, why,
			hash, w.stable[name], w.rejected[name], ours, status, log)
	}
	if status.Phase == v1alpha1.RevertBlocked && (status.Reason == "" || status.Message == "") {
		fail("blocked without a word")
	}
	if status.Phase == v1alpha1.RevertObserved && (len(ours) != 1 || status.Commit != ours[0] || status.PushedAt == nil) {
		fail("observed, and the commit is not there or not named")
	}
	switch {
	case hash == broken:
		if !status.Phase.Final() && status.Phase != v1alpha1.RevertBlocked && status.Phase != v1alpha1.RevertPushed {
			fail("the head can't be rendered, and nobody says so")
		}
	case hash != w.rejected[name]:
		if !status.Phase.Final() {
			fail("the rejected version is gone, and the Revert goes on")
		}
	case status.Phase == v1alpha1.RevertBlocked:
		fail("nothing is in the way any more, and it is blocked")
	case retried && status.Phase == v1alpha1.RevertSuperseded:
	case !status.Phase.Final() || !w.cameBack(name):
		fail("the rejected version was left in Git")
	}
	return string(status.Phase)
}

// cameBack says that the rejected version had left the branch, and somebody
// pushed it again: Held, and no business of a second revert (law 14).
func (w *world) cameBack(name string) bool {
	for _, commit := range w.history() {
		if commit.hash == w.badCommit {
			break
		}
		if hash := w.hashes(commit.hash)[name]; hash != w.rejected[name] && hash != broken {
			return true
		}
	}
	return false
}
