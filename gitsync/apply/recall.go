package apply

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// pageSize of lists.
const pageSize = 500

// recalled is the metadata of the live objects that need no comparison when they
// are as they are remembered, and of the sources that are kept for Rollouts.
type recalled struct {
	objects map[ref]*metav1.PartialObjectMetadata
	sources map[ref]*metav1.PartialObjectMetadata
}

// recall lists the metadata of the GitSync's objects, by its labels: of every kind
// in every namespace of which something is remembered. A namespace at a time,
// because a tenant may list in no other way. What can't be listed is read one by
// one, as is what is missing from a list: it is gone, or not labelled as ours.
func (r *run) recall(ctx context.Context, stages [3][]*object) error {
	r.recalled = recalled{objects: map[ref]*metav1.PartialObjectMetadata{}, sources: map[ref]*metav1.PartialObjectMetadata{}}
	if r.in.Memory == nil {
		return nil
	}
	listed := map[place]bool{}
	labels := client.MatchingLabels{v1alpha1.GitSyncNameLabel: r.in.GitSync.Name, v1alpha1.GitSyncNamespaceLabel: r.in.GitSync.Namespace}
	for _, stage := range stages {
		for _, o := range stage {
			at := placeOf(o)
			if _, known := r.in.Memory.found[o.id()]; !known || listed[at] || r.in.Memory.unlistable[at] {
				continue
			}
			listed[at] = true
			if err := listMetadata(ctx, r.Client, at, labels, r.recalled.objects); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				r.in.Memory.unlistable[at] = apierrors.IsForbidden(err)
				continue
			}
			if !isRollout(o.declared) {
				continue
			}
			sources := place{group: appsv1.GroupName, version: "v1", kind: "ControllerRevision", namespace: at.namespace}
			if err := listMetadata(ctx, r.Own, sources, client.HasLabels{v1alpha1.RolloutNameLabel}, r.recalled.sources); err != nil {
				return fmt.Errorf("listing the kept sources: %w", err)
			}
		}
	}
	return nil
}

// listMetadata adds the objects of a kind in a namespace, page by page; all or none.
func listMetadata(ctx context.Context, c client.Client, at place, which client.ListOption, into map[ref]*metav1.PartialObjectMetadata) error {
	var all []metav1.PartialObjectMetadata
	next := ""
	for {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: at.group, Version: at.version, Kind: at.kind + "List"})
		if err := c.List(ctx, &list, client.InNamespace(at.namespace), which, client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		all = append(all, list.Items...)
		if next = list.Continue; next == "" {
			break
		}
	}
	for i := range all {
		into[ref{Group: at.group, Kind: at.kind, Namespace: all[i].Namespace, Name: all[i].Name}] = &all[i]
	}
	return nil
}

// recalls is true for an object that is as it was when it was last found as it is
// declared. A Rollout must have its kept source too, and is looked at whole while
// something that it could name fails.
func (r *run) recalls(o *object, of digest) bool {
	live, listed := r.recalled.objects[o.id()]
	if !listed || live.DeletionTimestamp != nil || !r.in.Memory.holds(o.id(), live, of) {
		return false
	}
	if !isRollout(o.declared) {
		return true
	}
	version, err := r.versionOf(o)
	hash := version.hash
	if err != nil || len(r.failed) > 0 {
		return false
	}
	if hash == "" {
		return true
	}
	source := r.recalled.sources[ref{Group: appsv1.GroupName, Kind: "ControllerRevision", Namespace: live.Namespace, Name: SourceName(live.Name, hash)}]
	return source != nil && metav1.IsControlledBy(source, live)
}

// remember notes an object as it is after an apply. A definition is noted when it
// is served: until then it is to be waited for.
func (r *run) remember(o *object, applied outcome, of digest) {
	if applied.object == nil || applied.action == Skipped || isDefinition(o.declared) && !established(applied.object) {
		return
	}
	r.in.Memory.note(o.id(), applied.object, of)
}
