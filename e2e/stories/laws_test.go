package stories

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// watcher looks at the traffic and the pods of a tale all the time, and notes what
// breaks a law of traffic: pods that a weight needs and that aren't there.
type watcher struct {
	s    *tale
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	broken []string
	// raised are the canary weights that were seen, in order, without repeats.
	raised []int32
}

// watchLaws starts a watcher; judged ends it and reports.
func (s *tale) watchLaws() *watcher {
	ctx, cancel := context.WithCancel(s.ctx)
	w := &watcher{s: s, stop: cancel}
	w.done.Go(func() {
		for ctx.Err() == nil {
			w.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return w
}

func (w *watcher) judged() []int32 {
	w.s.Helper()
	w.stop()
	w.done.Wait()
	for i, line := range w.broken {
		if i == 10 {
			w.s.Errorf("and %d more", len(w.broken)-10)
			break
		}
		w.s.Error(line)
	}
	return w.raised
}

// look takes one sample. What is read first is read again at the end: a sample
// during which the traffic moved says nothing.
func (w *watcher) look(ctx context.Context) {
	before, err := w.traffic(ctx)
	if err != nil {
		return // not applied yet, or the tale is over
	}
	counts := map[string]int32{}
	for _, hash := range []string{before.stable, before.canary} {
		set := &appsv1.ReplicaSet{}
		key := types.NamespacedName{Namespace: w.s.namespace, Name: "web-" + hash}
		if hash == "" {
			continue
		}
		if err := shared.Client.Get(ctx, key, set); client.IgnoreNotFound(err) != nil {
			return
		}
		counts[hash] = set.Status.AvailableReplicas
	}
	after, err := w.traffic(ctx)
	if err != nil || before != after {
		return
	}
	w.judge(before, counts)
}

// traffic is what the route and the Services say.
type traffic struct {
	weight         int32
	stable, canary string
}

func (w *watcher) traffic(ctx context.Context) (traffic, error) {
	stable, canary, err := weightsOf(ctx, w.s.namespace, "web")
	if err != nil || stable+canary == 0 {
		return traffic{}, fmt.Errorf("no weights: %w", err)
	}
	out := traffic{weight: canary}
	for name, hash := range map[string]*string{"web-stable": &out.stable, "web-canary": &out.canary} {
		service := &corev1.Service{}
		if err := shared.Client.Get(ctx, types.NamespacedName{Namespace: w.s.namespace, Name: name}, service); err != nil {
			return traffic{}, err
		}
		*hash = service.Spec.Selector[v1alpha1.TemplateHashLabel]
	}
	return out, nil
}

func (w *watcher) judge(t traffic, counts map[string]int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.raised) == 0 || w.raised[len(w.raised)-1] != t.weight {
		w.raised = append(w.raised, t.weight)
	}
	if t.canary != "" && t.weight > 0 && counts[t.canary] < (4*t.weight+99)/100 {
		w.broken = append(w.broken, fmt.Sprintf("law 1: weight %d for template %s, which has %d pods", t.weight, t.canary, counts[t.canary]))
	}
	if t.stable != "" && t.weight < 100 && counts[t.stable] < 4 {
		w.broken = append(w.broken, fmt.Sprintf("law 3: stable template %s has %d pods of 4 and %d%% of the traffic", t.stable, counts[t.stable], 100-t.weight))
	}
}
