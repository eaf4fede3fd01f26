package stories

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestAGoodVersionIsPromoted(t *testing.T) {
	t.Parallel()
	s := begin(t, "promoted")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	if len(s.analysisRuns()) != 0 {
		t.Error("a first version took steps")
	}
	s.commit("Release web v2", app("v2", "1", quickSteps))
	s.await("25%", func(o *v1alpha1.Rollout) bool {
		_, canary := s.weights()
		return canary == 25
	})
	if got := s.podUIDs(v1.Status.StableRS); len(got) != 4 {
		t.Errorf("stable has %d pods at 25%%, want all 4", len(got))
	}
	v2 := s.healthyAs("v2")
	if v2.Status.StableRS == v1.Status.StableRS {
		t.Fatal("v2 is Healthy and v1 is stable")
	}
	promoted := s.podUIDs(v2.Status.StableRS)
	stable, canary := s.weights()
	if stable != 100 || canary != 0 {
		t.Errorf("weights %d/%d after promotion, want 100/0", stable, canary)
	}
	s.awaitThat("v1 to be scaled down", func(context.Context) (bool, error) {
		set := s.replicaSet(v1.Status.StableRS)
		return *set.Spec.Replicas == 0, nil
	})
	if now := s.podUIDs(v2.Status.StableRS); !sameKeys(promoted, now) {
		t.Errorf("promotion touched pods: %v, then %v", promoted, now)
	}
	if count, err := s.repo.Commits(s.ctx); err != nil || count != 2 {
		t.Errorf("%d commits, %v; want the person's 2", count, err)
	}
}

func TestABadVersionIsAbortedAndReverted(t *testing.T) {
	t.Parallel()
	s := begin(t, "reverted")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	stable := s.podUIDs(v1.Status.StableRS)
	before, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	bad := s.commit("Release web v2", app("v2", "0.5", quickSteps))
	degraded := s.await("the abort", func(o *v1alpha1.Rollout) bool {
		return o.Status.Abort && o.Status.Phase == v1alpha1.RolloutPhaseDegraded
	})
	for _, want := range []string{"quality", "0.5", "failureLimit"} {
		if !strings.Contains(degraded.Status.Message, want) {
			t.Errorf("message %q does not name %s", degraded.Status.Message, want)
		}
	}
	s.await("Healthy as v1 again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v1.Status.StableRS
	})
	after, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	if after != before {
		t.Errorf("the file differs from v1's:\n%s", after)
	}
	text, err := s.repo.Log(s.ctx, "-1", "--format=%s%n%b", "main")
	s.must(err)
	for _, want := range []string{`Revert "Release web v2"`, "Pushback-Rejected-Commit: " + bad, "quality"} {
		if !strings.Contains(text, want) {
			t.Errorf("the commit's text lacks %q:\n%s", want, text)
		}
	}
	if now := s.podUIDs(v1.Status.StableRS); !sameKeys(stable, now) {
		t.Errorf("stable pods were touched: %v, then %v", stable, now)
	}
	s.oneRevert(3)
	s.awaitThat("the Revert to be Observed", func(ctx context.Context) (bool, error) {
		reverts := s.reverts()
		return len(reverts) == 1 && reverts[0].Status.Phase == v1alpha1.RevertObserved, nil
	})
}

// TestC01_RejectedVersionIsHeld: automation pushes the bad version again.
func TestC01_RejectedVersionIsHeld(t *testing.T) {
	t.Parallel()
	s := begin(t, "held")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "0.5", quickSteps))
	s.await("Healthy as v1 again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && len(o.Status.Rejected) == 1
	})
	s.commit("Bump web to v2", app("v2", "0.5", quickSteps))
	held := s.await("the hold", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseDegraded && condition(o, v1alpha1.HeldCondition) == "True"
	})
	if held.Status.StableRS != v1.Status.StableRS {
		t.Error("the held version became stable")
	}
	if condition(held, "Stalled") != "True" {
		t.Error("held, and not Stalled: only a person can help")
	}
	s.quiet(3 * time.Second)
	s.oneRevert(4)
	if _, canary := s.weights(); canary != 0 {
		t.Errorf("a held version has %d%% of the traffic", canary)
	}
}

func condition(o *v1alpha1.Rollout, name string) string {
	for _, c := range o.Status.Conditions {
		if c.Type == name {
			return string(c.Status)
		}
	}
	return ""
}

// oneRevert checks that the repository has so many commits, and exactly one Revert.
func (s *tale) oneRevert(commits int) {
	s.Helper()
	count, err := s.repo.Commits(s.ctx)
	s.must(err)
	if count != commits {
		text, _ := s.repo.Log(s.ctx, "--oneline", "main")
		s.Errorf("%d commits, want %d:\n%s", count, commits, text)
	}
	if got := len(s.reverts()); got != 1 {
		s.Errorf("%d Reverts, want 1", got)
	}
}

func (s *tale) reverts() []v1alpha1.Revert {
	s.Helper()
	var list v1alpha1.RevertList
	s.must(shared.Client.List(s.ctx, &list, client.InNamespace(s.namespace)))
	return list.Items
}

func (s *tale) analysisRuns() []v1alpha1.AnalysisRun {
	s.Helper()
	var list v1alpha1.AnalysisRunList
	s.must(shared.Client.List(s.ctx, &list, client.InNamespace(s.namespace)))
	return list.Items
}

func sameKeys[K comparable, V any](a, b map[K]V) bool {
	if len(a) != len(b) {
		return false
	}
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return true
}
