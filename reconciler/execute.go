package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/persist"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers/selector"
)

// execute carries a plan out in the order of its fields. Each write carries what
// was read; the first that fails ends the pass, and the next one decides anew.
func (r *Reconciler) execute(ctx context.Context, seen *observed, decided plan.Plan) error {
	steps := []func(context.Context, *observed, plan.Plan) error{
		r.executeRouting, r.executeServices, r.executeReplicaSets, r.executePrune,
		r.executeStatus, r.executeRuns, r.executeExperiments, r.executeProbes, r.executeRevert,
		r.executeEvictions, r.executeWorkloads, r.executeSize, r.executeFinalizers,
	}
	for _, step := range steps {
		if err := step(ctx, seen, decided); err != nil {
			return err
		}
	}
	for _, event := range decided.Events {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(seen.rollout, nil, kind, event.Reason, "Rollout", "%s", event.Message)
	}
	return r.executePodMetadata(ctx, seen, decided)
}

// executeRouting writes the weights. A router in trouble must not keep the rest
// of the plan from happening (an abort is to be persisted, a deadline kept), so
// its error is only returned at once when it is a lost race; else the observed
// weights of the next pass tell.
func (r *Reconciler) executeRouting(ctx context.Context, seen *observed, decided plan.Plan) error {
	if seen.router == nil {
		return nil
	}
	var err error
	switch {
	case decided.Release:
		err = r.release(ctx, seen)
	case decided.Split != nil:
		err = seen.router.Apply(ctx, seen.target, *decided.Split)
	}
	return r.refusedTraffic(ctx, seen, err)
}

// refusedTraffic says that traffic could not be moved, and returns the error only
// if the pass can't go on.
func (r *Reconciler) refusedTraffic(ctx context.Context, seen *observed, err error) error {
	if err == nil || isConflict(err) || ctx.Err() != nil {
		return err
	}
	log.FromContext(ctx).Error(err, "The traffic could not be moved; it is tried again")
	r.Events.Eventf(seen.rollout, nil, corev1.EventTypeWarning, v1alpha1.ReasonTrafficRoutingError, "Rollout", "%s", err.Error())
	return nil
}

func (r *Reconciler) release(ctx context.Context, seen *observed) error {
	if err := seen.router.Release(ctx, seen.target); err != nil {
		return fmt.Errorf("releasing the routing: %w", err)
	}
	return nil
}

func (r *Reconciler) executeServices(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Services {
		if want.Hash == "" { // it selects every version then: none may be there that isn't seen
			if err := r.confirmSets(ctx, seen); err != nil {
				return err
			}
		}
		key := types.NamespacedName{Namespace: seen.rollout.Namespace, Name: want.Name}
		if err := selector.Apply(ctx, r.Client, r.Live, key, want.Hash); err != nil {
			err = fmt.Errorf("selecting %s by Service %s: %w", want.Hash, key, err)
			if want.Routes {
				err = r.refusedTraffic(ctx, seen, err)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reconciler) executeReplicaSets(ctx context.Context, seen *observed, decided plan.Plan) error {
	if resizes(seen, decided) {
		if err := r.confirmSets(ctx, seen); err != nil {
			return err
		}
	}
	for _, want := range decided.ReplicaSets {
		var err error
		if want.Create {
			err = r.createReplicaSet(ctx, seen, want)
		} else {
			err = r.patchReplicaSet(ctx, seen, want)
		}
		if err != nil {
			return err
		}
	}
	return r.alignSets(ctx, seen, decided)
}

func (r *Reconciler) createReplicaSet(ctx context.Context, seen *observed, want plan.ReplicaSetWant) error {
	set, err := renderReplicaSet(seen.rollout, want)
	if err != nil {
		return err
	}
	err = r.strict().Create(ctx, set, client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsAlreadyExists(err) {
		return &staleError{what: "ReplicaSet " + set.GetName()}
	}
	if err != nil {
		return fmt.Errorf("creating ReplicaSet %s: %w", set.GetName(), err)
	}
	return nil
}

// strict makes the API server refuse unknown and duplicate fields of a template.
func (r *Reconciler) strict() client.Client {
	return client.WithFieldValidation(r.Client, "Strict")
}

func (r *Reconciler) patchReplicaSet(ctx context.Context, seen *observed, want plan.ReplicaSetWant) error {
	live, ok := seen.sets[want.Hash]
	if !ok {
		return &staleError{what: "the ReplicaSet of template " + want.Hash}
	}
	next := renderMarks(live, want)
	next.Spec.MinReadySeconds = seen.rollout.Spec.MinReadySeconds
	renewAvoidance(next, antiAffinityOf(seen.rollout.Spec.Strategy), idle(live), want)
	if want.Metadata != nil {
		if err := renderMetadata(next, *want.Metadata); err != nil {
			return err
		}
	}
	return r.patchLocked(ctx, live, next)
}

// patchLocked writes what differs, if the ReplicaSet still is as it was read.
func (r *Reconciler) patchLocked(ctx context.Context, live, next *appsv1.ReplicaSet) error {
	if equality.Semantic.DeepEqual(live, next) {
		return nil
	}
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManagerRollout)); err != nil {
		return fmt.Errorf("patching ReplicaSet %s: %w", live.Name, err)
	}
	return nil
}

func (r *Reconciler) executePrune(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, name := range decided.Prune {
		for _, live := range seen.sets {
			if live.Name != name {
				continue
			}
			if err := r.Client.Delete(ctx, live.DeepCopy(), preconditions(live), client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting ReplicaSet %s: %w", name, err)
			}
		}
	}
	return nil
}

// preconditions make a delete hit exactly what was read.
func preconditions(live client.Object) client.Preconditions {
	uid, version := live.GetUID(), live.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// executeStatus persists the status, over the Rollout that was read: otherwise
// the whole decision rests on something that has changed. What is only there to be
// looked at is put off for looksEvery, and the next pass comes then.
func (r *Reconciler) executeStatus(ctx context.Context, seen *observed, decided plan.Plan) error {
	if equality.Semantic.DeepEqual(seen.rollout.Status, decided.Status) {
		r.record(seen, decided)
		return nil
	}
	key := client.ObjectKeyFromObject(seen.rollout)
	if r.writes.recent(key, seen.in.Now) && looksOnly(seen.rollout.Status, decided.Status) {
		seen.putOff = true
		return nil
	}
	next := seen.rollout.DeepCopy()
	next.Status = *decided.Status.DeepCopy()
	if err := persist.Status(ctx, r.Client, seen.rollout, next, v1alpha1.FieldManagerRollout); err != nil {
		return fmt.Errorf("persisting the status: %w", err)
	}
	r.writes.note(key, seen.in.Now)
	seen.rollout.ResourceVersion = next.ResourceVersion // what is written after it follows from it
	r.record(seen, decided)
	return nil
}

func (r *Reconciler) executeRuns(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Runs {
		run, err := renderRun(seen, want)
		if err != nil {
			return err
		}
		err = r.Client.Create(ctx, run, client.FieldOwner(v1alpha1.FieldManagerRollout))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating AnalysisRun %s: %w", run.Name, err)
		}
	}
	for _, name := range decided.Terminate {
		if err := r.terminate(ctx, seen.runs[name]); err != nil {
			return fmt.Errorf("ending AnalysisRun %s: %w", name, err)
		}
	}
	for _, name := range decided.PruneRuns {
		live, ok := seen.runs[name]
		if !ok {
			continue
		}
		if err := r.Client.Delete(ctx, live.DeepCopy(), preconditions(live)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting AnalysisRun %s: %w", name, err)
		}
	}
	return nil
}

func (r *Reconciler) terminate(ctx context.Context, live *v1alpha1.AnalysisRun) error {
	if live == nil || live.Spec.Terminate {
		return nil
	}
	// With the uid and without the resourceVersion, on purpose: terminate only ever
	// becomes true, and the status that changes with each measurement must not keep
	// it from doing so.
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": live.UID}, "spec": map[string]any{"terminate": true},
	})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsInvalid(err) { // what the API server says of another uid
		return &staleError{what: "the AnalysisRun of the name " + live.Name}
	}
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) executeRevert(ctx context.Context, seen *observed, decided plan.Plan) error {
	if decided.Revert == nil {
		return nil
	}
	revert := renderRevert(seen.rollout, decided.Revert)
	err := r.Client.Create(ctx, revert, client.FieldOwner(v1alpha1.FieldManagerRollout))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("asking for the revert %s: %w", revert.Name, err)
	}
	return nil
}
