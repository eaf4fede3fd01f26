package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// work is one reconcile of one Revert.
type work struct {
	*revertReconciler
	revert   *v1alpha1.Revert
	sync     *v1alpha1.GitSync
	settings v1alpha1.RevertSpec
}

// maxRaces is how often a push is composed anew in one reconcile.
const maxRaces = 5

// raceDelay is the first wait after a lost race; it doubles.
const raceDelay = 100 * time.Millisecond

// branch opens the branch with the credentials to write.
func (w *work) branch(ctx context.Context) (fetch.Remote, *sharedStore, error) {
	secret := w.settings.SecretRef
	if secret == nil {
		secret = w.sync.Spec.SecretRef
	}
	remote, err := w.git.remote(ctx, w.sync, secret)
	if err != nil {
		return remote, nil, err
	}
	return remote, w.git.store(writerOf(client.ObjectKeyFromObject(w.sync)), remote), nil
}

// observe looks what became of a push that was seen to have worked. It counts
// once: what came onto the branch after it is the Rollout's affair, which holds a
// rejected template by itself. A commit that the branch has lost doesn't count.
func (w *work) observe(ctx context.Context) (step, error) {
	remote, store, err := w.branch(ctx)
	if err != nil {
		return trouble(w.revert, err)
	}
	head, err := w.head(ctx, remote, store)
	if err != nil {
		return trouble(w.revert, err)
	}
	if hash, _, err := head.template(); err == nil && hash == w.revert.Spec.Rejected {
		kept, err := w.keeps(ctx, remote, store, head)
		if err != nil {
			return trouble(w.revert, err)
		}
		if !kept {
			lost := blocked(v1alpha1.RevertReasonDeclined, "commit %s was pushed and is not in the history of %s, which declares the rejected template %s: the branch was rewritten, or is a copy of another one; revert by hand where it comes from",
				gitsync.Short(w.revert.Status.Commit), head.revision(), hash)
			lost.head = head.tree.Commit
			return lost, nil
		}
	}
	done, err := w.seen(head, w.revert.Status.Commit)
	if err != nil {
		return trouble(w.revert, err)
	}
	return done, nil
}

// keeps says whether the commit that was pushed is in the history of the branch.
func (w *work) keeps(ctx context.Context, remote fetch.Remote, store *sharedStore, head *headState) (bool, error) {
	own, err := w.past(ctx, remote, store, head)
	if err != nil || own != "" {
		return own != "", err
	}
	pushed := w.revert.Status.Commit
	if head.tree.Commit == pushed || head.tree.Parent == pushed {
		return true, nil
	}
	since, err := store.Since(ctx, remote, head.tree, pushed)
	return len(since) > 1, err // only the head's own message, where the commit isn't below it
}

// seen is where a Revert is whose commit is on the branch.
func (w *work) seen(head *headState, commit string) (step, error) {
	at := step{phase: v1alpha1.RevertObserved, head: head.tree.Commit, branch: branchOf(w.sync), commit: commit, pushed: true}
	hash, found, err := head.template()
	var wrong gitsync.ManifestErrors
	switch {
	case errors.As(err, &wrong):
		at.phase, at.message, at.again = v1alpha1.RevertPushed, "the head can't be rendered: "+err.Error(), blockedRetry
	case err != nil:
		return step{}, err
	case found && hash == w.revert.Spec.Stable:
		w.poll(client.ObjectKeyFromObject(w.sync))
		at.message = fmt.Sprintf("%s declares the %s again", head.revision(), w.wanted())
	default:
		at.message = fmt.Sprintf("commit %s brought the %s back; %s declares %s since", gitsync.Short(commit), w.wanted(), head.revision(), orNothing(hash))
	}
	return at, nil
}

func orNothing(hash string) string {
	if hash == "" {
		return "no such Rollout"
	}
	return "template " + hash
}

// push composes the edit on the newest head, proves it and pushes it. One at a
// time per branch: the others wait for their turn instead of losing races.
func (w *work) push(ctx context.Context) (step, error) {
	remote, store, err := w.branch(ctx)
	if err != nil {
		return w.unreadable(err)
	}
	store.pushing.Lock()
	defer store.pushing.Unlock()
	backoff := wait.Backoff{Duration: raceDelay, Factor: 2, Jitter: 0.5, Steps: maxRaces}
	for range maxRaces {
		done, raced, err := w.try(ctx, remote, store)
		if err != nil {
			return w.unreadable(err)
		}
		if !raced {
			return done, nil
		}
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return step{}, ctx.Err()
		}
	}
	return step{phase: v1alpha1.RevertPending, message: fmt.Sprintf("the branch moved %d times while the revert was pushed; trying again", maxRaces), again: wait.Jitter(racedDelay, 1)}, nil
}

// unreadable says why nothing may be written, where that is so: it helps nobody
// to be able to read. Otherwise it says what is wrong with Git.
func (w *work) unreadable(err error) (step, error) {
	if stop := w.forbidden(); stop != nil {
		return *stop, nil
	}
	return trouble(w.revert, err)
}

// forbidden says why the settings let nothing be written; nil when they let.
func (w *work) forbidden() *step {
	s := w.settings
	forbid := func(reason, format string, args ...any) *step {
		stop := blocked(reason, format, args...)
		return &stop
	}
	switch {
	case s.Mode == v1alpha1.RevertNone:
		return forbid(v1alpha1.RevertReasonPolicy, "revert.mode is None: nothing is written to Git")
	case s.Mode != v1alpha1.RevertPush:
		return forbid(v1alpha1.RevertReasonPolicy, "revert.mode %s is not built yet: use Push", s.Mode)
	case s.Branch != "" && s.Branch != branchOf(w.sync):
		return forbid(v1alpha1.RevertReasonNoBranch, "revert.branch %s is not the branch that is followed (%s), which is not built yet", s.Branch, branchOf(w.sync))
	case s.Signing != nil:
		return forbid(v1alpha1.RevertReasonPolicy, "revert.signing is not built yet: leave it out")
	case s.MaxAge != nil && s.MaxAge.Duration > 0 && w.options.Now().Sub(w.revert.Spec.AbortedAt.Time) > s.MaxAge.Duration:
		return forbid(v1alpha1.RevertReasonExpired, "the abort of %s is older than spec.revert.maxAge (%s): revert by hand, or raise it", w.revert.Spec.AbortedAt.UTC().Format(time.RFC3339), s.MaxAge.Duration)
	case s.Owner != "" && s.Owner != w.options.ClusterName:
		return forbid(v1alpha1.RevertReasonNotOwner, "cluster %q writes the reverts of this path, and this is %q (flag --cluster-name)", s.Owner, w.options.ClusterName)
	}
	return nil
}
