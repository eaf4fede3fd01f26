package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/predicates"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
	"github.com/pushback-dev/pushback/internal/persist"
	"github.com/pushback-dev/pushback/validation"
)

// syncReconciler makes the cluster hold what GitSyncs declare.
type syncReconciler struct {
	own     client.Client
	git     *repositories
	clients *tenants
	events  events.EventRecorder
	options Options
	// polls asks for a poll at once.
	polls chan event.GenericEvent

	mu sync.Mutex
	// known is what each GitSync declared at its last attempt, so that a poll that
	// finds nothing new renders nothing.
	known map[types.NamespacedName]*rendered
	// memories are what each GitSync's last applies found.
	memories map[types.NamespacedName]*memory
}

// pollQueue is how many asked-for polls may wait to be taken up. One that finds
// the queue full is dropped: the interval brings it about as well.
const pollQueue = 1024

// conflictDelay is how long an attempt waits after it lost a race.
const conflictDelay = time.Second

// jitterShare of an interval is added to it at most, so that GitSyncs spread out.
const jitterShare = 0.1

func (r *syncReconciler) setUp(mgr ctrl.Manager) error {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named("gitsync").
		For(&v1alpha1.GitSync{}, builder.WithPredicates(changed)).
		WatchesRawSource(source.Channel(r.polls, &handler.EnqueueRequestForObject{})).
		WithOptions(r.options.controller()).
		Complete(r)
}

// askPoll makes a GitSync look at its branch at once.
func (r *syncReconciler) askPoll(key types.NamespacedName) {
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	select {
	case r.polls <- event.GenericEvent{Object: sync}:
	default:
	}
}

// Reconcile makes one attempt at the head of the branch, whatever the last one
// was about.
func (r *syncReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	sync := &v1alpha1.GitSync{}
	err := r.own.Get(ctx, req.NamespacedName, sync)
	if apierrors.IsNotFound(err) || err == nil && sync.DeletionTimestamp != nil {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if sync.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	attempt := &attempt{
		syncReconciler: r, sync: sync, stored: sync.Status.DeepCopy(),
		ready: apimeta.FindStatusCondition(sync.Status.DeepCopy().Conditions, meta.ReadyCondition),
	}
	bounded, cancel := context.WithTimeout(ctx, timeoutOf(sync))
	defer cancel()
	result := attempt.run(bounded)
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err() // the controller is stopping: that is nothing to tell of a repository
	}
	if result.conflict {
		log.FromContext(ctx).V(1).Info("Lost a race, trying again")
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if err := attempt.finish(ctx, result.verdict); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: conflictDelay}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	wait := sync.Spec.Interval.Duration
	if result.verdict.again > 0 {
		wait = result.verdict.again
	}
	return ctrl.Result{RequeueAfter: apiwait.Jitter(wait, jitterShare)}, nil
}

func (r *syncReconciler) forget(key types.NamespacedName) {
	r.git.forget(key)
	r.git.forget(writerOf(key))
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
	delete(r.memories, key)
}

// attempt is one attempt of one GitSync.
type attempt struct {
	*syncReconciler
	sync *v1alpha1.GitSync
	// stored is the status as the API server has it.
	stored *v1alpha1.GitSyncStatus
	// ready is what the last attempt came to; nil when there was none.
	ready *metav1.Condition
}

// result of an attempt; conflict is true when it is to be repeated and nothing said.
type result struct {
	verdict  verdict
	conflict bool
}

func (a *attempt) key() types.NamespacedName { return client.ObjectKeyFromObject(a.sync) }

// run looks at the branch, and applies what it declares.
func (a *attempt) run(ctx context.Context) result {
	if problems := validation.GitSync(a.sync.Spec); len(problems) > 0 {
		message := ""
		for _, problem := range problems {
			message += fmt.Sprintf("%s: %s; ", problem.Field, problem.Message)
		}
		return result{verdict: verdict{ready: metav1.ConditionFalse, reason: v1alpha1.ReasonInvalidGitSync, message: message[:len(message)-2], stalled: true}}
	}
	now, err := a.read(ctx)
	if err != nil {
		if apierrors.IsConflict(err) {
			return result{conflict: true}
		}
		return result{verdict: a.orTimeout(ctx, judge(err))}
	}
	return a.apply(ctx, now)
}

// orTimeout says that the attempt took too long, instead of what broke off then.
func (a *attempt) orTimeout(ctx context.Context, v verdict) verdict {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		v.message = fmt.Sprintf("the attempt took longer than spec.timeout (%s): %s", timeoutOf(a.sync), v.message)
	}
	return v
}

// read returns what the head declares: from memory when neither the head nor the
// spec has changed.
func (a *attempt) read(ctx context.Context) (*rendered, error) {
	remote, err := a.git.remote(ctx, a.sync, a.sync.Spec.SecretRef)
	if err != nil {
		return nil, err
	}
	store := a.git.store(a.key(), remote)
	head, err := store.Head(ctx, remote)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	known := a.known[a.key()]
	a.mu.Unlock()
	if known != nil && known.tree.Commit == head && known.generation == a.sync.Generation {
		return known, nil
	}
	if err := a.announce(ctx, gitsync.Revision{Branch: remote.Branch, Hash: head}); err != nil {
		return nil, err
	}
	tree, err := store.Fetch(ctx, remote, a.sync.Spec.Path)
	if err != nil {
		return nil, err
	}
	a.sync.Status.LastAttemptedRevision = gitsync.Revision{Branch: remote.Branch, Hash: tree.Commit}.String()
	made, err := declare(openTree(ctx, tree, store.Store, remote), a.sync)
	if err != nil {
		return nil, err
	}
	messages, err := store.Since(ctx, remote, tree, gitsync.HashOf(a.sync.Status.LastAppliedRevision))
	if err != nil {
		return nil, err
	}
	now := &rendered{generation: a.sync.Generation, tree: tree, declared: made, messages: messages}
	a.keep(a.key(), now)
	return now, nil
}

// announce says that a new commit or spec is worked on, and notes the commit, so
// that an attempt that repeats this one says nothing, however far it got: the
// conditions stay until it has something new.
func (a *attempt) announce(ctx context.Context, revision gitsync.Revision) error {
	status := &a.sync.Status
	last := status.LastAttemptedRevision
	if last == "" {
		last = status.LastAppliedRevision
	}
	if last == revision.String() && status.ObservedGeneration == a.sync.Generation {
		return nil
	}
	if last != revision.String() {
		status.LastAttemptedRevision = revision.String()
	}
	say(&status.Conditions, progressing("Reading "+revision.String()), a.sync.Generation)
	return a.persist(ctx)
}

// apply applies what was read.
func (a *attempt) apply(ctx context.Context, now *rendered) result {
	c, err := a.clients.client(a.sync, a.options.DefaultServiceAccount)
	if err != nil {
		return result{verdict: judge(err)}
	}
	commits := commitsOf(branchOf(a.sync), now.messages)
	revision := commits[0].Revision
	applier := apply.Applier{Client: c, Own: a.own, Claims: a.options.claims}
	out, err := applier.Apply(ctx, apply.In{
		GitSync: a.key(), Objects: now.declared.objects, Rejected: now.declared.result.Rejected,
		TargetNamespace: a.sync.Spec.TargetNamespace, Force: a.sync.Spec.Force, Prune: a.sync.Spec.Prune,
		Inventory: inventoryOf(a.sync),
		Commit:    commits[0], Between: commits[1:],
		Memory:  a.memoryOf(a.sync),
		Sources: now.declared.sources,
		Intend:  a.intend,
	})
	if err != nil {
		if apierrors.IsConflict(err) {
			return result{conflict: true}
		}
		return result{verdict: a.orTimeout(ctx, judge(err))}
	}
	a.sync.Status.Inventory = &v1alpha1.ResourceInventory{Entries: out.Inventory}
	if onlyConflicts(out.Failures) {
		return result{conflict: true}
	}
	v := judgeApply(out, now.declared.result.Rejected, revision)
	a.sync.Status.LastAttemptedRevision = revision.String()
	if v.ready == metav1.ConditionTrue {
		a.sync.Status.LastAppliedRevision, a.sync.Status.LastAttemptedRevision = revision.String(), ""
		a.settle(now)
	}
	a.report(out, v)
	return result{verdict: v}
}

func inventoryOf(sync *v1alpha1.GitSync) []v1alpha1.ResourceRef {
	if sync.Status.Inventory == nil {
		return nil
	}
	return sync.Status.Inventory.Entries
}

// report emits an event when something in the cluster has changed.
func (a *attempt) report(out apply.Out, v verdict) {
	text, count := "", 0
	for _, change := range out.Changes {
		if change.Action == apply.Unchanged || change.Action == apply.Skipped || change.Action == apply.Kept {
			continue
		}
		if count++; count <= shownFailures {
			text += fmt.Sprintf("; %s %s", change.Object, change.Action)
		}
	}
	if count == 0 {
		return
	}
	if count > shownFailures {
		text += fmt.Sprintf("; and %d more", count-shownFailures)
	}
	revision := a.sync.Status.LastAppliedRevision
	if v.ready != metav1.ConditionTrue {
		revision = a.sync.Status.LastAttemptedRevision
	}
	note(a.events, a.sync, corev1.EventTypeNormal, meta.ReconciliationSucceededReason, "Apply", revision+text)
}

// finish says what came of the attempt, with a warning when that is news.
func (a *attempt) finish(ctx context.Context, v verdict) error {
	status := &a.sync.Status
	say(&status.Conditions, v, a.sync.Generation)
	status.ObservedGeneration = a.sync.Generation
	if token, ok := meta.ReconcileAnnotationValue(a.sync.GetAnnotations()); ok {
		status.SetLastHandledReconcileRequest(token)
	}
	if err := a.persist(ctx); err != nil {
		return err
	}
	if v.ready == metav1.ConditionFalse && (a.ready == nil || a.ready.Reason != v.reason || a.ready.Message != truncate(v.message, maxMessage)) {
		note(a.events, a.sync, corev1.EventTypeWarning, v.reason, "Sync", v.message)
	}
	return nil
}

// persist writes the status when it has changed, bound to the GitSync as it was read.
func (a *attempt) persist(ctx context.Context) error {
	if equality.Semantic.DeepEqual(*a.stored, a.sync.Status) {
		return nil
	}
	read := a.sync.DeepCopy()
	read.Status = *a.stored.DeepCopy()
	if err := persist.Status(ctx, a.own, read, a.sync, v1alpha1.FieldManagerGitSync); err != nil {
		return err
	}
	a.stored = a.sync.Status.DeepCopy()
	return nil
}

// intend notes objects in the inventory before they are made, so that a crash
// right after can't leave one behind that nobody prunes.
func (a *attempt) intend(ctx context.Context, inventory []v1alpha1.ResourceRef) error {
	a.sync.Status.Inventory = &v1alpha1.ResourceInventory{Entries: inventory}
	return a.persist(ctx)
}
