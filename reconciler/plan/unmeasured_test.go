package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

var errs = plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseError, Detail: "connection refused"}

// outage is a cluster whose v2 could not be measured, and where all has come to rest.
func outage(t *testing.T) *plansim.Cluster {
	t.Helper()
	c := cluster(withRouter(setWeight(25), analyse(), pause(0)))
	c.Verdict = verdicts("v2", plan.RunStep, errs)
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	c.Run(60, nil)
	return c
}

// erredRun is the run of an input that could not be measured.
func erredRun(t *testing.T, in *plan.In) *plan.Run {
	t.Helper()
	in.Runs = slices.Clone(in.Runs)
	at := slices.IndexFunc(in.Runs, func(r plan.Run) bool { return r.Phase == v1alpha1.AnalysisPhaseError })
	if at < 0 {
		t.Fatal("no run ended Error")
	}
	return &in.Runs[at]
}

func reject(in *plan.In, hash string, cleared bool) {
	in.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: hash, Attempt: 1, Reason: v1alpha1.AbortFailed, Revert: v1alpha1.RevertObserved, Cleared: cleared}}
}

// TestLaw10_TheReturnOfTheProvider: what starts an unmeasured version again, and
// what comes before that (law 8). Each case changes the rest after an outage, with
// the provider back.
func TestLaw10_TheReturnOfTheProvider(t *testing.T) {
	const starts, waits = "starts again", "waits"
	for name, tc := range map[string]struct {
		change func(*plan.In, *plan.Run)
		want   string // or the hash that is current afterwards
		asked  bool   // the wish stands, or is written
	}{
		"the provider is back":          {func(*plan.In, *plan.Run) {}, starts, false},
		"it isn't":                      {func(_ *plan.In, r *plan.Run) { r.Answered = false }, waits, true},
		"a run of another attempt is":   {func(_ *plan.In, r *plan.Run) { r.Attempt-- }, waits, false},
		"a run of another template is":  {func(_ *plan.In, r *plan.Run) { r.Hash = "v0" }, waits, false},
		"the spec was refused":          {func(_ *plan.In, r *plan.Run) { r.Askable = false }, waits, false},
		"spec.paused":                   {func(in *plan.In, _ *plan.Run) { in.Spec.Paused = true }, waits, false},
		"a template is missing":         {func(in *plan.In, _ *plan.Run) { in.Missing = []string{"AnalysisTemplate x"} }, waits, false},
		"the spec is invalid":           {func(in *plan.In, _ *plan.Run) { in.Invalid = []string{"spec.x: no"} }, waits, false},
		"a newer template":              {func(in *plan.In, _ *plan.Run) { in.Template.Hash = "v3" }, "v3", false},
		"the stable template":           {func(in *plan.In, _ *plan.Run) { in.Template.Hash = "v1" }, "v1", false},
		"it was rejected for an Error":  {func(in *plan.In, _ *plan.Run) { reject(in, "v2", false) }, waits, false},
		"a person had lifted a hold":    {func(in *plan.In, _ *plan.Run) { reject(in, "v2", true) }, starts, false},
		"it was aborted by a person":    {func(in *plan.In, _ *plan.Run) { in.Status.AbortReason = v1alpha1.AbortByPerson }, waits, false},
		"a person pauses it":            {func(in *plan.In, _ *plan.Run) { in.Verbs = map[string]string{v1alpha1.PauseAnnotation: "v2/0/p"} }, waits, false},
		"a person aborts it":            {func(in *plan.In, _ *plan.Run) { in.Verbs = map[string]string{v1alpha1.AbortAnnotation: "v2/0/a"} }, waits, false},
		"a person retries it":           {func(in *plan.In, _ *plan.Run) { in.Verbs = map[string]string{v1alpha1.RetryAnnotation: "v2/0/r"} }, starts, false},
		"it is irreversible, confirmed": {func(in *plan.In, _ *plan.Run) { in.Template.Irreversible = true }, starts, false},
		"another provider is still out": {func(in *plan.In, r *plan.Run) {
			in.Runs = append(in.Runs, plan.Run{Name: "other", Kind: plan.RunBackground, Hash: r.Hash, Attempt: r.Attempt, Phase: r.Phase, Askable: true})
		}, waits, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := observe(outage(t))
			run := erredRun(t, &in)
			run.Answered = true
			tc.change(&in, run)
			p := plan.Decide(in)
			got := waits
			switch {
			case p.Status.CurrentPodHash != "v2":
				got = p.Status.CurrentPodHash
			case p.Status.Attempt == in.Status.Attempt+1 && !p.Status.Abort && len(p.Status.PauseConditions) == 0:
				got = starts
			case p.Status.Attempt != in.Status.Attempt || !p.Status.Abort:
				got = "does something else"
			}
			if got != tc.want {
				t.Errorf("it %s, want %s: %s", got, tc.want, p.Status.Message)
			}
			asked := 0
			for _, r := range in.Runs {
				wish := r.AskFrom
				for _, w := range p.Probes {
					if w.Name == r.Name {
						wish = w.NotBefore
					}
				}
				if wish != nil {
					asked++
				}
			}
			if (asked == 1) != tc.asked {
				t.Errorf("%d runs are asked again, want it %v: %+v", asked, tc.asked, p.Probes)
			}
		})
	}
}

// The wait doubles with each attempt in a row and follows from the persisted abort,
// so that no pass wants another time than the one before.
func TestTheReturnIsHeededLaterEachTime(t *testing.T) {
	base := observe(outage(t))
	for n, want := range map[int32]time.Duration{
		0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 320 * time.Second,
		7: 10 * time.Minute, 8: 10 * time.Minute, 1 << 30: 10 * time.Minute,
	} {
		in := base
		run := erredRun(t, &in)
		run.AskFrom = nil
		in.Status.Unmeasured = n
		at := in.Status.AbortedAt.Add(want)
		if diff := cmp.Diff([]plan.ProbeWant{{Name: run.Name, NotBefore: &at}}, plan.Decide(in).Probes); diff != "" {
			t.Errorf("after %d attempts (-want +got):\n%s", n, diff)
		}
		run.AskFrom = &at
		in.Now = in.Now.Add(time.Hour)
		if got := plan.Decide(in).Probes; got != nil {
			t.Errorf("after %d attempts it is written once more: %+v", n, got)
		}
		run.AskFrom = &time.Time{} // what can't be read
		if got := plan.Decide(in).Probes; len(got) != 1 {
			t.Errorf("after %d attempts what can't be read stays: %+v", n, got)
		}
	}
}

// The count of attempts in a row belongs to a template, and ends with a verdict.
func TestUnmeasuredAttemptsInARow(t *testing.T) {
	for name, tc := range map[string]struct {
		then func(*testing.T, *plansim.Cluster)
		want int32
	}{
		"once": {func(*testing.T, *plansim.Cluster) {}, 1},
		"a retry that ends likewise": {func(t *testing.T, c *plansim.Cluster) {
			c.Send(v1alpha1.RetryAnnotation, "again")
			mustReach(t, c, 60, "Degraded", func(c *plansim.Cluster) bool { return c.Status.Attempt == 3 && c.Status.Abort })
		}, 2},
		"a retry that fails": {func(t *testing.T, c *plansim.Cluster) {
			c.Verdict, c.RevertAfter = verdicts("v2", plan.RunStep, fails), 0
			c.Send(v1alpha1.RetryAnnotation, "again")
			mustReach(t, c, 60, "Degraded", func(c *plansim.Cluster) bool { return c.Status.Attempt == 3 && c.Status.Abort })
		}, 0},
		"a retry under way": {func(t *testing.T, c *plansim.Cluster) {
			c.Verdict = nil
			c.Send(v1alpha1.RetryAnnotation, "again")
			mustReach(t, c, 60, "the pause", pausedAt("v2", 2))
		}, 1},
		"a promotion": {func(t *testing.T, c *plansim.Cluster) {
			c.Verdict = nil
			c.Send(v1alpha1.RetryAnnotation, "again")
			mustReach(t, c, 60, "the pause", pausedAt("v2", 2))
			c.Send(v1alpha1.PromoteAnnotation, "go")
			mustReach(t, c, 60, "Healthy", healthyOn("v2"))
		}, 0},
		"a newer template that ends likewise": {func(t *testing.T, c *plansim.Cluster) {
			c.Verdict = verdicts("v3", plan.RunStep, errs)
			push(c, "v3")
			mustReach(t, c, 60, "Degraded", func(c *plansim.Cluster) bool { return c.Status.CurrentPodHash == "v3" && c.Status.Abort })
		}, 1},
		"the stable template": {func(t *testing.T, c *plansim.Cluster) {
			push(c, "v1")
			mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		}, 0},
		"a person's abort": {func(t *testing.T, c *plansim.Cluster) {
			c.RevertAfter = 0
			c.Send(v1alpha1.AbortAnnotation, "stop")
			c.Run(5, nil)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := outage(t)
			tc.then(t, c)
			if c.Status.Unmeasured != tc.want {
				t.Errorf("%d, want %d", c.Status.Unmeasured, tc.want)
			}
			noViolations(t, c)
		})
	}
}

// A person may have done with a version that only waits for its provider: it is
// rejected and reverted, and the provider's return starts nothing.
func TestAPersonAbortsWhatIsUnmeasured(t *testing.T) {
	c := outage(t)
	c.RevertAfter = 0
	aborted := *c.Status.AbortedAt
	c.Send(v1alpha1.AbortAnnotation, "stop")
	c.Answers = func(plan.Run) bool { return true }
	c.Run(700, nil)
	st := c.Status
	if st.Verbs["abort"].Refused != "" || st.AbortReason != v1alpha1.AbortByPerson || st.Attempt != 2 || len(st.Rejected) != 1 || len(c.Reverts()) != 1 {
		t.Fatalf("%+v, attempt %d, %s, %d rejected, %d reverts", st.Verbs["abort"], st.Attempt, st.AbortReason, len(st.Rejected), len(c.Reverts()))
	}
	if !st.AbortedAt.Equal(&aborted) {
		t.Errorf("taken back at %s, want %s: nothing more was taken back", st.AbortedAt, aborted)
	}
	if c.Runs()[0].AskFrom != nil || !strings.Contains(transcript(c), "Took back template v2 of commit main@sha1:v2c0ffee: aborted by a person") {
		t.Errorf("asked from %v\n%s", c.Runs()[0].AskFrom, transcript(c))
	}
	noViolations(t, c)
	c.Send(v1alpha1.AbortAnnotation, "again")
	c.Run(5, nil)
	if c.Status.Verbs["abort"].Refused == "" {
		t.Error("a second abort was carried out")
	}
}

// While it waits nothing is written and the message stands still; a pause takes the
// wish back and its end renews it.
func TestAnUnmeasuredVersionRests(t *testing.T) {
	c := outage(t)
	says := func(want string) {
		t.Helper()
		if !strings.HasSuffix(c.Status.Message, want) {
			t.Errorf("%q does not end %q", c.Status.Message, want)
		}
	}
	says("it starts again when the provider answers, or by retry")
	writes := c.Writes
	c.Run(1200, nil)
	if c.Writes != writes {
		t.Errorf("%d writes in 20 minutes of outage\n%s", c.Writes-writes, transcript(c))
	}
	from := c.Runs()[0].AskFrom
	c.Send(v1alpha1.PauseAnnotation, "wait")
	c.Run(5, nil)
	says("retry starts it again; manually paused, so no other version is taken up")
	if c.Runs()[0].AskFrom != nil {
		t.Error("the provider is asked under a person's pause")
	}
	c.Answers = func(plan.Run) bool { return true }
	c.Run(60, nil)
	if c.Status.Attempt != 2 {
		t.Errorf("attempt %d was started under a person's pause", c.Status.Attempt)
	}
	c.Verdict = nil
	c.Send(v1alpha1.ResumeAnnotation, "go")
	mustReach(t, c, 60, "the next attempt", pausedAt("v2", 2))
	if c.Status.Attempt != 3 || from == nil || c.Runs()[0].AskFrom != nil {
		t.Errorf("attempt %d, first asked from %v, and now from %v", c.Status.Attempt, from, c.Runs()[0].AskFrom)
	}
}

// What the spec names may have gone meanwhile: the message says what is waited for.
func TestTheReturnWaitsForWhatIsMissing(t *testing.T) {
	c := outage(t)
	c.Answers = func(plan.Run) bool { return true }
	c.Missing = []string{"AnalysisTemplate x does not exist"}
	c.Run(60, nil)
	if want := "the provider answers again; waiting for what the spec names: AnalysisTemplate x does not exist"; c.Status.Attempt != 2 || !strings.HasSuffix(c.Status.Message, want) {
		t.Fatalf("attempt %d, %q", c.Status.Attempt, c.Status.Message)
	}
	c.Missing, c.Verdict = nil, nil
	mustReach(t, c, 60, "the next attempt", pausedAt("v2", 2))
}
