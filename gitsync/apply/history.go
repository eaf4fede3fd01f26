package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// defaultHistory is revisionHistoryLimit's default.
const defaultHistory = 10

// SourceName is the name of the ControllerRevision that keeps the files of a template.
func SourceName(rollout, hash string) string { return rollout + "-" + hash }

// keepSource keeps the files that the render read for a template, once per hash:
// the data of a ControllerRevision can't change, and any files that render to
// the template are good to go back to.
func (a *Applier) keepSource(ctx context.Context, in In, o *object, rollout *unstructured.Unstructured, version version) error {
	hash := version.hash
	key := types.NamespacedName{Namespace: rollout.GetNamespace(), Name: SourceName(rollout.GetName(), hash)}
	var kept appsv1.ControllerRevision
	err := a.Own.Get(ctx, key, &kept)
	if err == nil && metav1.IsControlledBy(&kept, rollout) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the kept source: %w", err)
	}
	if err == nil && kept.Labels[v1alpha1.RolloutNameLabel] != rollout.GetName() {
		return fmt.Errorf("the ControllerRevision %s belongs to something else: rename the Rollout", key)
	}
	if err == nil {
		// The Rollout was deleted and made again: what belonged to the old one goes with it.
		if err := a.Own.Delete(ctx, &kept, preconditions(&kept)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("replacing the kept source: %w", err)
		}
	}
	packed, err := PackSource(in.Commit.Revision, version.files(in, o))
	if err != nil {
		return err
	}
	packed.Subject = shorten(in.Commit.Subject)
	data, err := json.Marshal(packed)
	if err != nil {
		return err
	}
	history, err := a.history(ctx, rollout)
	if err != nil {
		return err
	}
	next := int64(1)
	if len(history) > 0 {
		next = history[len(history)-1].Revision + 1
	}
	made := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{
				v1alpha1.RolloutNameLabel: rollout.GetName(), v1alpha1.TemplateHashLabel: hash,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rollout, v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: next,
	}
	if err := a.Own.Create(ctx, made, client.FieldOwner(v1alpha1.FieldManagerGitSync)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("keeping the source: %w", err)
	}
	return a.trimHistory(ctx, rollout, append(history, *made), hash)
}

// history lists the kept sources of a Rollout, oldest first.
func (a *Applier) history(ctx context.Context, rollout *unstructured.Unstructured) ([]appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	if err := a.Own.List(ctx, &list, client.InNamespace(rollout.GetNamespace()), client.MatchingLabels{v1alpha1.RolloutNameLabel: rollout.GetName()}); err != nil {
		return nil, fmt.Errorf("listing the kept sources: %w", err)
	}
	var out []appsv1.ControllerRevision
	for _, kept := range list.Items {
		if metav1.IsControlledBy(&kept, rollout) {
			out = append(out, kept)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Revision < out[j].Revision })
	return out, nil
}

// trimHistory deletes the oldest sources over revisionHistoryLimit. Those of the
// stable version, of the one being rolled out and of the declared one stay.
func (a *Applier) trimHistory(ctx context.Context, rollout *unstructured.Unstructured, history []appsv1.ControllerRevision, declared string) error {
	limit := int64(defaultHistory)
	if stated, found, err := unstructured.NestedInt64(rollout.Object, "spec", "revisionHistoryLimit"); err == nil && found {
		limit = stated
	}
	stable, _, _ := unstructured.NestedString(rollout.Object, "status", "stableRS")
	current, _, _ := unstructured.NestedString(rollout.Object, "status", "currentPodHash")
	over := int64(len(history)) - limit - 1 // the stable one doesn't count
	for i := range history {
		kept := &history[i]
		hash := kept.Labels[v1alpha1.TemplateHashLabel]
		if over <= 0 {
			return nil
		}
		if hash == stable || hash == current || hash == declared {
			continue
		}
		if err := a.Own.Delete(ctx, kept, preconditions(kept)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting an old kept source: %w", err)
		}
		over--
	}
	return nil
}

// preconditions bind a deletion to the object as it was read.
func preconditions(o client.Object) client.Preconditions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
