package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newUndoCommand() *cobra.Command {
	u := undoing{}
	var timeout time.Duration
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "undo ROLLOUT",
		Short: "Bring an earlier version back by a commit",
		Long: "Has Pushback commit to Git what brings an earlier template back, as a revert does: the smallest edit, proved and pushed only if Git\n" +
			"still declares the version that it does now. It is then rolled out like any other version; the one that goes is not rejected.\n" +
			"Without --to-revision that is the stable version while another one is declared; else the newest earlier revision that was not rejected.\n" +
			"'history -o wide' lists the revisions, and whose files are kept. You must be allowed to create Reverts in the namespace.",
		Example: "  pushback undo shop\n  pushback undo shop --to-revision 3 -m 'checkout is slower since'",
		Args:    oneRollout(1),
	}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = reach.complete
	cmd.Flags().Int64Var(&u.revision, "to-revision", 0, "revision to bring back (default the stable or the previous one)")
	cmd.Flags().StringVarP(&u.message, "message", "m", "", "why, for the commit message")
	cmd.Flags().DurationVar(&timeout, "wait", time.Minute, "how long to wait for the commit")
	output.register(cmd, formatJSON, formatYAML, formatName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		u.key = types.NamespacedName{Namespace: namespace, Name: args[0]}
		u.by = whoAmI(cmd.Context(), c)
		return u.run(cmd.Context(), cmd.OutOrStdout(), c, timeout, output)
	}
	return cmd
}

// undoing is one wish for an earlier version.
type undoing struct {
	key types.NamespacedName
	// revision to bring back; 0 chooses one.
	revision    int64
	message, by string
}

// whoAmI is what the API server calls the user; empty when it doesn't say.
func whoAmI(ctx context.Context, c client.Client) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "" // the commit is as good without it
	}
	return review.Status.UserInfo.Username
}

func (u undoing) run(ctx context.Context, out io.Writer, c client.Client, timeout time.Duration, output outputFlag) error {
	rollout, all, err := readWhole(ctx, c, u.key)
	if err != nil {
		return err
	}
	source, err := sourceOf(rollout)
	if err != nil {
		return err
	}
	target, err := u.target(rollout, source, historyOf(rollout, all))
	if err != nil {
		return err
	}
	revert := u.revert(rollout, source, target)
	if err := c.Create(ctx, revert, client.FieldOwner("pushback-cli")); err != nil {
		return fmt.Errorf("creating the Revert %s: %w", revert.Name, explained(err))
	}
	status, err := awaitRevert(ctx, c, client.ObjectKeyFromObject(revert), timeout)
	if err != nil {
		return err
	}
	next, err := undone(revert.Name, status, target)
	if err != nil {
		return err
	}
	return done{Namespace: u.key.Namespace, Rollout: u.key.Name, Verb: "undo", Next: next, Phase: rollout.Status.Phase, Step: rollout.Status.Step}.say(out, output)
}

// sourceOf is what Git declares.
func sourceOf(rollout *v1alpha1.Rollout) (v1alpha1.Source, error) {
	var source v1alpha1.Source
	text, ok := rollout.Annotations[v1alpha1.SourceAnnotation]
	if !ok {
		return source, fmt.Errorf("%s does not come from Git by a GitSync: there is nowhere to commit to", rollout.Name)
	}
	if err := json.Unmarshal([]byte(text), &source); err != nil {
		return source, fmt.Errorf("the annotation %s of %s can't be read: %w", v1alpha1.SourceAnnotation, rollout.Name, err)
	}
	return source, nil
}

// target chooses the revision to bring back.
func (u undoing) target(rollout *v1alpha1.Rollout, source v1alpha1.Source, past []pastView) (pastView, error) {
	for _, rejected := range rollout.Status.Rejected {
		if rejected.Hash == source.Hash && !rejected.Cleared && (rejected.Revert == "" || rejected.Revert == v1alpha1.RevertPending || rejected.Revert == v1alpha1.RevertPushed) {
			return pastView{}, fmt.Errorf("template %s, which Git declares, was rejected, and its revert is under way: wait for it ('pushback get %s')", source.Hash, rollout.Name)
		}
	}
	for _, p := range past {
		switch {
		case u.revision != 0 && p.Revision == u.revision:
			return p, undoable(p, source)
		case u.revision == 0 && source.Hash != rollout.Status.StableRS && p.Template == rollout.Status.StableRS:
			return p, undoable(p, source)
		case u.revision == 0 && source.Hash == rollout.Status.StableRS && undoable(p, source) == nil:
			return p, nil
		}
	}
	if u.revision != 0 {
		return pastView{}, fmt.Errorf("%s has no revision %d: 'pushback history %s' lists those that it has", rollout.Name, u.revision, rollout.Name)
	}
	return pastView{}, fmt.Errorf("%s has no earlier revision that could come back: 'pushback history %s -o wide' lists what is known of each", rollout.Name, rollout.Name)
}

// undoable says why a revision can't be brought back; nil when it can.
func undoable(p pastView, source v1alpha1.Source) error {
	switch {
	case p.Template == source.Hash:
		return fmt.Errorf("revision %d (template %s) is what Git declares: there is nothing to undo", p.Revision, p.Template)
	case p.Status == v1alpha1.RoleRejected:
		return fmt.Errorf("revision %d (template %s) was rejected and would be held: lift the hold with 'pushback retry --template %s' first", p.Revision, p.Template, p.Template)
	case !p.Kept:
		return fmt.Errorf("the files of revision %d (template %s) are not kept: bring it back by hand", p.Revision, p.Template)
	}
	return nil
}

// revert is the object that asks for the commit.
func (u undoing) revert(rollout *v1alpha1.Rollout, source v1alpha1.Source, target pastView) *v1alpha1.Revert {
	token := newToken()
	namespace, name, _ := strings.Cut(source.GitSync, "/")
	return &v1alpha1.Revert{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rollout.Namespace, Name: fmt.Sprintf("%s-%s-undo-%s", rollout.Name, source.Hash, token),
			Labels: map[string]string{v1alpha1.RolloutNameLabel: rollout.Name, v1alpha1.TemplateHashLabel: source.Hash},
		},
		Spec: v1alpha1.RevertRequest{
			Rollout:  v1alpha1.RevertRollout{Namespace: rollout.Namespace, Name: rollout.Name, UID: string(rollout.UID)},
			GitSync:  v1alpha1.RevertGitSync{Namespace: namespace, Name: name},
			Rejected: source.Hash, Stable: target.Template, Attempt: rollout.Status.Attempt,
			Reason: v1alpha1.UndoByPerson, Message: u.message, RejectedRevision: source.Revision, RejectedSubject: source.Subject,
			AbortedAt: metav1.Time{Time: time.Now().Truncate(time.Second)},
			Undo:      &v1alpha1.RevertUndo{Token: token, RequestedBy: u.by},
		},
	}
}

// awaitRevert waits until the commit is pushed, or can't be.
func awaitRevert(ctx context.Context, c client.Reader, key types.NamespacedName, timeout time.Duration) (v1alpha1.RevertStatus, error) {
	var revert v1alpha1.Revert
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, key, &revert); err != nil {
			return false, fmt.Errorf("reading the Revert %s: %w", key, err)
		}
		phase := revert.Status.Phase
		return phase != "" && phase != v1alpha1.RevertPending, nil
	})
	if wait.Interrupted(err) && !errors.Is(ctx.Err(), context.Canceled) {
		return revert.Status, fmt.Errorf("no commit within %s: the Revert %s is %s (%s); it goes on, delete it to take the wish back",
			timeout, key.Name, orDash(string(revert.Status.Phase)), orDash(revert.Status.Message))
	}
	return revert.Status, err
}

// undone says what the commit did and what happens next, or why there is none.
func undone(revert string, status v1alpha1.RevertStatus, target pastView) (string, error) {
	what := fmt.Sprintf("revision %d (template %s)", target.Revision, target.Template)
	if target.Subject != "" {
		what = fmt.Sprintf("revision %d (%s %s)", target.Revision, target.Commit, target.Subject)
	}
	switch status.Phase {
	case v1alpha1.RevertPushed, v1alpha1.RevertObserved:
		return fmt.Sprintf("Commit %s on %s brings back %s; its rollout starts as soon as the commit is read", status.ShortCommit, status.Branch, what), nil
	case v1alpha1.RevertPullRequestOpen:
		return fmt.Sprintf("The pull request %s brings back %s when it is merged", status.PullRequest, what), nil
	case v1alpha1.RevertAlreadyReverted:
		return fmt.Sprintf("Git declares %s already; nothing was committed", what), nil
	case v1alpha1.RevertBlocked:
		return "", fmt.Errorf("undo is blocked (%s): %s; the Revert %s is tried again, delete it to take the wish back", status.Reason, status.Message, revert)
	}
	return "", fmt.Errorf("undo did nothing (%s): %s", status.Phase, status.Message)
}
