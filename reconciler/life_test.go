package reconciler

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// Old versions go down to the limit; stable is none of them.
func TestRevisionHistoryLimitIsKept(t *testing.T) {
	l := newLab(t)
	rollout := webRollout()
	rollout.Spec.RevisionHistoryLimit = ptr.To[int32](1)
	l.create(rollout)
	l.watch()
	l.reach("healthy", patience, healthy)
	want := map[string]bool{}
	for _, image := range []string{"web:2", "web:3", "web:4"} {
		hash := l.hashOf(podTemplate(image))
		l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate(image)) })
		l.reach(image, patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == hash })
		want[hash] = image != "web:2"
	}
	clustertest.Eventually(l, patience, func() error {
		sets := l.sets()
		if len(sets) > 2 {
			return fmt.Errorf("%d ReplicaSets are left", len(sets))
		}
		for _, set := range sets {
			if hash := set.Labels[v1alpha1.TemplateHashLabel]; !want[hash] {
				t.Fatalf("the ReplicaSet of %s is left, want %v", hash, want)
			}
		}
		if len(sets) < 2 {
			t.Fatalf("%d ReplicaSets are left, want stable and the one before", len(sets))
		}
		return nil
	})
}

// Steps behind the current one may be edited; edited steps that were taken are
// taken again, with the same pods. The selector can't be edited.
func TestC53_EditedStepsOfALiveRollout(t *testing.T) {
	l := newLab(t)
	l.watch()
	l.routed(setWeight(40), untilPromoted, setWeight(60), untilPromoted)
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	first := l.reach("paused", patience, atPause(1))
	edit := func(steps ...v1alpha1.CanaryStep) {
		l.change(func(r *v1alpha1.Rollout) { r.Spec.Strategy.Canary.Steps = steps })
	}
	edit(setWeight(40), untilPromoted, setWeight(80), untilPromoted)
	kept := l.reach("paused still", patience, func(r *v1alpha1.Rollout) bool { return r.Status.ObservedGeneration == r.Generation })
	if !atPause(1)(kept) || kept.Status.Attempt != first.Status.Attempt || l.canaryWeight() != 40 {
		t.Errorf("an edit of a later step: step %s, attempt %d, weight %d", kept.Status.Step, kept.Status.Attempt, l.canaryWeight())
	}
	edit(setWeight(20), untilPromoted, setWeight(80), untilPromoted)
	again := l.reach("at 20 in another attempt", patience, func(r *v1alpha1.Rollout) bool {
		return atPause(1)(r) && r.Status.Attempt == first.Status.Attempt+1 && l.canaryWeight() == 20
	})
	if again.Status.StableRS != first.Status.StableRS || again.Status.CurrentPodHash != first.Status.CurrentPodHash {
		t.Errorf("an edit of a step that was taken: stable %s, current %s", again.Status.StableRS, again.Status.CurrentPodHash)
	}
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Paused = true })
	l.reach("paused by a person", patience, func(r *v1alpha1.Rollout) bool { return r.Status.ObservedGeneration == r.Generation })
	l.settled()
	if now := l.rollout(); now.Status.Phase != v1alpha1.RolloutPhasePaused || l.canaryWeight() != 20 {
		t.Errorf("paused in a step: phase %s, weight %d", now.Status.Phase, l.canaryWeight())
	}
	now := l.rollout()
	now.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
	if err := l.client.Update(t.Context(), now); !apierrors.IsInvalid(err) {
		t.Errorf("another selector: got %v, want it refused", err)
	}
}

// eventsOf is how many events the reconciler has made.
func (l *lab) eventsOf() int {
	l.Helper()
	recorder, ok := l.reconciler.Events.(*events.FakeRecorder)
	if !ok {
		l.Fatalf("events go to %T", l.reconciler.Events)
	}
	return len(recorder.Events)
}
