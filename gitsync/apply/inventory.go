package apply

import (
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ref names an object; Namespace is empty for objects of the cluster.
type ref struct {
	Group, Kind, Namespace, Name string
}

func refOf(u *unstructured.Unstructured) ref {
	gvk := u.GroupVersionKind()
	return ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// String is Kind/namespace/name.
func (r ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// id is <namespace>_<name>_<group>_<kind>, as Flux writes it. Names of RBAC
// objects may hold colons, which Flux writes as double underscores.
func (r ref) id() string {
	return strings.Join([]string{r.Namespace, strings.ReplaceAll(r.Name, ":", "__"), r.Group, r.Kind}, "_")
}

// parseID reads what id writes.
func parseID(id string) (ref, error) {
	namespace, rest, ok := strings.Cut(id, "_")
	kindAt := strings.LastIndexByte(rest, '_')
	if !ok || kindAt < 0 {
		return ref{}, fmt.Errorf("inventory entry %q is not <namespace>_<name>_<group>_<kind>", id)
	}
	kind, rest := rest[kindAt+1:], rest[:kindAt]
	groupAt := strings.LastIndexByte(rest, '_')
	if groupAt < 0 {
		return ref{}, fmt.Errorf("inventory entry %q is not <namespace>_<name>_<group>_<kind>", id)
	}
	name := strings.ReplaceAll(rest[:groupAt], "__", ":")
	return ref{Group: rest[groupAt+1:], Kind: kind, Namespace: namespace, Name: name}, nil
}

// inventory is a set of objects with their versions.
type inventory map[ref]string

func parseInventory(entries []v1alpha1.ResourceRef) (inventory, error) {
	out := inventory{}
	for _, entry := range entries {
		r, err := parseID(entry.ID)
		if err != nil {
			return nil, err
		}
		out[r] = entry.Version
	}
	return out, nil
}

func (i inventory) entries() []v1alpha1.ResourceRef {
	out := make([]v1alpha1.ResourceRef, 0, len(i))
	for r, version := range i {
		out = append(out, v1alpha1.ResourceRef{ID: r.id(), Version: version})
	}
	sort.Slice(out, func(a, b int) bool { return out[a].ID < out[b].ID })
	return out
}

func (i inventory) gvk(r ref) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: i[r], Kind: r.Kind}
}
