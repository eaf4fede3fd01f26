package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// A commit that leaves the template alone starts nothing and touches no pod, also
// when its revision is noted as the source.
func TestLaw6_DocsOnlyCommits(t *testing.T) {
	for name, commit := range map[string]func(c *plansim.Cluster, revision string){
		"seen by gitsync": func(c *plansim.Cluster, revision string) { c.Push("v2", revision, "Update the docs") },
		"noted anew":      func(c *plansim.Cluster, revision string) { c.Commit("v2", revision, "Update the docs") },
	} {
		t.Run(name, func(t *testing.T) {
			c := paused(t, withRouter(setWeight(25), pause(0)), 1)
			c.Run(60, nil)
			attempt, writes, stable, canary := c.Status.Attempt, c.Writes, c.Born("v1"), c.Born("v2")
			for i := range 50 {
				commit(c, fmt.Sprintf("main@sha1:docs%d", i))
				c.Pass()
				c.Run(2, nil)
			}
			noViolations(t, c)
			if diff := cmp.Diff([][]any{{attempt, stable, canary, int32(25)}}, [][]any{{c.Status.Attempt, c.Born("v1"), c.Born("v2"), c.Weight()}}); diff != "" {
				t.Errorf("attempt, pods of stable and canary, weight (-before +after):\n%s", diff)
			}
			if name == "seen by gitsync" && c.Writes != writes {
				t.Errorf("%d writes", c.Writes-writes)
			}
		})
	}
}

// The stable hash under another commit, as after a revert, is the stable version:
// no step, and no pod of it is touched.
func TestLaw6_ReturnToTheStableHashUnderAnotherCommit(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"with a router": withRouter(setWeight(50), pause(0)),
		"no steps":      withRouter(),
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(strategy)
			stableAt(t, c, "v1")
			before, runs := c.Born("v1"), len(c.Runs())
			push(c, "v2")
			c.Run(2, nil)
			c.Push("v1", "main@sha1:another", "Revert web")
			mustReach(t, c, 60, "Healthy on v1", healthyOn("v1"))
			c.Run(120, nil)
			noViolations(t, c)
			if diff := cmp.Diff(before, c.Born("v1")); diff != "" {
				t.Errorf("v1's ReplicaSet and pods (-before +after):\n%s", diff)
			}
			if c.Status.Superseded != 1 || len(c.Runs()) != runs || c.Weight() != 0 {
				t.Errorf("%d superseded, %d runs, weight %d; want 1, %d, 0", c.Status.Superseded, len(c.Runs()), c.Weight(), runs)
			}
		})
	}
}

// A template that is declared again keeps its ReplicaSet, and is an attempt of its own.
func TestLaw6_SameHashDeclaredAgainKeepsItsReplicaSet(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	made := c.Born("v2")[0]
	push(c, "v3")
	mustReach(t, c, 120, "the pause of v3", pausedAt("v3", 1))
	c.Run(120, nil)
	if c.Pods("v2") != 0 {
		t.Fatalf("%d pods of v2 are left", c.Pods("v2"))
	}
	push(c, "v2")
	mustReach(t, c, 120, "the pause of v2", pausedAt("v2", 1))
	if got := c.Born("v2"); !got[0].Equal(made) || len(got) != 3 {
		t.Errorf("v2's ReplicaSet is of %s with %d pods, want the one of %s with 2", got[0], len(got)-1, made)
	}
	if c.Status.Attempt != 4 || c.Status.Superseded != 2 {
		t.Errorf("attempt %d with %d superseded, want 4 and 2", c.Status.Attempt, c.Status.Superseded)
	}
	noViolations(t, c)
}

// A trailer that comes under a pause lifts the hold, and what was aborted stays
// the current version until the pause is over.
func TestLaw6_TrailerUnderAPauseKeepsWhatWasAborted(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	c.RevertAfter = 0
	c.Send(v1alpha1.AbortAnnotation, "stop")
	mustReach(t, c, 20, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Edit("pauses", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
	c.Push("v2", "main@sha1:again", "Try again", "v2")
	c.Run(30, nil)
	if st := c.Status; st.CurrentPodHash != "v2" || !st.Abort || st.Attempt != 2 || rejected(st, "v2") {
		t.Fatalf("current %q (aborted: %v), attempt %d, rejected %v; want v2, aborted and not rejected any more, in attempt 2",
			st.CurrentPodHash, st.Abort, st.Attempt, rejected(st, "v2"))
	}
	c.Edit("ends the pause", func(s *v1alpha1.RolloutSpec) { s.Paused = false })
	mustReach(t, c, 120, "the pause of its step", pausedAt("v2", 1))
	if c.Status.Attempt != 3 {
		t.Errorf("attempt %d, want 3", c.Status.Attempt)
	}
}

// A trailer that was in Git before the version failed says nothing about the
// failure, whatever template its commit declares.
func TestLaw14_TrailerSpokenBeforeTheFailure(t *testing.T) {
	c := paused(t, withRouter(setWeight(50), pause(0)), 1)
	c.RevertAfter = 0
	c.Edit("pauses", func(s *v1alpha1.RolloutSpec) { s.Paused = true })
	c.Push("v3", "main@sha1:other", "Try v2 again some day", "v2")
	c.Run(10, nil)
	c.Send(v1alpha1.AbortAnnotation, "stop")
	c.Run(30, nil)
	if st := c.Status; !st.Abort || !rejected(st, "v2") {
		t.Errorf("aborted: %v, rejected: %v; want both", st.Abort, rejected(st, "v2"))
	}
	if strings.Contains(transcript(c), v1alpha1.ReasonRetry) {
		t.Errorf("the hold was lifted\n%s", transcript(c))
	}
}
