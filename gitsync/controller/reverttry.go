package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
	"github.com/pushback-dev/pushback/gitsync/fetch"
	"github.com/pushback-dev/pushback/gitsync/revert"
)

// try makes one try on the head as it is now. Only where an edit is needed is it
// asked who asks for it and whether it may be made: what a person has brought
// back meanwhile is reverted, however old.
func (w *work) try(ctx context.Context, remote fetch.Remote, store *sharedStore) (done step, raced bool, err error) {
	head, err := w.head(ctx, remote, store)
	if err != nil {
		return step{}, false, err
	}
	own, err := w.past(ctx, remote, store, head)
	if err != nil {
		return step{}, gitsync.ClassOf(err) == gitsync.ErrRace, notRace(err)
	}
	if own != "" {
		done, err := w.seen(head, own)
		return done, false, err
	}
	settled, err := w.settledBy(head)
	if err != nil {
		return step{}, false, err
	}
	if settled != nil {
		return *settled, false, nil
	}
	stop, err := w.vouch(ctx)
	if err != nil {
		return step{}, false, err
	}
	if stop == nil {
		stop = w.forbidden()
	}
	if stop != nil {
		stop.head = head.tree.Commit
		return *stop, false, nil
	}
	return w.compose(ctx, remote, store, head)
}

// notRace drops the error of a branch that moved: that is tried again at once.
func notRace(err error) error {
	if gitsync.ClassOf(err) == gitsync.ErrRace {
		return nil
	}
	return err
}

// past is the commit of this Revert in the history of the branch since the
// rejected version; empty when there is none. A controller that was killed after
// a push, and one that never heard what became of it, find it there, whatever
// was pushed since.
func (w *work) past(ctx context.Context, remote fetch.Remote, store *sharedStore, head *headState) (string, error) {
	_, rejected, _ := strings.Cut(w.revert.Spec.RejectedRevision, "@sha1:")
	commits, err := store.Since(ctx, remote, head.tree, rejected)
	if err != nil {
		return "", err
	}
	for _, commit := range commits {
		if w.isOurs(commit.Text) {
			return commit.Commit, nil
		}
	}
	return "", nil
}

// settledBy is where a Revert is when the head needs no edit; nil when it
// declares the rejected template, or can't be rendered.
func (w *work) settledBy(head *headState) (*step, error) {
	hash, found, err := head.template()
	s := w.revert.Spec
	var wrong gitsync.ManifestErrors
	var outcome revert.Outcome
	switch {
	case errors.As(err, &wrong):
		return nil, nil
	case err != nil:
		return nil, err
	case !found:
		outcome = &revert.Superseded{}
	case s.Stable != "" && hash == s.Stable:
		outcome = &revert.AlreadyReverted{}
	case hash != s.Rejected:
		outcome = &revert.Superseded{Hash: hash}
	case s.Stable == "":
		outcome = &revert.NoTarget{}
	default:
		return nil, nil
	}
	done := w.settled(outcome, head, "")
	return &done, nil
}

// compose looks for an edit and pushes it.
func (w *work) compose(ctx context.Context, remote fetch.Remote, store *sharedStore, head *headState) (done step, raced bool, err error) {
	kept, missing, err := w.stored(ctx)
	if err != nil {
		return step{}, false, err
	}
	in, err := w.input(ctx, head, kept)
	if err != nil {
		return step{}, false, err
	}
	outcome := revert.Compose(in)
	if head.err != nil { // reading the tree broke off: what came of it is no outcome
		return step{}, false, head.err
	}
	edited, ok := outcome.(*revert.Edited)
	if !ok {
		return w.settled(outcome, head, missing), false, nil
	}
	planned, err := revert.Diff(in.Head, edited.Edits, maxDiff)
	if err != nil {
		return step{}, false, err
	}
	return w.pushEdit(ctx, remote, store, head, edited, planned)
}

// settled makes a step of an outcome that writes nothing.
func (w *work) settled(outcome revert.Outcome, head *headState, missing string) step {
	at := step{head: head.tree.Commit, branch: branchOf(w.sync)}
	switch o := outcome.(type) {
	case *revert.AlreadyReverted:
		at.phase, at.message = v1alpha1.RevertAlreadyReverted, fmt.Sprintf("%s declares the %s again", head.revision(), w.wanted())
		w.poll(client.ObjectKeyFromObject(w.sync))
	case *revert.Superseded:
		at.phase, at.message = v1alpha1.RevertSuperseded, fmt.Sprintf("%s declares %s", head.revision(), orNothing(o.Hash))
	case *revert.NoTarget:
		at.phase, at.message = v1alpha1.RevertNoTarget, "there is no stable version to bring back: the first version failed"
	case *revert.Refused:
		reason, text := v1alpha1.RevertReasonRefused, o.Error()
		if missing != "" {
			text = missing
			if missing == apply.ErrSourceTooLarge.Error() {
				reason = v1alpha1.RevertReasonSourceTooLarge
			}
			text += ": revert by hand"
		}
		stop := blocked(reason, "%s", text)
		stop.head, stop.branch = at.head, at.branch
		return stop
	}
	return at
}

// isOurs is true for the message of the commit that this Revert made: its
// trailers say so.
func (w *work) isOurs(message string) bool {
	has := func(name, value string) bool { return slices.Contains(trailers(message, name), value) }
	s := w.revert.Spec
	if s.Undo != nil {
		return has(v1alpha1.RolloutTrailer, s.Rollout.Namespace+"/"+s.Rollout.Name) && has(v1alpha1.UndoTrailer, s.Undo.Token)
	}
	return has(v1alpha1.RolloutTrailer, s.Rollout.Namespace+"/"+s.Rollout.Name) &&
		has(v1alpha1.RejectedTemplateTrailer, s.Rejected) && has(v1alpha1.AttemptTrailer, fmt.Sprint(s.Attempt))
}

// maxDiff is the most bytes of a planned diff that are kept.
const maxDiff = 8 << 10

// pushEdit pushes a proved edit, if the budget allows one more. planned shows it.
func (w *work) pushEdit(ctx context.Context, remote fetch.Remote, store *sharedStore, head *headState, edited *revert.Edited, planned string) (done step, raced bool, err error) {
	over, err := w.overBudget(ctx)
	if err != nil {
		return step{}, false, err
	}
	if over != "" {
		stop := blocked(v1alpha1.RevertReasonBudget, "%s", over)
		stop.head, stop.branch, stop.files, stop.diff = head.tree.Commit, remote.Branch, edited.Files, planned
		return stop, false, nil
	}
	message, err := revert.Message(w.revert.Spec, w.settings.Message)
	if err != nil {
		return blocked(v1alpha1.RevertReasonRefused, "%v", err), false, nil
	}
	outcome, err := store.Push(ctx, remote, head.tree, edited.Edits, fetch.CommitSpec{
		Author:    identity(*w.settings.Author),
		Committer: identity(*w.settings.Committer),
		When:      w.revert.Spec.AbortedAt.Time, Message: message,
	})
	if err != nil {
		stop, retry := trouble(w.revert, err)
		stop.head, stop.branch, stop.files, stop.diff = head.tree.Commit, remote.Branch, edited.Files, planned
		if retry != nil {
			return step{}, false, err
		}
		return stop, false, nil
	}
	switch outcome.Kind {
	case fetch.Pushed, fetch.PushedBelow:
		w.poll(client.ObjectKeyFromObject(w.sync))
		return step{
			phase: v1alpha1.RevertPushed, commit: outcome.Commit, head: outcome.Head, branch: remote.Branch,
			files: edited.Files, diff: planned, pushed: true, again: observeDelay,
			message: fmt.Sprintf("pushed %s to %s", gitsync.Short(outcome.Commit), remote.Branch),
		}, false, nil
	}
	return step{}, true, nil // Raced, or no byte to change after all: look at the head anew
}

func identity(who v1alpha1.GitIdentity) fetch.Identity {
	return fetch.Identity{Name: who.Name, Email: who.Email}
}

// stored reads the files that were kept for the stable template. missing says
// why there are none.
func (w *work) stored(ctx context.Context) (files map[string][]byte, missing string, err error) {
	s := w.revert.Spec
	if s.Stable == "" {
		return nil, "", nil
	}
	key := types.NamespacedName{Namespace: s.Rollout.Namespace, Name: apply.SourceName(s.Rollout.Name, s.Stable)}
	var kept appsv1.ControllerRevision
	if err := w.own.Get(ctx, key, &kept); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Sprintf("the files of the %s are not kept (no ControllerRevision %s)", w.wanted(), key), nil
		}
		return nil, "", err
	}
	raw := kept.Data.Raw
	if raw == nil && kept.Data.Object != nil {
		if raw, err = json.Marshal(kept.Data.Object); err != nil {
			return nil, "", err
		}
	}
	unpacked, err := apply.UnpackSource(raw)
	if err != nil {
		return nil, err.Error(), nil
	}
	files = make(map[string][]byte, len(unpacked))
	for _, file := range unpacked {
		files[file.Path] = file.Data
	}
	return files, "", nil
}
