package stories

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// cli runs a command in the story's namespace and checks its exit code.
func (s *tale) cli(code int, args ...string) string {
	s.Helper()
	out, got, err := shared.CLI(s.ctx, append([]string{"-n", s.namespace}, args...)...)
	s.must(err)
	if got != code {
		s.Fatalf("pushback %s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

func (s *tale) shows(text string, wants ...string) {
	s.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			s.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
}

// TestTheCommandLine steers a canary: promote, abort, retry, and what they say
// when they can't.
func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	s := begin(t, "cli")
	s.commit("Add web v1", app("v1", "1", waitingSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	s.shows(s.cli(0, "status", "web"), "Healthy")
	s.shows(s.cli(1, "promote", "web"), "refused")
	s.shows(s.cli(1, "abort", "web"), "refused", "nothing is in progress")
	s.shows(s.cli(0, "create", "analysisrun", "--from", "quality", "-a", "quality=1", "--wait", "2m"), "Successful")
	s.shows(s.cli(1, "create", "analysisrun", "--from", "quality", "-a", "quality=0.5", "--wait", "2m"), "Failed", "0.5")

	s.commit("Release web v2", app("v2", "1", waitingSteps))
	s.await("the pause at 25%", pausedAt25)
	s.shows(s.cli(0, "get"), "web", "Paused", "25")
	s.shows(s.cli(0, "list", "-o", "wide"), "web", "Paused", "25", "TEMPLATE")
	s.shows(s.cli(0, "get", "web"), "Paused", "canary 25", "[x] 1 setWeight 25", "[>] 2 pause", "Release web v2", "pod web-", "1/1  Running")
	s.shows(s.cli(0, "history", "web"), "current", "Release web v2", "stable", "Add web v1")
	s.shows(s.cli(1, "resume", "web"), "refused", "promote ends the pause of a step")
	s.shows(s.cli(0, "pause", "web"), "It stays as it is")
	s.await("the pause by a person", func(o *v1alpha1.Rollout) bool { return o.Status.Message == "manually paused" })
	s.shows(s.cli(1, "pause", "web"), "refused", "paused already")
	s.shows(s.cli(0, "resume", "web"), "It goes on")
	s.await("the pause at 25% after it", pausedAt25)
	s.shows(s.cli(2, "status", "web", "--timeout", "1s"), "Paused", "the timeout passed")
	var view struct {
		Phase   string
		Weights v1alpha1.TrafficWeights
	}
	s.must(json.Unmarshal([]byte(s.cli(0, "get", "web", "-o", "json")), &view))
	if view.Phase != "Paused" || view.Weights.Canary.Weight != 25 {
		t.Errorf("get -o json: %+v", view)
	}
	s.shows(s.watches("get", "web", "-w"), "Paused")
	s.shows(s.cli(0, "abort", "web", "--keep-git"), "Git is left as it is")
	degraded := s.await("the abort", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseDegraded && o.Status.Abort
	})
	s.shows(s.cli(1, "status", "web"), "Degraded", "aborted by a person")
	s.shows(s.cli(0, "retry", "web"), "Attempt")
	s.await("the pause at 25% again", pausedAt25)
	if now := s.rollout(); now.Status.Attempt != degraded.Status.Attempt+1 {
		t.Errorf("attempt %d after %d, want one more", now.Status.Attempt, degraded.Status.Attempt)
	}
	s.shows(s.cli(0, "promote", "web"), "step")
	v2 := s.healthyAs("v2")
	if v2.Status.StableRS == v1.Status.StableRS {
		t.Error("v2 was not promoted")
	}
	if got := len(s.reverts()); got != 0 {
		t.Errorf("%d Reverts after --keep-git, want none", got)
	}
	s.shows(s.cli(1, "get", "nobody"), "nobody")
	s.restarts()
	s.undoes(v1, v2)
}

// restarts replaces every pod by another one of the same version.
func (s *tale) restarts() {
	s.Helper()
	before := s.cli(0, "get", "web", "-o", "json")
	s.shows(s.cli(0, "restart", "web"), "evicted")
	s.shows(s.cli(0, "status", "web"), "rollout is restarting", "Healthy")
	var old struct {
		Versions []struct{ PodList []struct{ Name string } }
	}
	s.must(json.Unmarshal([]byte(before), &old))
	after := s.cli(0, "get", "web", "-o", "json")
	seen := 0
	for _, version := range old.Versions {
		for _, pod := range version.PodList {
			seen++
			if strings.Contains(after, `"`+pod.Name+`"`) {
				s.Errorf("pod %s was not replaced:\n%s", pod.Name, after)
			}
		}
	}
	if seen == 0 {
		s.Errorf("no pod was seen before the restart:\n%s", before)
	}
}

// undoes brings v1 back by a commit, which is rolled out; v2 is not rejected by it.
func (s *tale) undoes(v1, v2 *v1alpha1.Rollout) {
	s.Helper()
	s.shows(s.cli(1, "undo", "web", "--to-revision", "99"), "has no revision 99")
	s.shows(s.cli(0, "undo", "web", "-m", "for the story"), "brings back revision", "Add web v1")
	s.await("v1 on its way again", func(o *v1alpha1.Rollout) bool {
		return o.Status.CurrentPodHash == v1.Status.StableRS
	})
	for _, rejected := range s.rollout().Status.Rejected {
		if rejected.Hash == v2.Status.StableRS && !rejected.Cleared {
			s.Errorf("the undone version was rejected: %+v", rejected)
		}
	}
	s.shows(s.cli(0, "history", "web", "-o", "wide"), "current", "stable")
}

// watches runs a command that goes on until it is interrupted, for a while.
func (s *tale) watches(args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second)
	defer cancel()
	out, _, err := shared.CLI(ctx, append([]string{"-n", s.namespace}, args...)...)
	if err != nil && ctx.Err() == nil {
		s.Fatal(err)
	}
	return out
}
