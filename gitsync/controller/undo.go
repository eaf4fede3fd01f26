package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync/apply"
)

// vouchUndo says why a person's wish for an earlier version can't be granted; nil
// when it can. That they may create Reverts in the namespace is their right to
// ask; what they can ask for are the templates that Git has declared for this
// very Rollout before, as the kept files show. A rejected one is not brought back
// by that: the cluster would hold it.
func (w *work) vouchUndo(ctx context.Context, rollout *v1alpha1.Rollout) (*step, error) {
	s := w.revert.Spec
	for _, entry := range rollout.Status.Rejected {
		if entry.Hash == s.Stable && !entry.Cleared {
			return disowned("template %s was rejected (%s: %s) and would be held: choose another one, or lift the hold with pushback retry --template %s and ask again",
				s.Stable, entry.Reason, entry.Message, s.Stable), nil
		}
	}
	key := types.NamespacedName{Namespace: rollout.Namespace, Name: apply.SourceName(rollout.Name, s.Stable)}
	kept := &appsv1.ControllerRevision{}
	err := w.own.Get(ctx, key, kept)
	switch {
	case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(kept, rollout):
		return disowned("template %s is no revision of Rollout %s/%s whose files are kept (ControllerRevision %s): pushback history -o wide lists those that are",
			s.Stable, rollout.Namespace, rollout.Name, key.Name), nil
	case err != nil:
		return nil, fmt.Errorf("reading the kept source: %w", err)
	}
	return nil, nil
}

// wanted names the template that is brought back, for messages.
func (w *work) wanted() string {
	if w.revert.Spec.Undo != nil {
		return "earlier template " + w.revert.Spec.Stable
	}
	return "stable template " + w.revert.Spec.Stable
}
