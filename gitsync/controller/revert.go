package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/internal/persist"
	"github.com/pushback-dev/pushback/revertspec"
)

// revertReconciler brings rejected versions out of Git.
type revertReconciler struct {
	own     client.Client
	git     *repositories
	events  events.EventRecorder
	options Options
	// poll makes a GitSync look at its branch at once.
	poll func(types.NamespacedName)
}

const (
	// retainFinal is how long a Revert is kept that is finished or disowned: longer
	// than any window that its push counts in.
	retainFinal = 7 * 24 * time.Hour
	// blockedRetry is when a blocked revert is tried again without a reason to.
	blockedRetry = time.Hour
	// authRetry is the same where a Secret may have changed, which isn't watched.
	authRetry = 5 * time.Minute
	// observeDelay is when a pushed revert is looked for on the branch.
	observeDelay = time.Second
	// racedDelay is when a revert is tried again that lost all of its races.
	racedDelay = 30 * time.Second
	// firstBackoff and lastBackoff bound the waits after a server's trouble.
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
)

func (r *revertReconciler) setUp(mgr ctrl.Manager) error {
	options := r.options.controller()
	options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff)
	return ctrl.NewControllerManagedBy(mgr).Named("revert").
		For(&v1alpha1.Revert{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.GitSync{}, handler.EnqueueRequestsFromMapFunc(r.revertsOf), builder.WithPredicates(newHead)).
		Watches(&v1alpha1.Rollout{}, handler.EnqueueRequestsFromMapFunc(r.revertsAbout), builder.WithPredicates(newVerdict)).
		WithOptions(options).
		Complete(r)
}

// newHead is true when a GitSync has seen another commit, or has another spec.
var newHead = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return true },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.GitSync)
		after, isSync := e.ObjectNew.(*v1alpha1.GitSync)
		return ok && isSync && (before.Generation != after.Generation ||
			before.Status.LastAppliedRevision != after.Status.LastAppliedRevision ||
			before.Status.LastAttemptedRevision != after.Status.LastAttemptedRevision)
	},
}

// revertsOf are the unfinished Reverts of a GitSync.
func (r *revertReconciler) revertsOf(ctx context.Context, object client.Object) []reconcile.Request {
	return r.unfinished(ctx, func(s v1alpha1.RevertRequest) bool {
		return s.GitSync.Namespace == object.GetNamespace() && s.GitSync.Name == object.GetName()
	})
}

// revertsAbout are the unfinished Reverts about a Rollout.
func (r *revertReconciler) revertsAbout(ctx context.Context, object client.Object) []reconcile.Request {
	return r.unfinished(ctx, func(s v1alpha1.RevertRequest) bool {
		return s.Rollout.Namespace == object.GetNamespace() && s.Rollout.Name == object.GetName()
	}, client.InNamespace(object.GetNamespace()))
}

func (r *revertReconciler) unfinished(ctx context.Context, wanted func(v1alpha1.RevertRequest) bool, options ...client.ListOption) []reconcile.Request {
	var list v1alpha1.RevertList
	if err := r.own.List(ctx, &list, options...); err != nil {
		return nil // each Revert comes back by itself, later
	}
	var out []reconcile.Request
	for _, revert := range list.Items {
		if wanted(revert.Spec) && !revert.Status.Phase.Final() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&revert)})
		}
	}
	return out
}

// Reconcile takes a Revert one step on.
func (r *revertReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	revert := &v1alpha1.Revert{}
	if err := r.own.Get(ctx, req.NamespacedName, revert); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if revert.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if revert.Status.Phase.Final() {
		return r.ageOut(ctx, revert)
	}
	before := revert.Status.DeepCopy()
	step, err := r.step(ctx, revert)
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	if err != nil && step.phase == "" {
		return ctrl.Result{}, err
	}
	r.say(revert, step)
	if !equality.Semantic.DeepEqual(*before, revert.Status) {
		read := revert.DeepCopy()
		read.Status = *before
		if lost := persist.Status(ctx, r.own, read, revert, v1alpha1.FieldManagerGitSync); lost != nil {
			if apierrors.IsConflict(lost) {
				return ctrl.Result{RequeueAfter: conflictDelay}, nil
			}
			return ctrl.Result{}, client.IgnoreNotFound(lost)
		}
		r.announce(revert, *before)
	}
	if revert.Status.Phase.Final() || step.disowned && r.left(revert) <= 0 {
		return r.ageOut(ctx, revert) // no event of ours comes back to it
	}
	return ctrl.Result{RequeueAfter: step.again}, err
}

// step is where a Revert is after a reconcile. With an error beside it the phase
// is said and the step is repeated after a back-off.
type step struct {
	phase   v1alpha1.RevertPhase
	reason  string
	message string
	// commit, head, branch, files and diff replace what the status has; empty keeps it.
	commit, head, branch, diff string
	files                      []string
	// pushed is true when a push was seen to have worked.
	pushed bool
	// disowned is true when no Rollout asks for the revert: it ages out like a
	// finished one.
	disowned bool
	// again is when to look again without a reason to.
	again time.Duration
}

func blocked(reason, format string, args ...any) step {
	again := blockedRetry
	if reason == v1alpha1.RevertReasonAuth {
		again = authRetry
	}
	return step{phase: v1alpha1.RevertBlocked, reason: reason, message: fmt.Sprintf(format, args...), again: again}
}

// step decides what is next. Nothing is remembered but what the status says and
// what the branch holds.
func (r *revertReconciler) step(ctx context.Context, revert *v1alpha1.Revert) (step, error) {
	if other := revert.Spec.Rollout.Namespace; other != revert.Namespace {
		return blocked(v1alpha1.RevertReasonPolicy, "it is about a Rollout of namespace %s: who may create a Revert in one namespace has no say over another", other), nil
	}
	sync := &v1alpha1.GitSync{}
	key := types.NamespacedName{Namespace: revert.Spec.GitSync.Namespace, Name: revert.Spec.GitSync.Name}
	if err := r.own.Get(ctx, key, sync); err != nil {
		if apierrors.IsNotFound(err) {
			return blocked(v1alpha1.RevertReasonRefused, "GitSync %s does not exist any more: create it, or delete this Revert", key), nil
		}
		return step{}, err
	}
	if sync.Spec.Suspend {
		return step{phase: pendingOr(revert), message: fmt.Sprintf("GitSync %s is suspended", key), again: blockedRetry}, nil
	}
	settings, err := r.settings(ctx, sync, revert)
	if err != nil {
		return step{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(sync))
	defer cancel()
	w := &work{revertReconciler: r, revert: revert, sync: sync, settings: settings}
	if revert.Status.Phase == v1alpha1.RevertPushed || revert.Status.PushedAt != nil {
		return w.observe(ctx)
	}
	return w.push(ctx)
}

// pendingOr is the phase of a Revert that waits: Pending, or Pushed once it was.
func pendingOr(revert *v1alpha1.Revert) v1alpha1.RevertPhase {
	if revert.Status.Phase == v1alpha1.RevertPushed {
		return v1alpha1.RevertPushed
	}
	return v1alpha1.RevertPending
}

// settings are those of the Rollout over the GitSync's; of the GitSync alone when
// the Rollout is gone.
func (r *revertReconciler) settings(ctx context.Context, sync *v1alpha1.GitSync, revert *v1alpha1.Revert) (v1alpha1.RevertSpec, error) {
	rollout := &v1alpha1.Rollout{}
	err := r.own.Get(ctx, types.NamespacedName{Namespace: revert.Spec.Rollout.Namespace, Name: revert.Spec.Rollout.Name}, rollout)
	if client.IgnoreNotFound(err) != nil {
		return v1alpha1.RevertSpec{}, err
	}
	return revertspec.Effective(sync.Spec.Revert, rollout.Spec.Revert), nil
}

// say writes a step into the status.
func (r *revertReconciler) say(revert *v1alpha1.Revert, s step) {
	status := &revert.Status
	status.ObservedGeneration = revert.Generation
	status.Phase, status.Reason, status.Message = s.phase, s.reason, truncate(s.message, maxMessage)
	status.RetryAt = nil
	if s.phase == v1alpha1.RevertBlocked {
		status.RetryAt = &metav1.Time{Time: r.options.Now().Add(s.again)}
	}
	if s.commit != "" {
		status.Commit, status.ShortCommit = s.commit, gitsync.Short(s.commit)
	}
	if s.head != "" {
		status.ObservedHead = s.head
	}
	if s.branch != "" {
		status.Branch = s.branch
	}
	if s.files != nil {
		status.Files = s.files
	}
	if s.diff != "" {
		status.PlannedDiff = s.diff
	}
	if s.pushed && status.PushedAt == nil {
		status.PushedAt = &metav1.Time{Time: r.options.Now()}
	}
	v := verdict{ready: metav1.ConditionFalse, reason: string(s.phase), message: s.message, stalled: s.phase == v1alpha1.RevertBlocked}
	if s.phase.Final() {
		v.ready = metav1.ConditionTrue
	} else if !v.stalled {
		v.ready = metav1.ConditionUnknown
	}
	if v.stalled {
		v.reason = s.reason
	}
	say(&status.Conditions, v, revert.Generation)
}

// announce emits an event when the phase or its reason has changed.
func (r *revertReconciler) announce(revert *v1alpha1.Revert, before v1alpha1.RevertStatus) {
	status := revert.Status
	if status.Phase == before.Phase && status.Reason == before.Reason {
		return
	}
	kind, reason := corev1.EventTypeNormal, string(status.Phase)
	if status.Phase == v1alpha1.RevertBlocked {
		kind, reason = corev1.EventTypeWarning, v1alpha1.ReasonRevertBlocked
	}
	note(r.events, revert, kind, reason, "Revert", status.Message)
}

// left is how long a Revert is kept yet, once it is of no use.
func (r *revertReconciler) left(revert *v1alpha1.Revert) time.Duration {
	since := revert.CreationTimestamp.Time
	if revert.Status.PushedAt != nil {
		since = revert.Status.PushedAt.Time
	}
	return since.Add(retainFinal).Sub(r.options.Now())
}

// ageOut deletes a finished Revert when nothing counts it any more.
func (r *revertReconciler) ageOut(ctx context.Context, revert *v1alpha1.Revert) (ctrl.Result, error) {
	if left := r.left(revert); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	uid, version := revert.UID, revert.ResourceVersion
	err := r.own.Delete(ctx, revert, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// trouble makes a step of an error of Git: what only a person can help blocks,
// the rest is tried again after a back-off.
func trouble(revert *v1alpha1.Revert, err error) (step, error) {
	var git *gitsync.Error
	if !errors.As(err, &git) {
		return step{}, err
	}
	switch git.Class {
	case gitsync.ErrPolicy, gitsync.ErrSignature:
		return blocked(v1alpha1.RevertReasonPolicy, "%v", err), nil
	case gitsync.ErrAuth, gitsync.ErrRepositoryNotFound:
		return blocked(v1alpha1.RevertReasonAuth, "%v", err), nil
	case gitsync.ErrBranchNotFound, gitsync.ErrEmptyRepository:
		return blocked(v1alpha1.RevertReasonNoBranch, "%v", err), nil
	case gitsync.ErrUnusable, gitsync.ErrPathNotFound:
		return blocked(v1alpha1.RevertReasonRefused, "%v", err), nil
	}
	waits := step{phase: pendingOr(revert), message: err.Error(), again: git.RetryAfter}
	if git.RetryAfter > 0 {
		return waits, nil
	}
	return waits, err
}
