package controller

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// disowned is a Revert that no Rollout asks for.
func disowned(format string, args ...any) *step {
	stop := blocked(v1alpha1.RevertReasonRefused, format, args...)
	stop.disowned = true
	return &stop
}

// vouch says why the live Rollout doesn't ask for this revert; nil when it does.
// Who may create Reverts has no say over Git by that: the Rollout must have
// rejected this hash at this attempt, must call the other one stable, and must
// come from this GitSync.
//
// There is no race with the Rollout's controller: it writes its status before it
// makes the Revert. Where the status was lost, the marks on the ReplicaSets speak
// (law 7). A Rollout that is gone speaks for nothing: the Revert waits for its
// return, and ages out.
//
// For an undo, who may create Reverts has a say, and vouchUndo says how far.
func (w *work) vouch(ctx context.Context) (*step, error) {
	s := w.revert.Spec
	key := types.NamespacedName{Namespace: s.Rollout.Namespace, Name: s.Rollout.Name}
	rollout := &v1alpha1.Rollout{}
	if err := w.own.Get(ctx, key, rollout); err != nil {
		if apierrors.IsNotFound(err) {
			return disowned("Rollout %s does not exist, so that nothing says that template %s failed: revert by hand, or delete this Revert", key, s.Rejected), nil
		}
		return nil, err
	}
	if s.Rollout.UID != "" && s.Rollout.UID != string(rollout.UID) {
		return disowned("it is about an earlier Rollout %s, which was deleted: revert by hand, or delete this Revert", key), nil
	}
	var source v1alpha1.Source
	declarer := s.GitSync.Namespace + "/" + s.GitSync.Name
	if err := json.Unmarshal([]byte(rollout.Annotations[v1alpha1.SourceAnnotation]), &source); err != nil || source.GitSync != declarer {
		return disowned("Rollout %s does not come from GitSync %s (annotation %s): delete this Revert; its controller makes another one if one is needed", key, declarer, v1alpha1.SourceAnnotation), nil
	}
	if s.Undo != nil {
		return w.vouchUndo(ctx, rollout)
	}
	marks, err := w.marks(ctx, rollout)
	if err != nil {
		return nil, err
	}
	if stop := w.rejection(rollout, marks); stop != nil {
		return stop, nil
	}
	if s.Stable != rollout.Status.StableRS && marks[s.Stable] != v1alpha1.RoleStable {
		return disowned("Rollout %s calls template %q stable and not %s: delete this Revert; its controller makes another one if one is needed", key, rollout.Status.StableRS, s.Stable), nil
	}
	return nil, nil
}

// rejection is nil when the Rollout holds this hash and attempt rejected.
func (w *work) rejection(rollout *v1alpha1.Rollout, marks map[string]string) *step {
	s := w.revert.Spec
	var entry *v1alpha1.RejectedVersion
	for i := range rollout.Status.Rejected {
		if rollout.Status.Rejected[i].Hash == s.Rejected {
			entry = &rollout.Status.Rejected[i]
		}
	}
	switch {
	case entry == nil && marks[s.Rejected] == v1alpha1.RoleRejected:
		return nil // the status was lost, and is made again of what is left
	case entry != nil && (entry.Attempt > s.Attempt || entry.Attempt == s.Attempt && entry.Cleared):
		return &step{phase: v1alpha1.RevertSuperseded, message: fmt.Sprintf(
			"a person lifted the hold on template %s after attempt %d: that attempt is not reverted any more", s.Rejected, s.Attempt)}
	case entry == nil || entry.Attempt != s.Attempt:
		return disowned("Rollout %s/%s has not rejected template %s at attempt %d (status.rejected): take a version back with pushback abort, or revert by hand, and delete this Revert",
			rollout.Namespace, rollout.Name, s.Rejected, s.Attempt)
	}
	return nil
}

// marks are the roles by template hash that the Rollout's controller has written
// on its ReplicaSets.
func (w *work) marks(ctx context.Context, rollout *v1alpha1.Rollout) (map[string]string, error) {
	var sets appsv1.ReplicaSetList
	if err := w.own.List(ctx, &sets, client.InNamespace(rollout.Namespace), client.HasLabels{v1alpha1.TemplateHashLabel}); err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	out := map[string]string{}
	for i := range sets.Items {
		if set := &sets.Items[i]; metav1.IsControlledBy(set, rollout) {
			out[set.Labels[v1alpha1.TemplateHashLabel]] = set.Annotations[v1alpha1.RoleAnnotation]
		}
	}
	return out, nil
}

// newVerdict is true when a Rollout may vouch for another Revert than before, or
// has other settings.
var newVerdict = predicate.Funcs{
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Rollout)
		after, isRollout := e.ObjectNew.(*v1alpha1.Rollout)
		return ok && isRollout && (before.Generation != after.Generation || verdicts(before) != verdicts(after) ||
			before.Annotations[v1alpha1.SourceAnnotation] != after.Annotations[v1alpha1.SourceAnnotation])
	},
}

// verdicts are what vouch reads of a status.
func verdicts(rollout *v1alpha1.Rollout) string {
	text := rollout.Status.StableRS
	for _, entry := range rollout.Status.Rejected {
		text += fmt.Sprintf(" %s/%d/%t", entry.Hash, entry.Attempt, entry.Cleared)
	}
	return text
}
