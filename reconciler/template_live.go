package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// templateOf is the template of a workload: the declared one, unless somebody
// else has written over a field of it in the live one. by names who.
//
// The two are not compared: the API server puts defaults into the live one, which
// change with its version, and plugins rewrite it as it is applied. Who owns a
// field says who wrote it last.
func templateOf(live *unstructured.Unstructured, path []string, declared []byte) (raw []byte, by string, err error) {
	template, found, err := unstructured.NestedMap(live.Object, path...)
	if err != nil || !found {
		return nil, "", err
	}
	if declared != nil {
		if by, err = editedBy(live.GetManagedFields(), path, declared); err != nil || by == "" {
			return declared, "", err
		}
	}
	raw, err = json.Marshal(template)
	return raw, by, err
}

// editedBy names the manager that has taken a field of a declared template from
// gitsync; empty when none has. Fields that Git doesn't declare are not looked at:
// they may be there from before it did.
func editedBy(entries []metav1.ManagedFieldsEntry, path []string, declared []byte) (string, error) {
	var template any
	if err := json.Unmarshal(declared, &template); err != nil {
		return "", fmt.Errorf("the declared template: %w", err)
	}
	ours, others := &fieldpath.Set{}, map[string]*fieldpath.Set{}
	for _, entry := range entries {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return "", fmt.Errorf("managedFields of %s: %w", entry.Manager, err)
		}
		for _, name := range path {
			set = set.WithPrefix(fieldpath.PathElement{FieldName: &name})
		}
		if entry.Manager == v1alpha1.FieldManagerGitSync {
			ours = ours.Union(set)
			continue
		}
		if others[entry.Manager] == nil {
			others[entry.Manager] = &fieldpath.Set{}
		}
		others[entry.Manager] = others[entry.Manager].Union(set)
	}
	first := ""
	for manager, set := range others {
		edited := false
		set.Difference(ours).Iterate(func(p fieldpath.Path) { edited = edited || states(template, p) })
		if edited && (first == "" || manager < first) {
			first = manager
		}
	}
	return first, nil
}

// states says that a value says something at a path.
func states(in any, path fieldpath.Path) bool {
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			object, _ := in.(map[string]any)
			next, found := object[*element.FieldName]
			if !found {
				return false
			}
			in = next
		case element.Key != nil:
			items, _ := in.([]any)
			next, found := itemWith(items, *element.Key)
			if !found {
				return false
			}
			in = next
		case element.Value != nil:
			items, _ := in.([]any)
			found := false
			for _, item := range items {
				found = found || value.Equals(value.NewValueInterface(item), *element.Value)
			}
			return found
		default:
			return false // no list of a pod template is keyed by index
		}
	}
	return true
}

// itemWith finds the item of a list with these keys. A key that it leaves out may
// be a default, such as the protocol of a port.
func itemWith(items []any, keys value.FieldList) (any, bool) {
	for _, item := range items {
		object, ok := item.(map[string]any)
		for _, key := range keys {
			got, stated := object[key.Name]
			ok = ok && (!stated || value.Equals(value.NewValueInterface(got), key.Value))
		}
		if ok {
			return item, true
		}
	}
	return nil, false
}

// standIn is what is left of the current version: the template and the selector of
// its ReplicaSet.
type standIn struct {
	template []byte
	selector *metav1.LabelSelector
}

// standIn reads the current version's ReplicaSet; nil when it has none.
func (r *Reconciler) standIn(ctx context.Context, seen *observed) (*standIn, error) {
	var list appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &list, client.InNamespace(seen.rollout.Namespace),
		client.MatchingFields{ownerIndex: string(seen.rollout.UID)}); err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for i := range list.Items {
		set := &list.Items[i]
		if set.Labels[v1alpha1.TemplateHashLabel] != seen.rollout.Status.CurrentPodHash || set.Spec.Selector == nil {
			continue
		}
		template := set.Spec.Template.DeepCopy()
		for _, label := range []string{v1alpha1.TemplateHashLabel, v1alpha1.ArgoTemplateHashLabel} {
			delete(template.Labels, label)
		}
		raw, err := json.Marshal(template)
		return &standIn{template: raw, selector: withoutHash(set.Spec.Selector)}, err
	}
	return nil, nil
}

// withoutHash is the selector that a ReplicaSet's was made of.
func withoutHash(in *metav1.LabelSelector) *metav1.LabelSelector {
	out := in.DeepCopy()
	maps.DeleteFunc(out.MatchLabels, func(key, _ string) bool { return key == v1alpha1.TemplateHashLabel })
	return out
}

// observeSelector refuses a workload that selects other pods than the one before:
// those that run would be nobody's. The API server refuses that for spec.selector.
func (r *Reconciler) observeSelector(_ context.Context, seen *observed) error {
	ref, own := seen.rollout.Spec.WorkloadRef, seen.rollout.Spec.Selector
	if ref == nil || own == nil {
		return nil
	}
	for _, set := range seen.sets {
		if set.Spec.Selector != nil && !equality.Semantic.DeepEqual(withoutHash(set.Spec.Selector), own) {
			seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf(
				"spec.workloadRef: the selector of %s %s, %s, is not that of ReplicaSet %s, %s: pods of the old selector would be taken for nobody's; use the old one, or make a new Rollout",
				ref.Kind, ref.Name, metav1.FormatLabelSelector(own), set.Name, metav1.FormatLabelSelector(withoutHash(set.Spec.Selector))))
			return nil
		}
	}
	return nil
}
