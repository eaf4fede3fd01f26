package reconciler

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// observeDryRun asks the API server whether it would take the ReplicaSet of a
// template that has none yet, unknown fields refused. What Git declares is stored
// as declared, so this is where a typing error in the template is found: before
// anything is scaled or routed.
func (r *Reconciler) observeDryRun(ctx context.Context, seen *observed) error {
	hash := seen.in.Template.Hash
	if hash == "" || len(seen.in.Invalid) > 0 || seen.in.Deleting {
		return nil
	}
	if _, exists := seen.sets[hash]; exists {
		return nil
	}
	set, err := renderReplicaSet(seen.rollout, plan.ReplicaSetWant{Hash: hash, Avoid: seen.in.Status.StableRS})
	if err != nil {
		seen.in.Invalid = append(seen.in.Invalid, err.Error())
		return nil
	}
	err = r.strict().Create(ctx, set, client.DryRunAll, client.FieldOwner(v1alpha1.FieldManagerRollout))
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.observeTaken(ctx, seen, set.GetName())
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		seen.in.Invalid = append(seen.in.Invalid, "spec.template: "+err.Error())
		return nil
	case ctx.Err() != nil:
		return err
	}
	// A quota, an admission policy or a webhook in trouble: it may change without
	// us, and the words are for a person. Nothing starts until the server takes it,
	// and what is in progress can be taken back meanwhile.
	seen.in.Missing = append(seen.in.Missing, "the API server does not take the ReplicaSet: "+err.Error())
	return nil
}
