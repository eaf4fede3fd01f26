package apply

import (
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
)

// readOnly are the fields of metadata that belong to the API server. They get
// into Git by exports, and would make every apply differ from the last.
var readOnly = []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// prepare makes what is applied of what Git declares: without nulls, status and
// fields of the API server, with a namespace and the labels of its owner.
func (a *Applier) prepare(in In, o gitsync.Object, scopes map[schema.GroupKind]bool) (*object, error) {
	declared := &unstructured.Unstructured{Object: dropNulls(o.DeepCopy().Object).(map[string]any)}
	delete(declared.Object, "status")
	for _, field := range readOnly {
		unstructured.RemoveNestedField(declared.Object, "metadata", field)
	}
	for _, path := range [][]string{{"spec", "template", "metadata", "creationTimestamp"}, {"spec", "jobTemplate", "spec", "template", "metadata", "creationTimestamp"}} {
		unstructured.RemoveNestedField(declared.Object, path...)
	}
	if err := encodeSecret(declared); err != nil {
		return nil, o.Errorf("stringData", "%v", err)
	}
	namespaced, err := a.namespaced(declared.GroupVersionKind(), scopes)
	if err != nil {
		return nil, err
	}
	switch {
	case !namespaced:
		declared.SetNamespace("")
	case in.TargetNamespace != "":
		declared.SetNamespace(in.TargetNamespace)
	case declared.GetNamespace() == "":
		declared.SetNamespace(in.GitSync.Namespace)
	}
	labels := declared.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.GitSyncNameLabel], labels[v1alpha1.GitSyncNamespaceLabel] = in.GitSync.Name, in.GitSync.Namespace
	declared.SetLabels(labels)
	return &object{Object: o, declared: declared, namespaced: namespaced}, nil
}

// dropNulls takes null values out of mappings: the API server stores none, and
// they would own fields that aren't there.
func dropNulls(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, child := range typed {
			if child == nil {
				delete(typed, key)
				continue
			}
			typed[key] = dropNulls(child)
		}
	case []any:
		for i := range typed {
			typed[i] = dropNulls(typed[i])
		}
	}
	return value
}

// encodeSecret moves stringData into data, as the API server does on every write:
// it is never there to compare with.
func encodeSecret(u *unstructured.Unstructured) error {
	if u.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return nil
	}
	text, found := u.Object["stringData"]
	if !found {
		return nil
	}
	values, ok := text.(map[string]any)
	if !ok {
		return fmt.Errorf("must be a mapping of text")
	}
	data, _ := u.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range values {
		plain, ok := value.(string)
		if !ok {
			return fmt.Errorf("the key %s must be text", key)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(plain))
	}
	delete(u.Object, "stringData")
	u.Object["data"] = data
	return nil
}

// namespaced says whether objects of a kind live in namespaces. scopes are the
// kinds whose CustomResourceDefinitions the same tree brings.
func (a *Applier) namespaced(gvk schema.GroupVersionKind, scopes map[schema.GroupKind]bool) (bool, error) {
	if namespaced, ok := scopes[gvk.GroupKind()]; ok {
		return namespaced, nil
	}
	mapping, err := a.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return false, fmt.Errorf("the cluster knows no kind %s of %s: install its CustomResourceDefinition, or correct apiVersion and kind", gvk.Kind, gvk.GroupVersion())
	}
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// scopesOf reads the scopes of the kinds that a tree defines.
func scopesOf(objects []gitsync.Object) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if !isDefinition(o.Unstructured) {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "scope")
		out[schema.GroupKind{Group: group, Kind: kind}] = strings.EqualFold(scope, "Namespaced")
	}
	return out
}

func isDefinition(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

func isNamespace(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}
}

func isRollout(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.RolloutKind}
}
