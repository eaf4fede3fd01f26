package plan_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// stories are whole rollouts, told as transcripts in testdata. They are meant to
// be read: each line is something that happened, and when.
var stories = map[string]story{
	"first-version": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(20), pause(0))) },
		script: []act{
			commits("v1"),
			reaches(60, "Healthy", healthyOn("v1")),
		},
	},
	"promoted": {
		start: func() *plansim.Cluster {
			return cluster(withRouter(setWeight(25), analyse(), setWeight(50), pause(10), analyse()))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"aborted-and-reverted": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse(), setWeight(50), pause(10)))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"aborted-by-background-analysis": {
		start: func() *plansim.Cluster {
			strategy := withRouter(setWeight(25), pause(30), setWeight(50), pause(30))
			strategy.Analysis = background(1)
			c := cluster(strategy)
			c.Verdict = verdicts("v2", plan.RunBackground, plansim.Script{After: 45 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail})
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
		},
	},
	"unmeasured": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseError, Detail: `metric "success-rate": 5 consecutive errors: connection refused`})
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			rests(60),
			does(func(c *plansim.Cluster) { c.Verdict = nil }),
			sends(v1alpha1.RetryAnnotation, "again"),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"the-provider-returns": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseError, Detail: `metric "success-rate": 5 consecutive errors: connection refused`})
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			rests(60),
			does(func(c *plansim.Cluster) { c.Answers = func(plan.Run) bool { return true } }), // and is gone again when it is needed
			reaches(120, "another outage", func(c *plansim.Cluster) bool { return c.Status.Unmeasured == 2 }),
			does(func(c *plansim.Cluster) { c.Verdict = nil }),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"inconclusive": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse(), pause(10)))
			c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseInconclusive})
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", phase(v1alpha1.RolloutPhasePaused)),
			rests(60),
			sends(v1alpha1.PromoteAnnotation, "looks-fine"),
			reaches(60, "Healthy", healthyOn("v2")),
		},
	},
	"superseded": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 1)),
			commits("v3"),
			reaches(60, "the pause", pausedAt("v3", 1)),
			rests(60),
		},
	},
	"return-to-stable": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(0))) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 1)),
			commits("v1"),
			rests(60),
		},
	},
	"held": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
			commits("v2"),
			rests(120),
		},
	},
	"retried-by-a-trailer": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			rests(60),
			does(func(c *plansim.Cluster) {
				c.Commit("v2", "main@sha1:tryagain", "Try again")
				c.Source.RetryHashes = []string{"v2"}
			}),
			reaches(120, "the second attempt", func(c *plansim.Cluster) bool { return c.Status.Attempt == 3 }),
			rests(60),
		},
	},
	"paused-by-a-person": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(25), pause(20), setWeight(75), pause(5))) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 1)),
			sends(v1alpha1.PauseAnnotation, "wait"),
			rests(60),
			sends(v1alpha1.ResumeAnnotation, "go"),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"deadline-abort": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), pause(0)))
			c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
			c.Behaviours["v2"] = plansim.Behaviour{Never: true}
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"without-a-router": {
		start: func() *plansim.Cluster {
			return cluster(withoutRouter(setWeight(25), pause(10), setWeight(50), pause(10)))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"without-a-router-aborted": {
		start: func() *plansim.Cluster {
			c := cluster(withoutRouter(setWeight(50), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
		},
	},
	"no-steps": {
		start: func() *plansim.Cluster { return cluster(withRouter()) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"no-steps-without-a-router": {
		start: func() *plansim.Cluster { return cluster(withoutRouter()) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"scaled-in-the-middle": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(20))) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 1)),
			scales(8),
			rests(10),
			scales(2),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"status-lost": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(25), pause(5), setWeight(75), pause(30))) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the second pause", pausedAt("v2", 3)),
			does(func(c *plansim.Cluster) { c.LoseStatus() }),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"stable-broken": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50), pause(10))) },
		script: []act{
			stable("v1"),
			pods("v1", plansim.Behaviour{Never: true}),
			rests(20),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"aborted-with-no-side-to-serve": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(50), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the analysis", atStep("v2", 1)),
			pods("v1", plansim.Behaviour{Never: true}),
			rests(30),
			pods("v1", plansim.Behaviour{ReadyAfter: 3 * time.Second}),
			rests(60),
		},
	},
	"router-refuses-the-abort": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(50), analyse()))
			c.Verdict = verdicts("v2", plan.RunStep, fails)
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the analysis", atStep("v2", 1)),
			does(func(c *plansim.Cluster) { c.RefuseWeights = true }),
			rests(120),
			does(func(c *plansim.Cluster) { c.RefuseWeights = false }),
			rests(60),
		},
	},
	"irreversible": {
		start: func() *plansim.Cluster { return cluster(withRouter(setWeight(50))) },
		script: []act{
			stable("v1"),
			does(func(c *plansim.Cluster) {
				push(c, "v2")
				c.Template.Irreversible = true
			}),
			rests(30),
			sends(v1alpha1.PromoteAnnotation, "yes"),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
}

func TestGolden(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := starts(story)
			if err := p.tell(len(story.script)); err != nil {
				t.Fatalf("%v\n%s", err, transcript(p.Cluster))
			}
			path := filepath.Join("testdata", name+".golden")
			got := transcript(p.Cluster)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; go test ./reconciler/plan -run Golden -update writes it", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the story went otherwise (-want +got):\n%s", diff)
			}
		})
	}
}
