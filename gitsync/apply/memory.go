package apply

import (
	"crypto/sha256"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/routers"
)

// Memory is what the applies of one GitSync remember of its objects: how each was
// when a dry run found it as declared, or when it was written. As long as it is
// the same object in the same version, and all that is applied to it is the same,
// there is nothing to compare.
//
// It is lost with the process, and then every object is compared once more, which
// writes nothing. What an admission plugin or a new default of the API server
// would change in an object that nobody touches isn't noticed: start with a new
// Memory now and then. The applies that share one may not run at the same time.
type Memory struct {
	found map[ref]memento
	// unlistable are the kinds that may not be listed in a namespace.
	unlistable map[place]bool
}

// NewMemory is an empty memory.
func NewMemory() *Memory {
	return &Memory{found: map[ref]memento{}, unlistable: map[place]bool{}}
}

// memento is an object as it was, and the digest of what was applied to it.
type memento struct {
	uid     types.UID
	version string
	digest  digest
}

type digest [sha256.Size]byte

// place is where objects of one kind are listed.
type place struct{ group, version, kind, namespace string }

func placeOf(o *object) place {
	gvk := o.declared.GroupVersionKind()
	return place{group: gvk.Group, version: gvk.Version, kind: gvk.Kind, namespace: o.declared.GetNamespace()}
}

// holds is true when the live object is the one that is remembered, unchanged, and
// what is to be applied to it is the same.
func (m *Memory) holds(id ref, live metav1.Object, of digest) bool {
	if m == nil {
		return false
	}
	found, known := m.found[id]
	return known && found == memento{uid: live.GetUID(), version: live.GetResourceVersion(), digest: of}
}

// note remembers an object; without a version, which a server always gives, it doesn't.
func (m *Memory) note(id ref, live metav1.Object, of digest) {
	if m == nil || live.GetUID() == "" || live.GetResourceVersion() == "" {
		return
	}
	m.found[id] = memento{uid: live.GetUID(), version: live.GetResourceVersion(), digest: of}
}

// keepOnly forgets all other objects.
func (m *Memory) keepOnly(ids inventory) {
	if m == nil {
		return
	}
	maps.DeleteFunc(m.found, func(id ref, _ memento) bool {
		_, kept := ids[id]
		return !kept
	})
}

// digestOf sums up all that decides what an apply makes of a live object: what is
// declared, the claims on it with the routing that they are read from, and for a
// Rollout whether it is scaled and the trailers that could lift a hold on it. The
// rest is the live object itself: an overlay reads nothing else.
func (r *run) digestOf(o *object) (digest, error) {
	made := struct {
		Declared map[string]any
		Claims   []routers.Target
		Scaled   bool
		Version  string
		Retry    []string
	}{Declared: o.declared.Object}
	for _, claim := range r.claims[o.id()] {
		made.Claims = append(made.Claims, claim.target)
	}
	if isRollout(o.declared) {
		version, err := r.versionOf(o)
		if err != nil {
			return digest{}, err
		}
		made.Version = version.hash
		made.Scaled = r.scaled[types.NamespacedName{Namespace: o.declared.GetNamespace(), Name: o.declared.GetName()}]
		for _, commit := range r.in.commits() {
			for _, hash := range commit.Retry {
				made.Retry = append(made.Retry, commit.Revision.Hash+" "+hash)
			}
		}
	}
	text, err := json.Marshal(made)
	return sha256.Sum256(text), err
}
