package stories

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// moment is a phase of an update at which the controller is killed.
type moment struct {
	name string
	// reached says that the update is there.
	reached func(*tale, *v1alpha1.Rollout) bool
}

// killAt kills the controller each time that a further moment is reached, and
// starts it again, until the end.
func (s *tale) killAt(moments []moment, ended func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	s.Helper()
	killed := map[string]bool{}
	rollout := &v1alpha1.Rollout{}
	err := wait.PollUntilContextTimeout(s.ctx, pollOften, limit*2, true, func(ctx context.Context) (bool, error) {
		if err := shared.Client.Get(ctx, s.key(), rollout); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, m := range moments {
			if killed[m.name] || !m.reached(s, rollout) {
				continue
			}
			killed[m.name] = true
			if err := shared.KillController(controller); err != nil {
				return false, err
			}
			return false, shared.StartController(ctx, controller, soloFlags...)
		}
		return ended(rollout), nil
	})
	if err != nil {
		s.Fatalf("%v; killed at %v; status %+v; controller log %s", err, killed, rollout.Status, shared.ControllerLog(controller))
	}
	for _, m := range moments {
		if !killed[m.name] {
			s.Errorf("the moment %q was never seen", m.name)
		}
	}
	return rollout
}

// pollOften is how often a moment is looked for: they are short.
const pollOften = 5 * time.Millisecond

func version(o *v1alpha1.Rollout, hash string) bool { return o.Status.CurrentPodHash == hash }

// TestKillAtEachPhaseOfAPromotion: kill -9 at each phase, and the same end.
func TestKillAtEachPhaseOfAPromotion(t *testing.T) {
	s := begin(t, "killgood")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "1", quickSteps))
	fresh := func(o *v1alpha1.Rollout) bool { return !version(o, v1.Status.StableRS) }
	moments := []moment{
		{"taken up", func(_ *tale, o *v1alpha1.Rollout) bool { return fresh(o) }},
		{"25% written", func(s *tale, o *v1alpha1.Rollout) bool { _, canary := s.weights(); return fresh(o) && canary == 25 }},
		{"analysis running", func(s *tale, o *v1alpha1.Rollout) bool { return fresh(o) && len(s.analysisRuns()) > 0 }},
		{"50% written", func(s *tale, o *v1alpha1.Rollout) bool { _, canary := s.weights(); return fresh(o) && canary == 50 }},
		{"paused", func(_ *tale, o *v1alpha1.Rollout) bool { return o.Status.Phase == v1alpha1.RolloutPhasePaused }},
		{"promoted", func(_ *tale, o *v1alpha1.Rollout) bool {
			return fresh(o) && o.Status.StableRS == o.Status.CurrentPodHash
		}},
	}
	end := s.killAt(moments, func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && fresh(o) && o.Status.StableRS == o.Status.CurrentPodHash
	})
	if end.Status.Attempt != v1.Status.Attempt+1 {
		t.Errorf("attempt %d after %d: a crash made another", end.Status.Attempt, v1.Status.Attempt)
	}
	if got := len(s.analysisRuns()); got != 1 {
		t.Errorf("%d AnalysisRuns, want 1: a step was repeated", got)
	}
	s.awaitThat("weights 100/0", func(context.Context) (bool, error) {
		stable, canary := s.weights()
		return stable == 100 && canary == 0, nil
	})
}

// TestKillAtEachPhaseOfARevert: the same for an abort, up to the commit.
func TestKillAtEachPhaseOfARevert(t *testing.T) {
	s := begin(t, "killbad")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	bad := s.commit("Release web v2", app("v2", "0.5", quickSteps))
	moments := []moment{
		{"25% written", func(s *tale, _ *v1alpha1.Rollout) bool { _, canary := s.weights(); return canary == 25 }},
		{"aborted", func(_ *tale, o *v1alpha1.Rollout) bool { return o.Status.Abort }},
		{"pushed", func(s *tale, _ *v1alpha1.Rollout) bool {
			head, err := s.repo.Head(s.ctx)
			return err == nil && head != bad
		}},
	}
	s.killAt(moments, func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && len(o.Status.Rejected) == 1 && version(o, v1.Status.StableRS)
	})
	s.oneRevert(3)
	stable, canary := s.weights()
	if stable != 100 || canary != 0 {
		t.Errorf("weights %d/%d, want 100/0", stable, canary)
	}
}
