package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/pushback-dev/pushback/gitsync"
)

// answer is what the server said to a push. None of it is believed before the
// branch was read again.
type answer struct {
	// accepted says that the report names our branch and says ok.
	accepted bool
	// err is why the push failed, in go-git's words and the report's.
	err error
	// words are what the server and its hooks wrote beside the report.
	words string
}

// errNoReport is an answer without a report: proxies make such.
var errNoReport = errors.New("the server answered without a report")

// send pushes the commit: one command, old value, new value, branch.
func (w *wire) send(ctx context.Context, base *Tree, made *commit) answer {
	session, err := w.receive(ctx)
	if err != nil {
		return answer{err: err}
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return answer{err: err}
	}
	if at, ok := refs.References[w.remote.ref()]; !ok || at.String() != base.Commit {
		return answer{err: gitsync.ErrRace}
	}
	pack, err := made.pack()
	if err != nil {
		return answer{err: err}
	}
	words := &tail{}
	req := packp.NewReferenceUpdateRequestFromCapabilities(refs.Capabilities)
	if !refs.Capabilities.Supports(capability.ReportStatus) {
		return answer{err: &gitsync.Error{Class: gitsync.ErrUnusable, Op: "push to " + w.remote.String(),
			Words: "the server reports no status of pushes"}}
	}
	if refs.Capabilities.Supports(capability.Sideband64k) {
		_ = req.Capabilities.Set(capability.Sideband64k)
		req.Progress = words
	}
	req.Commands = []*packp.Command{{
		Name: plumbing.ReferenceName(w.remote.ref()), Old: plumbing.NewHash(base.Commit), New: made.hash,
	}}
	req.Packfile = io.NopCloser(bytes.NewReader(pack))
	report, err := session.ReceivePack(ctx, req)
	if err == nil && !reportsOK(report, w.remote.ref()) {
		err = errNoReport
	}
	return answer{accepted: err == nil, err: err, words: words.String()}
}

func reportsOK(report *packp.ReportStatus, ref string) bool {
	if report == nil || report.Error() != nil {
		return false
	}
	for _, status := range report.CommandStatuses {
		if status.ReferenceName.String() == ref {
			return true
		}
	}
	return false
}

// pack is exactly the new objects, undeltified.
func (c *commit) pack() ([]byte, error) {
	var out bytes.Buffer
	_, err := packfile.NewEncoder(&out, c.storage, false).Encode(c.objects, 0)
	return out.Bytes(), err
}

// refusals are words that servers use, and what they mean. The first match counts.
var refusals = []struct {
	class gitsync.Class
	words []string
}{
	{gitsync.ErrSignature, []string{"verified signatures", "must be signed", "unsigned commit", "GPG signature"}},
	{gitsync.ErrPolicy, []string{"GH006", "GH013", "rotected branch", "protected branches", "ule violations", "hook declined",
		"pull request", "merge request", "TF402455", "not allowed to push", "denying", "declined", "prohibited", "pre-receive"}},
	{gitsync.ErrRace, []string{"failed to update ref", "cannot lock ref", "incorrect old value provided", "fetch first",
		"non-fast-forward", "stale info", "failed to lock"}},
	{gitsync.ErrAuth, []string{"ermission denied", "ccess denied", "authentication", "read-only", "write access"}},
	{gitsync.ErrPolicy, []string{"too large", "exceeds", "quota"}},
}

// refused is the error of a push that left the branch where it was; nil when
// the server accepted it.
func (a answer) refused() error {
	if a.err == nil {
		return nil
	}
	told := a.err.Error()
	said := strings.Join(strings.Fields(strings.ReplaceAll(a.words, "remote:", " ")), " ")
	if !strings.Contains(told, "command error") && !strings.Contains(told, "unpack error") && said == "" {
		return a.err
	}
	class := gitsync.ErrPolicy
	for _, refusal := range refusals {
		if containsAny(told+" "+said, refusal.words) {
			class = refusal.class
			break
		}
	}
	return &refusedError{class: class, words: strings.TrimSpace(said + " (" + told + ")")}
}

// refusedError carries a class to fail, which adds where and scrubs the words.
type refusedError struct {
	class gitsync.Class
	words string
}

// Error is the server's words.
func (e *refusedError) Error() string { return e.words }

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
