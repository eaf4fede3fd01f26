package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/routers"
)

// In is what is to be applied, and for whom.
type In struct {
	// GitSync that declares it.
	GitSync types.NamespacedName
	// Objects of the tree, translated and checked. They aren't changed.
	Objects []gitsync.Object
	// Rejected are objects of the tree that are left out: nothing is pruned then.
	Rejected gitsync.ManifestErrors
	// TargetNamespace overrides the namespace of namespaced objects; empty keeps it,
	// and objects that name none get the GitSync's.
	TargetNamespace string
	// Force re-creates an object when a field that can't change has changed. Never a
	// Rollout, a Namespace, a CustomResourceDefinition or a volume.
	Force bool
	// Prune deletes what Inventory has and Objects lack.
	Prune bool
	// Inventory of the last apply.
	Inventory []v1alpha1.ResourceRef
	// Memory of the GitSync's last applies: what is as it was then is not compared
	// again. Nil compares everything.
	Memory *Memory
	// Intend is called before the first write of a stage with an inventory that holds
	// the objects that it is about to make as well, when there are any. Its error ends
	// the apply. May be nil.
	Intend func(context.Context, []v1alpha1.ResourceRef) error
	// Commit that declares the objects.
	Commit Commit
	// Between are the commits below it that came since the last whole apply, newest
	// first: their trailers count as well.
	Between []Commit
	// Sources returns the files that the render read for an object.
	Sources func(gitsync.Object) []File
}

// Commit is what is kept of the commit that declares a template.
type Commit struct {
	Revision gitsync.Revision
	Subject  string
	// Retry are the hashes of its Pushback-Retry trailers.
	Retry []string
	// Irreversible are the Rollouts of its Pushback-Irreversible trailers, as name or
	// namespace/name.
	Irreversible []string
}

// File is a file as Git keeps it.
type File struct {
	Path string `json:"path"`
	// Mode in octal, such as 100644.
	Mode string `json:"mode"`
	// Data is Git's bytes, never decrypted.
	Data []byte `json:"data"`
}

// Action is what became of an object.
type Action string

// The actions.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Recreated  Action = "re-created"
	Unchanged  Action = "unchanged"
	Skipped    Action = "left alone"
	Pruned     Action = "pruned"
	// Kept left Git and is still named by a version in use.
	Kept Action = "kept"
	// HandedOver left Git and is declared by another GitSync, which takes it over.
	HandedOver Action = "left to another GitSync"
)

// Change is one object and what became of it.
type Change struct {
	// Object as Kind/namespace/name.
	Object string
	Action Action
}

// Failure is an object that the API server refused, or that waits for one that failed.
type Failure struct {
	// File and Document that declare it; empty for one that was to be pruned.
	File     string
	Document int
	// Object as Kind/namespace/name.
	Object string
	Err    error
}

// Error names the file, the object and the API server's words.
func (f *Failure) Error() string {
	at := f.Object
	if f.Document > 0 {
		at = fmt.Sprintf("%s, document %d, %s", f.File, f.Document, f.Object)
	} else if f.File != "" {
		at = f.File + ", " + f.Object
	}
	return at + ": " + f.Err.Error()
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Conflict is true when the object changed between the read and the write: try
// again, and say nothing.
func (f *Failure) Conflict() bool { return apierrors.IsConflict(f.Err) }

// Out is what was done. On failures it holds what was done beside them.
type Out struct {
	// Inventory of what is now applied, sorted; of everything that ever was while
	// something fails.
	Inventory []v1alpha1.ResourceRef
	// Changes of every object of the tree, in the order in which they were applied,
	// and of what was pruned or kept.
	Changes []Change
	// Failures, in the same order.
	Failures []*Failure
}

// Waits is true when something that left Git is kept for a version in use.
func (o Out) Waits() bool {
	for _, change := range o.Changes {
		if change.Action == Kept {
			return true
		}
	}
	return false
}

// Applier applies. Its fields are set once.
type Applier struct {
	// Client writes and reads, without a cache, with the rights of the GitSync's
	// service account.
	Client client.Client
	// Own reads and writes, without a cache, with the controller's own rights: Rollouts,
	// ReplicaSets, HorizontalPodAutoscalers, ControllerRevisions and GitSyncs only.
	Own client.Client
	// Claims are the fields that belong to Pushback in the objects that a Rollout
	// routes through, as its router names them.
	Claims func(routers.Target) []routers.Claim
	// EstablishTimeout is how long a new CustomResourceDefinition may take to be
	// served. Default 30s.
	EstablishTimeout time.Duration
}

// ErrNamedFailed says that an object waits for another that failed.
var ErrNamedFailed = errors.New("not applied")

// object is one object on its way into the cluster.
type object struct {
	gitsync.Object
	// declared is what is applied: normalised, with namespace and labels.
	declared *unstructured.Unstructured
	// namespaced is false for objects of the cluster.
	namespaced bool
	// recalled is true when it was not looked at, because nothing has changed.
	recalled bool
}

func (o *object) id() ref {
	return refOf(o.declared)
}
