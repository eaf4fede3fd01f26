package fetch

import (
	"context"
	"time"

	"github.com/pushback-dev/pushback/gitsync"
)

// CommitSpec is what a commit says beside its files. The commit's hash is a
// function of it, the parent and the edits alone.
type CommitSpec struct {
	Author, Committer Identity
	// When is the date of author and committer; written in UTC, in seconds.
	When time.Time
	// Message ends in one newline, whatever is given.
	Message string
}

// PushKind is how a push that met no error ended.
type PushKind string

// The ends of a push.
const (
	// PushUnchanged: the edits change no byte; nothing was sent.
	PushUnchanged PushKind = "Unchanged"
	// Pushed: the branch, read again, is at our commit.
	Pushed PushKind = "Pushed"
	// PushedBelow: the server said ok, and by the time the branch was read again
	// it was at another commit, Head. Judge Head by its content.
	PushedBelow PushKind = "PushedBelow"
	// Raced: the branch moved to Head before our commit, which is not on it. Decide anew on Head.
	Raced PushKind = "Raced"
)

// PushOutcome is how a push ended.
type PushOutcome struct {
	Kind PushKind
	// Commit that we made, 40 hex digits; empty for PushUnchanged.
	Commit string
	// Head of the branch as it was read last.
	Head string
}

// Push makes a commit of base and the edits (path -> new bytes) and moves the
// branch to it, if and only if the branch is still at base: no force, no lease.
// All other files and all modes are base's; an edit at the end of links goes to
// the real file; a path that base does not have is refused, with class ErrUnusable.
//
// The branch is read again afterwards, and that is what the outcome tells.
// Errors are *gitsync.Error: ErrPolicy, ErrSignature or ErrAuth with the server's
// words when it refused, and ErrTransient when it isn't known how the push
// ended: read the head and judge it by content.
func (s *Store) Push(ctx context.Context, r Remote, base *Tree, edits map[string][]byte, spec CommitSpec) (PushOutcome, error) {
	unlock, err := s.lock(ctx, r)
	if err != nil {
		return PushOutcome{}, err
	}
	defer unlock()
	made, err := makeCommit(base, edits, spec)
	if err != nil {
		return PushOutcome{}, s.wire.fail(ctx, "commit to", err)
	}
	if made == nil {
		return PushOutcome{Kind: PushUnchanged, Head: base.Commit}, nil
	}
	sent := s.wire.send(ctx, base, made)
	head, err := s.wire.head(ctx, &s.old)
	if err != nil {
		if sent.refused() != nil {
			return PushOutcome{}, s.wire.fail(ctx, "push to", sent.refused())
		}
		return PushOutcome{}, s.wire.fail(ctx, "read after a push", err)
	}
	outcome := PushOutcome{Commit: made.hash.String(), Head: head.String()}
	switch {
	case head == made.hash:
		outcome.Kind = Pushed
	case sent.accepted && outcome.Head == base.Commit:
		return PushOutcome{}, &gitsync.Error{Class: gitsync.ErrTransient, Op: "push to " + r.String(),
			Words: "the server reported success, but the branch is where it was"}
	case sent.accepted:
		outcome.Kind = PushedBelow
	case outcome.Head != base.Commit:
		outcome.Kind = Raced
	default:
		return PushOutcome{}, s.wire.fail(ctx, "push to", sent.refused())
	}
	return outcome, nil
}
