package analysisrun

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// counted is a reader that counts what is asked of it.
type counted struct {
	client.Reader
	reads int
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, object, options...)
}

// behind is a client whose cache holds an old version of the run while it is set.
type behind struct {
	client.Client
	old *v1alpha1.AnalysisRun
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if run, ok := object.(*v1alpha1.AnalysisRun); ok && b.old != nil {
		b.old.DeepCopyInto(run)
		return nil
	}
	return b.Client.Get(ctx, key, object, options...)
}

// A run is read from the API server by a controller that hasn't written it, by one
// whose cache is behind its own write, by one whose write failed, and after somebody
// else has written it; not once for each measurement.
func TestARunIsReadLiveOnlyWhereTheCacheMayBeBehind(t *testing.T) {
	l := newLab(t, always([]any{1.0}), newRun(repeated("quality", 10)))
	live, cache := &counted{Reader: l.client}, &behind{Client: l.client}
	l.r.Live, l.r.Client = live, cache
	measured := func(reads int) {
		t.Helper()
		live.reads = 0
		l.now = l.now.Add(l.reconcile().RequeueAfter)
		if live.reads != reads {
			t.Fatalf("%d reads, want %d", live.reads, reads)
		}
	}
	measured(1) // a new leader
	old := l.run()
	measured(0)
	measured(0)

	cache.old = old
	live.reads = 0
	asked := len(l.provider.asked)
	l.reconcile()
	cache.old = nil
	if live.reads != 1 || len(l.provider.asked)-asked > 1 {
		t.Errorf("with a cache behind: %d reads and %d questions, want 1 and at most 1", live.reads, len(l.provider.asked)-asked)
	}
	measured(0)

	run := l.run()
	patch := client.MergeFrom(run.DeepCopy())
	run.Labels = map[string]string{"a": "b"}
	if err := l.client.Patch(t.Context(), run, patch); err != nil {
		t.Fatal(err)
	}
	measured(1)

	l.beforeWrite = func() error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "analysisruns"}, key.Name, nil)
	}
	measured(0)
	l.beforeWrite = nil
	measured(1)
}
