package apply

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// OwnedError says that an object is another GitSync's, which declares it too.
type OwnedError struct{ GitSync types.NamespacedName }

// Error names the other GitSync and what to do.
func (e *OwnedError) Error() string {
	return fmt.Sprintf("it belongs to GitSync %s, which declares it too: take it out of one of the two; out of that one and it is taken over from there, without being deleted", e.GitSync)
}

// owners are the GitSyncs of the cluster as one apply has seen them.
type owners struct {
	// read one by one, for those that labels name.
	read map[types.NamespacedName]*v1alpha1.GitSync
	// holders are those that have an object in their inventory, by its entry there,
	// the oldest GitSync first; nil until somebody asks.
	holders map[string][]types.NamespacedName
}

// declares is true when a GitSync that isn't on its way out has an object in its inventory.
func declares(sync *v1alpha1.GitSync, id ref) bool {
	if sync == nil || sync.DeletionTimestamp != nil || sync.Status.Inventory == nil {
		return false
	}
	entry := id.id()
	return slices.ContainsFunc(sync.Status.Inventory.Entries, func(e v1alpha1.ResourceRef) bool { return e.ID == entry })
}

// mayTake is an *OwnedError for a live object that is another GitSync's: the one
// that its labels name, as long as that exists and has it in its inventory. Where
// the labels name none such, it is the oldest GitSync's that has it in its
// inventory, this one among them. So of two that declare it there is always one.
func (r *run) mayTake(ctx context.Context, id ref, live *unstructured.Unstructured) error {
	labels := live.GetLabels()
	labelled := types.NamespacedName{Namespace: labels[v1alpha1.GitSyncNamespaceLabel], Name: labels[v1alpha1.GitSyncNameLabel]}
	if labelled == r.in.GitSync {
		return nil
	}
	if labelled.Name != "" {
		sync, err := r.named(ctx, labelled, id)
		if err != nil {
			return err
		}
		if declares(sync, id) {
			return &OwnedError{GitSync: labelled}
		}
	}
	holders, err := r.holders(ctx, id)
	if err != nil || len(holders) == 0 || holders[0] == r.in.GitSync {
		return err
	}
	return &OwnedError{GitSync: holders[0]}
}

// named reads the GitSync that a label names; nil when there is none. One that
// seems not to have the object is read anew, since it may have got it meanwhile.
func (r *run) named(ctx context.Context, key types.NamespacedName, id ref) (*v1alpha1.GitSync, error) {
	if sync := r.owners.read[key]; declares(sync, id) {
		return sync, nil
	}
	sync := &v1alpha1.GitSync{}
	if err := r.Own.Get(ctx, key, sync); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if r.owners.read == nil {
		r.owners.read = map[types.NamespacedName]*v1alpha1.GitSync{}
	}
	r.owners.read[key] = sync
	return sync, nil
}

// holders are the GitSyncs that have an object in their inventory, oldest first.
func (r *run) holders(ctx context.Context, id ref) ([]types.NamespacedName, error) {
	if r.owners.holders != nil {
		return r.owners.holders[id.id()], nil
	}
	var list v1alpha1.GitSyncList
	if err := r.Own.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing GitSyncs: %w", err)
	}
	sort.SliceStable(list.Items, func(i, j int) bool {
		a, b := &list.Items[i], &list.Items[j]
		if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Before(&b.CreationTimestamp)
		}
		return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
	})
	r.owners.holders = map[string][]types.NamespacedName{}
	for i := range list.Items {
		sync := &list.Items[i]
		if sync.DeletionTimestamp != nil || sync.Status.Inventory == nil {
			continue
		}
		for _, entry := range sync.Status.Inventory.Entries {
			r.owners.holders[entry.ID] = append(r.owners.holders[entry.ID], client.ObjectKeyFromObject(sync))
		}
	}
	return r.owners.holders[id.id()], nil
}

// wantedByAnother is true when another GitSync has an object in its inventory,
// as it is now.
func (r *run) wantedByAnother(ctx context.Context, id ref) (bool, error) {
	holders, err := r.holders(ctx, id)
	return slices.ContainsFunc(holders, func(key types.NamespacedName) bool { return key != r.in.GitSync }), err
}
