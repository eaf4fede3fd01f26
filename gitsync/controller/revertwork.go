package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
	"github.com/pushback-dev/pushback/gitsync/fetch"
	"github.com/pushback-dev/pushback/gitsync/revert"
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

// observe looks whether the branch renders to the stable template. A push that
// was seen to have worked counts once: what came onto the branch after it is the
// Rollout's affair, which holds a rejected template by itself.
func (w *work) observe(ctx context.Context) (step, error) {
	remote, store, err := w.branch(ctx)
	if err != nil {
		return trouble(w.revert, err)
	}
	head, err := w.head(ctx, remote, store)
	if err != nil {
		return trouble(w.revert, err)
	}
	hash, found, err := head.template()
	var wrong gitsync.ManifestErrors
	switch {
	case errors.As(err, &wrong):
		return step{phase: v1alpha1.RevertPushed, message: "the head can't be rendered: " + err.Error(), head: head.tree.Commit, again: blockedRetry}, nil
	case err != nil:
		return trouble(w.revert, err)
	case found && hash == w.revert.Spec.Stable:
		w.poll(client.ObjectKeyFromObject(w.sync))
		return step{phase: v1alpha1.RevertObserved, head: head.tree.Commit,
			message: fmt.Sprintf("%s declares the stable template %s again", head.revision(), hash)}, nil
	}
	return step{phase: v1alpha1.RevertObserved, head: head.tree.Commit,
		message: fmt.Sprintf("commit %s brought the stable template back; %s declares %s since", gitsync.Short(w.revert.Status.Commit), head.revision(), orNothing(hash))}, nil
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
	if stop, ok := w.forbidden(); ok {
		return stop, nil
	}
	remote, store, err := w.branch(ctx)
	if err != nil {
		return trouble(w.revert, err)
	}
	store.pushing.Lock()
	defer store.pushing.Unlock()
	backoff := wait.Backoff{Duration: raceDelay, Factor: 2, Jitter: 0.5, Steps: maxRaces}
	for range maxRaces {
		done, raced, err := w.try(ctx, remote, store)
		if err != nil {
			return trouble(w.revert, err)
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

// forbidden is true when the settings say that nothing is to be written.
func (w *work) forbidden() (step, bool) {
	s := w.settings
	switch {
	case s.Mode == v1alpha1.RevertNone:
		return blocked(v1alpha1.RevertReasonPolicy, "revert.mode is None: nothing is written to Git"), true
	case s.Mode != v1alpha1.RevertPush:
		return blocked(v1alpha1.RevertReasonPolicy, "revert.mode %s is not built yet: use Push", s.Mode), true
	case s.Branch != "" && s.Branch != branchOf(w.sync):
		return blocked(v1alpha1.RevertReasonNoBranch, "revert.branch %s is not the branch that is followed (%s), which is not built yet", s.Branch, branchOf(w.sync)), true
	case s.Signing != nil:
		return blocked(v1alpha1.RevertReasonPolicy, "revert.signing is not built yet: leave it out"), true
	case s.MaxAge != nil && w.options.Now().Sub(w.revert.Spec.AbortedAt.Time) > s.MaxAge.Duration:
		return blocked(v1alpha1.RevertReasonExpired, "the abort is older than revert.maxAge (%s): revert by hand", s.MaxAge.Duration), true
	case s.Owner != "" && s.Owner != w.options.ClusterName:
		return blocked(v1alpha1.RevertReasonNotOwner, "cluster %q writes the reverts of this path, and this is %q (flag --cluster-name)", s.Owner, w.options.ClusterName), true
	}
	return step{}, false
}

// try makes one try on the head as it is now.
func (w *work) try(ctx context.Context, remote fetch.Remote, store *sharedStore) (done step, raced bool, err error) {
	head, err := w.head(ctx, remote, store)
	if err != nil {
		return step{}, false, err
	}
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
		at.phase, at.message = v1alpha1.RevertAlreadyReverted, fmt.Sprintf("%s declares the stable template %s again", head.revision(), w.revert.Spec.Stable)
		if w.isOurs(head.tree) {
			// The push worked and the controller stopped before it could say so.
			at.phase, at.commit, at.pushed = v1alpha1.RevertObserved, head.tree.Commit, true
		}
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

// isOurs is true for the commit that this Revert made: its trailers say so.
func (w *work) isOurs(tree *fetch.Tree) bool {
	has := func(name, value string) bool {
		for _, found := range trailers(tree.Message, name) {
			if found == value {
				return true
			}
		}
		return false
	}
	s := w.revert.Spec
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
			return nil, fmt.Sprintf("the files of the stable version are not kept (no ControllerRevision %s)", key), nil
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

// Windows of the budgets.
const (
	rolloutWindow    = 24 * time.Hour
	repositoryWindow = time.Hour
)

// overBudget says which budget is used up; empty when one more is allowed. It
// counts what was pushed, by the Reverts themselves.
func (w *work) overBudget(ctx context.Context) (string, error) {
	var reverts v1alpha1.RevertList
	if err := w.own.List(ctx, &reverts); err != nil {
		return "", err
	}
	syncs, err := w.neighbours(ctx)
	if err != nil {
		return "", err
	}
	same := map[v1alpha1.RevertGitSync]bool{w.revert.Spec.GitSync: true}
	for _, sync := range syncs {
		same[v1alpha1.RevertGitSync{Namespace: sync.Namespace, Name: sync.Name}] = true
	}
	var ofRollout, ofBranch int32
	now := w.options.Now()
	for _, other := range reverts.Items {
		if other.Status.PushedAt == nil || other.UID == w.revert.UID {
			continue
		}
		age := now.Sub(other.Status.PushedAt.Time)
		ro, mine := other.Spec.Rollout, w.revert.Spec.Rollout
		if ro.Namespace == mine.Namespace && ro.Name == mine.Name && age < rolloutWindow {
			ofRollout++
		}
		if same[other.Spec.GitSync] && age < repositoryWindow {
			ofBranch++
		}
	}
	budget := w.settings.Budget
	switch {
	case ofRollout >= *budget.PerRollout:
		return fmt.Sprintf("%d reverts of this Rollout were pushed in 24 hours, and revert.budget.perRollout is %d: revert by hand, or raise it", ofRollout, *budget.PerRollout), nil
	case ofBranch >= *budget.PerRepository:
		return fmt.Sprintf("%d reverts were pushed to this branch in one hour, and revert.budget.perRepository is %d: revert by hand, or raise it", ofBranch, *budget.PerRepository), nil
	}
	return "", nil
}

// neighbours are the other GitSyncs of the same repository and branch.
func (w *work) neighbours(ctx context.Context) ([]v1alpha1.GitSync, error) {
	var list v1alpha1.GitSyncList
	if err := w.own.List(ctx, &list); err != nil {
		return nil, err
	}
	var out []v1alpha1.GitSync
	for _, sync := range list.Items {
		if sync.UID != w.sync.UID && sameURL(sync.Spec.URL, w.sync.Spec.URL) && branchOf(&sync) == branchOf(w.sync) {
			out = append(out, sync)
		}
	}
	return out, nil
}
