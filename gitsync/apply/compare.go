package apply

import (
	"bytes"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// sameContent compares two objects as people see them: without what the API
// server keeps of its own and without the status.
func sameContent(live, wanted *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(content(live), content(wanted))
}

func content(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "status" && key != "metadata" {
			out[key] = value
		}
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	kept := make(map[string]any, len(metadata))
	for key, value := range metadata {
		switch key {
		case "managedFields", "resourceVersion", "generation", "creationTimestamp":
		default:
			kept[key] = value
		}
	}
	out["metadata"] = kept
	return out
}

// sameOwnership compares which fields are ours in two versions of an object. The
// claimed fields are left out: the router takes them over with every write of
// its own, and to take them back without a change would be a write for nothing.
// Fields that are claimed are written "spec.rules[*].backendRefs[*].weight"; what
// counts is the list or map around them, which is owned as a whole.
func sameOwnership(live, wanted *unstructured.Unstructured, claimed []string) (bool, error) {
	before, err := owned(live, claimed)
	if err != nil {
		return false, err
	}
	after, err := owned(wanted, claimed)
	if err != nil {
		return false, err
	}
	return before.Equals(after), nil
}

// owned is the set of fields that server-side apply has noted as ours.
func owned(u *unstructured.Unstructured, claimed []string) (*fieldpath.Set, error) {
	all := &fieldpath.Set{}
	for _, entry := range u.GetManagedFields() {
		if !isOurs(entry) || entry.FieldsV1 == nil {
			continue
		}
		set, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}
		all = all.Union(set)
	}
	out := &fieldpath.Set{}
	all.Iterate(func(p fieldpath.Path) {
		for _, field := range claimed {
			if below(p, field) {
				return
			}
		}
		out.Insert(p.Copy())
	})
	return out, nil
}

func isOurs(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == v1alpha1.FieldManagerGitSync && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, err
	}
	return set, nil
}

// below is true for a path that is the claimed field's container or in it.
func below(p fieldpath.Path, field string) bool {
	container, _, _ := strings.Cut(field, "[")
	names := strings.Split(container, ".")
	if len(p) < len(names) {
		return false
	}
	for i, name := range names {
		if p[i].FieldName == nil || *p[i].FieldName != name {
			return false
		}
	}
	return true
}

// ownedByAnother is true when somebody else's write is noted for a field such as
// spec.replicas.
func ownedByAnother(live *unstructured.Unstructured, field string) (bool, error) {
	for _, entry := range live.GetManagedFields() {
		if isOurs(entry) || entry.FieldsV1 == nil {
			continue
		}
		set, err := fieldsOf(entry)
		if err != nil {
			return false, err
		}
		found := false
		set.Iterate(func(p fieldpath.Path) { found = found || below(p, field) })
		if found {
			return true, nil
		}
	}
	return false, nil
}
