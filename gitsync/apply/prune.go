package apply

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// prune deletes what left Git: only what carries the labels of this GitSync and
// isn't kept by annotation, and nothing that a version in use names or that another
// GitSync declares, which takes it over. It returns what stays in the inventory. Rollouts go first, Namespaces and definitions last.
func (r *run) prune(ctx context.Context, left inventory) (refs, error) {
	stay := refs{}
	if len(left) == 0 {
		return stay, nil
	}
	used, err := r.inUse(ctx, left)
	if err != nil {
		return nil, err
	}
	r.owners.holders = nil // as they are now
	for _, id := range pruneOrder(left) {
		action, err := r.pruneOne(ctx, left, used, id)
		if err != nil {
			r.out.Failures = append(r.out.Failures, &Failure{Object: id.String(), Err: fmt.Errorf("pruning: %w", err)})
		} else if action != "" {
			r.out.Changes = append(r.out.Changes, Change{Object: id.String(), Action: action})
		}
		if err != nil || action == Kept {
			stay[id] = true
		}
	}
	return stay, nil
}

// pruneOne deletes one object, or says why not; nothing when there is nothing of ours.
func (r *run) pruneOne(ctx context.Context, left inventory, used refs, id ref) (Action, error) {
	live, err := r.owned(ctx, left, id)
	switch {
	case err != nil || live == nil:
		return "", err
	case used[id]:
		return Kept, nil
	}
	wanted, err := r.wantedByAnother(ctx, id)
	switch {
	case err != nil:
		return "", err
	case wanted:
		return HandedOver, nil
	}
	err = r.Client.Delete(ctx, live, preconditions(live), client.PropagationPolicy("Background"))
	return Pruned, client.IgnoreNotFound(err)
}

// pruneOrder is the apply's order backwards.
func pruneOrder(left inventory) []ref {
	out := make([]ref, 0, len(left))
	for id := range left {
		out = append(out, id)
	}
	rank := func(id ref) int {
		switch {
		case id.Kind == v1alpha1.RolloutKind && id.Group == v1alpha1.GroupVersion.Group:
			return 0
		case id.Kind == "Namespace", id.Kind == "CustomResourceDefinition":
			return 2
		}
		return 1
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := rank(out[i]), rank(out[j]); a != b {
			return a < b
		}
		return ssa.SortableUnstructureds{named(out[j]), named(out[i])}.Less(0, 1)
	})
	return out
}

func named(id ref) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Kind: id.Kind})
	u.SetNamespace(id.Namespace)
	u.SetName(id.Name)
	return u
}

// owned reads an object that is to be pruned; nil when it is gone, on its way
// out, somebody else's, or to be kept.
func (r *run) owned(ctx context.Context, left inventory, id ref) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(left.gvk(id))
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	labels := live.GetLabels()
	switch {
	case live.GetDeletionTimestamp() != nil,
		labels[v1alpha1.GitSyncNameLabel] != r.in.GitSync.Name, labels[v1alpha1.GitSyncNamespaceLabel] != r.in.GitSync.Namespace,
		strings.EqualFold(live.GetAnnotations()[v1alpha1.PruneAnnotation], "disabled"),
		disabled(nil, live):
		return nil, nil
	}
	return live, nil
}

// inUse are the objects that versions in use name: every ReplicaSet of a Rollout
// that still exists has pods, is stable, or may be gone back to; and every
// Rollout that isn't itself on the way out.
func (r *run) inUse(ctx context.Context, left inventory) (refs, error) {
	used := refs{}
	namespaces := map[string]bool{}
	for id := range left {
		namespaces[id.Namespace] = true
	}
	for ns := range namespaces {
		var in []client.ListOption
		if ns != "" {
			in = append(in, client.InNamespace(ns))
		}
		if err := r.usedBySets(ctx, used, in); err != nil {
			return nil, err
		}
		if err := r.usedByRollouts(ctx, used, left, in); err != nil {
			return nil, err
		}
	}
	return used, nil
}

func (r *run) usedBySets(ctx context.Context, used refs, in []client.ListOption) error {
	var sets appsv1.ReplicaSetList
	if err := r.Own.List(ctx, &sets, append(in, client.HasLabels{v1alpha1.TemplateHashLabel})...); err != nil {
		return err
	}
	for i := range sets.Items {
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&sets.Items[i].Spec.Template)
		if err != nil {
			return err
		}
		used.namedByTemplate(sets.Items[i].Namespace, template)
	}
	return nil
}

func (r *run) usedByRollouts(ctx context.Context, used refs, left inventory, in []client.ListOption) error {
	var rollouts v1alpha1.RolloutList
	if err := r.Own.List(ctx, &rollouts, in...); err != nil {
		return err
	}
	for i := range rollouts.Items {
		rollout := &rollouts.Items[i]
		id := ref{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.RolloutKind, Namespace: rollout.Namespace, Name: rollout.Name}
		if _, leaving := left[id]; leaving || rollout.DeletionTimestamp != nil {
			continue
		}
		used.namedByRollout(rollout)
	}
	return r.nestedTemplates(ctx, used)
}

// nestedTemplates adds the AnalysisTemplates that those in use merge in.
func (r *run) nestedTemplates(ctx context.Context, used refs) error {
	visited := refs{}
	for {
		grown := false
		for id := range used {
			if visited[id] || id.Group != v1alpha1.GroupVersion.Group || !strings.HasSuffix(id.Kind, "AnalysisTemplate") {
				continue
			}
			visited[id], grown = true, true
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(id.Kind))
			err := r.Own.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, live)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			templates, _, _ := unstructured.NestedSlice(live.Object, "spec", "templates")
			for _, template := range list(templates) {
				cluster, _ := template["clusterScope"].(bool)
				used.templates(id.Namespace, []v1alpha1.AnalysisTemplateRef{{TemplateName: text(template["templateName"]), ClusterScope: cluster}})
			}
		}
		if !grown {
			return nil
		}
	}
}
