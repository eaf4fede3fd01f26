package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// outcome is what a story comes to, as text: all that must not hang on the order of
// what happened, on crashes and on faults.
func outcome(c *plansim.Cluster) string {
	st := c.Status
	out := []string{
		fmt.Sprintf("%s: %s", st.Phase, st.Message),
		fmt.Sprintf("current %s, stable %s, template %s", st.CurrentPodHash, st.StableRS, c.Template.Hash),
		fmt.Sprintf("attempt %d, step %s, %d superseded, unmeasured %d", st.Attempt, st.Step, st.Superseded, st.Unmeasured),
		fmt.Sprintf("weight %d, %d managed routes, %d shares for Experiments", c.Weight(), len(c.Routes()), len(c.Extras())),
		fmt.Sprintf("stable Service %q, canary Service %q", c.Selects("stable"), c.Selects("canary")),
		fmt.Sprintf("promoted %v", c.Promoted),
	}
	for _, p := range st.PauseConditions {
		out = append(out, fmt.Sprintf("paused: %s", p.Reason))
	}
	for _, r := range st.Rejected {
		out = append(out, fmt.Sprintf("rejected %s in attempt %d: %s, cleared %v, revert %s", r.Hash, r.Attempt, r.Reason, r.Cleared, r.Revert))
	}
	for _, r := range c.Reverts() {
		out = append(out, fmt.Sprintf("revert %s is %s", r.Name, r.Phase))
	}
	var runs []string
	for _, r := range c.Runs() {
		runs = append(runs, fmt.Sprintf("run %s is %s", r.Name, r.Phase))
	}
	for _, e := range c.Experiments() {
		runs = append(runs, fmt.Sprintf("Experiment %s is %s", e.Name, e.Phase))
	}
	slices.Sort(runs)
	out = append(out, runs...)
	for i := range versions {
		if hash := version(i); c.Exists(hash) {
			out = append(out, fmt.Sprintf("%s has %d of %d pods, role %q", hash, c.AvailablePods(hash), c.Desired(hash), c.Role(hash)))
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// expected is what a story comes to when all goes well.
func expected(t *testing.T, s story) string {
	t.Helper()
	p := starts(s)
	if err := p.settle(); err != nil {
		t.Fatalf("%v\n%s", err, transcript(p.Cluster))
	}
	return outcome(p.Cluster)
}

// underWay is a story whose first version is up: how that comes up is a story of
// its own, so that those which begin with it needn't try it again.
func underWay(t *testing.T, s story) *player {
	t.Helper()
	p := starts(s)
	p.PurityEvery = 25 // which the transcripts and the properties ask more often
	if s.script[0].first {
		if err := p.tell(1); err != nil {
			t.Fatalf("%v\n%s", err, transcript(p.Cluster))
		}
	}
	return p
}

// patience multiplies how long a story waits at most where things go wrong.
const patience = 4

// mustComeTo plays a story to its end in a world that the caller has made difficult.
func mustComeTo(t *testing.T, want string, p *player) {
	t.Helper()
	if p.stage == 1 { // in the middle of a wait
		p.left += (patience - 1) * p.script[p.at].within
	}
	p.patience = patience
	if err := p.settle(); err != nil {
		t.Fatalf("%v\n%s", err, transcript(p.Cluster))
	}
	if diff := cmp.Diff(want, outcome(p.Cluster)); diff != "" {
		t.Errorf("it ended otherwise (-want +got):\n%s\n%s", diff, transcript(p.Cluster))
	}
}
