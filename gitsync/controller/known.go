package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync/apply"
	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// rendered is what a folder declares at a head, for a generation of its GitSync.
type rendered struct {
	generation int64
	tree       *fetch.Tree
	declared   declared
	// messages of the head, and of the commits between it and the last applied one.
	messages []fetch.Message
}

// memory is what the applies of one generation of a GitSync found.
type memory struct {
	*apply.Memory
	generation int64
	since      time.Time
}

// memoryAge is how long objects that nothing changes are believed to be as they
// were found. Then each is compared once more: the API server may have learnt
// new defaults, or an admission plugin new rules.
const memoryAge = time.Hour

// memoryOf is what is remembered of a GitSync's objects.
func (r *syncReconciler) memoryOf(sync *v1alpha1.GitSync) *apply.Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, now := client.ObjectKeyFromObject(sync), r.options.Now()
	known := r.memories[key]
	if known == nil || known.generation != sync.Generation || now.Sub(known.since) >= memoryAge {
		known = &memory{Memory: apply.NewMemory(), generation: sync.Generation, since: now}
		r.memories[key] = known
	}
	return known.Memory
}

// keep notes what a GitSync declares.
func (r *syncReconciler) keep(key types.NamespacedName, now *rendered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = now
}

// settle forgets the commits below the head: they are applied.
func (a *attempt) settle(now *rendered) {
	if len(now.messages) > 1 {
		settled := *now
		settled.messages = now.messages[:1]
		a.keep(a.key(), &settled)
	}
}
