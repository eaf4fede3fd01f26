package fetch

import (
	"context"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/pushback-dev/pushback/gitsync"
)

// MaxHistory is the most commits whose messages Since returns.
const MaxHistory = 500

// maxCommits and maxUnfiltered are the most bytes of an answer that holds
// commits alone, and of one of a server that can't leave their files out.
const (
	maxCommits    = 4 << 20
	maxUnfiltered = 32 << 20
)

// Message is a commit and what it says.
type Message struct {
	// Commit is 40 hex digits.
	Commit string
	Text   string
}

// Subject is the first line of the text.
func (m Message) Subject() string {
	subject, _, _ := strings.Cut(strings.TrimLeft(m.Text, "\n"), "\n")
	return subject
}

// commitFilters are tried in this order: commits alone; with their folders, where
// a server allows no other filter; and with all that they changed.
var commitFilters = []packp.Filter{packp.FilterTreeDepth(0), packp.FilterBlobNone(), ""}

// Since returns the messages of the commits that a branch has gained since old:
// all that can be reached from t's commit, by first parents and merged ones, and
// not from old. t's own is the first; without merges a commit stands before its parent.
//
// It costs no request when t is old, old's child, or old is empty, and one
// otherwise: the server is told of old and sends the commits above it, without
// their files where it can leave them out. So it needs nothing of old here.
//
// Only t's own message counts when old is unknown: empty; not an ancestor of t's
// commit, as after a force push; or more than MaxHistory commits away. Errors are
// *gitsync.Error.
func (s *Store) Since(ctx context.Context, r Remote, t *Tree, old string) ([]Message, error) {
	own := []Message{{Commit: t.Commit, Text: t.Message}}
	if !gitsync.IsHash(old) || old == t.Commit || (old == t.Parent && !t.merge) {
		return own, nil
	}
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return nil, err
	}
	defer unlock()
	fresh, err := s.commitsSince(ctx, plumbing.NewHash(t.Commit), plumbing.NewHash(old))
	switch {
	case errors.Is(err, errTooMuch):
		return own, nil
	case err != nil:
		return nil, s.wire.fail(ctx, "read the history of", err)
	}
	if messages := fresh.messages(t.Commit, old); messages != nil {
		return messages, nil
	}
	return own, nil
}

// commitsSince downloads what tip reaches and old doesn't. A server that refuses
// a filter is asked without, and the answer remembered.
func (s *Store) commitsSince(ctx context.Context, tip, old plumbing.Hash) (*objects, error) {
	for {
		filter := commitFilters[s.commitFilter]
		if s.capabilities != nil && !s.capabilities.Supports(capability.Filter) {
			filter = ""
		}
		ask := request{wants: []plumbing.Hash{tip}, have: old, filter: filter, most: maxCommits}
		if filter != commitFilters[0] {
			ask.most = maxUnfiltered
		}
		fresh := newObjects(s.limits.Blob)
		err := s.download(ctx, fresh, ask)
		if err == nil || filter == "" || ctx.Err() != nil || errors.Is(err, errTooMuch) ||
			s.wire.classify(err) == gitsync.ErrAuth || s.wire.recorder.wait() > 0 {
			return fresh, err
		}
		s.commitFilter++
	}
}

// messages are those of tip and of what it reaches, without what old does. It is
// nil when old is not found below tip, or there are too many commits.
func (o *objects) messages(tip, old string) []Message {
	var out []Message
	found := false
	beyond := map[plumbing.Hash]bool{}
	_ = o.walk(old, beyond, func(*object.Commit) error { return nil }) // a server may send old itself
	err := o.walk(tip, beyond, func(commit *object.Commit) error {
		if len(out) == MaxHistory {
			return errTooMuch
		}
		out = append(out, Message{Commit: commit.Hash.String(), Text: commit.Message})
		for _, parent := range commit.ParentHashes {
			found = found || parent.String() == old
		}
		return nil
	})
	if err != nil || !found {
		return nil
	}
	return out
}

// walk visits the commits that are held, from tip down and breadth first, and
// notes them in seen; those that it finds there are not visited.
func (o *objects) walk(tip string, seen map[plumbing.Hash]bool, visit func(*object.Commit) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for queue := []plumbing.Hash{plumbing.NewHash(tip)}; len(queue) > 0; queue = queue[1:] {
		encoded, held := o.storage.Commits[queue[0]]
		if !held || seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		commit := &object.Commit{}
		if err := commit.Decode(encoded); err != nil {
			return err
		}
		if err := visit(commit); err != nil {
			return err
		}
		queue = append(queue, commit.ParentHashes...)
	}
	return nil
}
