package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/templatehash"
)

// observeReplicaSets reads the Rollout's ReplicaSets, after it has taken in those
// that lost their owner.
func (r *Reconciler) observeReplicaSets(ctx context.Context, seen *observed) error {
	if err := r.adopt(ctx, seen.rollout); err != nil {
		return err
	}
	var list appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &list, client.InNamespace(seen.rollout.Namespace),
		client.MatchingFields{ownerIndex: string(seen.rollout.UID)}); err != nil {
		return fmt.Errorf("listing ReplicaSets: %w", err)
	}
	if err := r.letGo(ctx, seen.rollout, &list); err != nil {
		return err
	}
	seen.sets = map[string]*appsv1.ReplicaSet{}
	for i := range list.Items {
		set := &list.Items[i]
		hash := set.Labels[v1alpha1.TemplateHashLabel]
		seen.sets[hash] = set
		seen.in.ReplicaSets = append(seen.in.ReplicaSets, observeReplicaSet(set, hash))
	}
	matchOlderHash(seen)
	return nil
}

// letGo adds the ReplicaSets that a Rollout which is deleted without its pods has
// been parted from already: until its traffic is given back it sizes them still. They
// are not adopted again.
func (r *Reconciler) letGo(ctx context.Context, rollout *v1alpha1.Rollout, to *appsv1.ReplicaSetList) error {
	ours, ok := setSelector(rollout)
	if !ok || rollout.DeletionTimestamp.IsZero() {
		return nil
	}
	var list appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &list, client.InNamespace(rollout.Namespace), client.MatchingLabelsSelector{Selector: ours}); err != nil {
		return fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for _, set := range list.Items {
		if metav1.GetControllerOf(&set) == nil {
			to.Items = append(to.Items, set)
		}
	}
	return nil
}

// isOf says that a ReplicaSet is the Rollout's, or was until its deletion began.
func isOf(set *appsv1.ReplicaSet, rollout *v1alpha1.Rollout) bool {
	return metav1.IsControlledBy(set, rollout) || !rollout.DeletionTimestamp.IsZero() && metav1.GetControllerOf(set) == nil
}

// adopt takes in ReplicaSets of ours that match the selector and that nobody
// controls, as after a Rollout that was deleted without its pods and made again:
// what they serve would be overlooked, and the next version be taken for the first.
func (r *Reconciler) adopt(ctx context.Context, rollout *v1alpha1.Rollout) error {
	ours, ok := setSelector(rollout)
	if !ok || !rollout.DeletionTimestamp.IsZero() {
		return nil
	}
	var list appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &list, client.InNamespace(rollout.Namespace), client.MatchingLabelsSelector{Selector: ours}); err != nil {
		return fmt.Errorf("listing ReplicaSets: %w", err)
	}
	adopted := ""
	for i := range list.Items {
		set := &list.Items[i]
		if metav1.GetControllerOf(set) != nil || !set.DeletionTimestamp.IsZero() {
			continue
		}
		if adopted == "" {
			if err := r.recheck(ctx, rollout); err != nil {
				return err
			}
		}
		next := set.DeepCopy()
		next.OwnerReferences = append(next.OwnerReferences, ownerReference(rollout))
		if err := r.patchLocked(ctx, set, next); err != nil {
			return fmt.Errorf("adopting: %w", err)
		}
		log.FromContext(ctx).Info("Adopted a ReplicaSet that nobody controlled", "replicaSet", set.Name)
		adopted = set.Name
	}
	if adopted != "" {
		return &staleError{what: "the adoption of ReplicaSet " + adopted}
	}
	return nil
}

// recheck reads the Rollout once more after its orphans were seen: they may be its
// own, let go by a deletion that came after it was read. To adopt them then is to
// have the garbage collector delete them.
func (r *Reconciler) recheck(ctx context.Context, rollout *v1alpha1.Rollout) error {
	now := &v1alpha1.Rollout{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(rollout), now)
	switch {
	case apierrors.IsNotFound(err), err == nil && (now.UID != rollout.UID || !now.DeletionTimestamp.IsZero()):
		return &staleError{what: "the deletion of Rollout " + rollout.Name}
	case err != nil:
		return fmt.Errorf("reading the Rollout again: %w", err)
	}
	return nil
}

// setSelector selects the ReplicaSets that may be a Rollout's by their labels;
// false for a Rollout whose own selector selects nothing in particular.
func setSelector(rollout *v1alpha1.Rollout) (labels.Selector, bool) {
	selector, err := metav1.LabelSelectorAsSelector(rollout.Spec.Selector)
	if err != nil || selector.Empty() || rollout.Spec.Selector == nil {
		return nil, false // validation has said so
	}
	hashed, err := labels.NewRequirement(v1alpha1.TemplateHashLabel, selection.Exists, nil)
	if err != nil {
		return nil, false // never: the label is a constant
	}
	return selector.Add(*hashed), true
}

// matchOlderHash keeps the identity of a ReplicaSet that was made with an older
// version of the hash: if the template hashes to it by that version, that is the
// template's hash. With a version that this build doesn't know nothing can be
// told, and nothing is touched.
func matchOlderHash(seen *observed) {
	if seen.rollout.Spec.Template == nil || seen.in.Template.Hash == "" {
		return
	}
	for hash, set := range seen.sets {
		version := set.Annotations[v1alpha1.HashVersionAnnotation]
		if version == "" || version == templatehash.Version {
			continue
		}
		old, err := templatehash.Hash(version, seen.rollout.Spec.Template.Raw)
		if err != nil {
			seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf("ReplicaSet %s: %v", set.Name, err))
			continue
		}
		if old == hash {
			seen.in.Template.Hash = hash
		}
	}
}

// observeTaken says why the name of a version's ReplicaSet is taken by one that
// isn't among the Rollout's.
func (r *Reconciler) observeTaken(ctx context.Context, seen *observed, name string) error {
	set := &appsv1.ReplicaSet{}
	key := types.NamespacedName{Namespace: seen.rollout.Namespace, Name: name}
	err := r.Live.Get(ctx, key, set)
	switch {
	case apierrors.IsNotFound(err), err == nil && metav1.IsControlledBy(set, seen.rollout):
		return &staleError{what: "ReplicaSet " + name}
	case err != nil:
		return fmt.Errorf("reading ReplicaSet %s: %w", key, err)
	}
	owner := "nobody, and without the labels of spec.selector"
	if controller := metav1.GetControllerOf(set); controller != nil {
		owner = fmt.Sprintf("%s %s (uid %s)", controller.Kind, controller.Name, controller.UID)
	}
	seen.in.Missing = append(seen.in.Missing, fmt.Sprintf(
		"the name of ReplicaSet %s, which belongs to %s: delete that ReplicaSet, or rename the Rollout", key, owner))
	return nil
}

// resizes says that a plan creates a ReplicaSet or changes the size of one.
func resizes(seen *observed, decided plan.Plan) bool {
	for _, want := range decided.ReplicaSets {
		live := seen.sets[want.Hash]
		if want.Create || live == nil || live.Spec.Replicas == nil || *live.Spec.Replicas != want.Replicas {
			return true
		}
	}
	return false
}

// confirmSets makes sure that all ReplicaSets still are as they were read: the
// size of one rests on the pods of the others, and the cache may be behind.
func (r *Reconciler) confirmSets(ctx context.Context, seen *observed) error {
	selector, ok := setSelector(seen.rollout)
	if !ok {
		return nil // nothing is sized then
	}
	var list appsv1.ReplicaSetList
	if err := r.Live.List(ctx, &list, client.InNamespace(seen.rollout.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing ReplicaSets: %w", err)
	}
	count := 0
	for i := range list.Items {
		live := &list.Items[i]
		if !isOf(live, seen.rollout) {
			continue
		}
		count++
		if known := seen.sets[live.Labels[v1alpha1.TemplateHashLabel]]; known == nil || known.ResourceVersion != live.ResourceVersion {
			return &staleError{what: "the newest state of ReplicaSet " + live.Name}
		}
	}
	if count != len(seen.sets) {
		return &staleError{what: "the deletion of a ReplicaSet"}
	}
	return nil
}

// alignSets gives the versions that are not written otherwise what follows from
// the spec and their role: a changed minReadySeconds to those that have pods (the
// template's hash doesn't cover it, so that no new version brings it along), and
// metadata to all.
func (r *Reconciler) alignSets(ctx context.Context, seen *observed, decided plan.Plan) error {
	written := map[string]bool{}
	for _, want := range decided.ReplicaSets {
		written[want.Hash] = true
	}
	wanted := map[string]v1alpha1.PodTemplateMetadata{}
	for _, want := range decided.Metadata {
		wanted[want.Hash] = want.Metadata
	}
	for _, hash := range slices.Sorted(maps.Keys(seen.sets)) {
		live := seen.sets[hash]
		if written[hash] || len(seen.in.Invalid) > 0 || !live.DeletionTimestamp.IsZero() {
			continue
		}
		next := live.DeepCopy()
		if live.Spec.Replicas != nil && *live.Spec.Replicas > 0 {
			next.Spec.MinReadySeconds = seen.rollout.Spec.MinReadySeconds
		}
		if metadata, ok := wanted[hash]; ok {
			if err := renderMetadata(next, metadata); err != nil {
				return err
			}
		}
		if err := r.patchLocked(ctx, live, next); err != nil {
			return err
		}
	}
	return nil
}
