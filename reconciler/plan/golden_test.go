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
var stories = map[string]func(*testing.T) *plansim.Cluster{
	"first-version": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(20), pause(0)))
		push(c, "v1")
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		return c
	},
	"promoted": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse(), setWeight(50), pause(10), analyse()))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"aborted-and-reverted": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse(), setWeight(50), pause(10)))
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"aborted-by-background-analysis": func(t *testing.T) *plansim.Cluster {
		strategy := withRouter(setWeight(25), pause(30), setWeight(50), pause(30))
		strategy.Analysis = background(1)
		c := cluster(strategy)
		c.Verdict = verdicts("v2", plan.RunBackground, plansim.Script{After: 45 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail})
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		return c
	},
	"unmeasured": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseError, Detail: `metric "success-rate": 5 consecutive errors: connection refused`})
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		c.Run(60, nil)
		c.Verdict = nil
		c.Send(v1alpha1.RetryAnnotation, "again")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"the-provider-returns": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseError, Detail: `metric "success-rate": 5 consecutive errors: connection refused`})
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		c.Run(60, nil)
		c.Answers = func(plan.Run) bool { return true } // and is gone again when it is needed
		mustReach(t, c, 120, "another outage", func(c *plansim.Cluster) bool { return c.Status.Unmeasured == 2 })
		c.Verdict = nil
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"inconclusive": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse(), pause(10)))
		c.Verdict = verdicts("v2", plan.RunStep, plansim.Script{After: 5 * time.Second, Phase: v1alpha1.AnalysisPhaseInconclusive})
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", phase(v1alpha1.RolloutPhasePaused))
		c.Run(60, nil)
		c.Send(v1alpha1.PromoteAnnotation, "looks-fine")
		mustReach(t, c, 60, "Healthy", healthyOn("v2"))
		return c
	},
	"superseded": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), pause(0)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
		push(c, "v3")
		mustReach(t, c, 60, "the pause", pausedAt("v3", 1))
		c.Run(60, nil)
		return c
	},
	"return-to-stable": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), pause(0)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
		push(c, "v1")
		c.Run(60, nil)
		return c
	},
	"held": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		push(c, "v2")
		c.Run(120, nil)
		return c
	},
	"retried-by-a-trailer": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		c.RevertAfter = 0
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		c.Run(60, nil)
		c.Commit("v2", "main@sha1:tryagain", "Try again")
		c.Source.RetryHashes = []string{"v2"}
		mustReach(t, c, 120, "the second attempt", func(c *plansim.Cluster) bool { return c.Status.Attempt == 3 })
		c.Run(60, nil)
		return c
	},
	"paused-by-a-person": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), pause(20), setWeight(75), pause(5)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
		c.Send(v1alpha1.PauseAnnotation, "wait")
		c.Run(60, nil)
		c.Send(v1alpha1.ResumeAnnotation, "go")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"deadline-abort": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), pause(0)))
		c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
		c.Behaviours["v2"] = plansim.Behaviour{Never: true}
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"without-a-router": func(t *testing.T) *plansim.Cluster {
		c := cluster(withoutRouter(setWeight(25), pause(10), setWeight(50), pause(10)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"without-a-router-aborted": func(t *testing.T) *plansim.Cluster {
		c := cluster(withoutRouter(setWeight(50), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		return c
	},
	"no-steps": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter())
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"no-steps-without-a-router": func(t *testing.T) *plansim.Cluster {
		c := cluster(withoutRouter())
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"scaled-in-the-middle": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), pause(20)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
		c.Scale(8)
		c.Run(10, nil)
		c.Scale(2)
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"status-lost": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(25), pause(5), setWeight(75), pause(30)))
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the second pause", pausedAt("v2", 3))
		c.LoseStatus()
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"stable-broken": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), pause(10)))
		stableAt(t, c, "v1")
		c.Behaviours["v1"] = plansim.Behaviour{Never: true}
		c.Run(20, nil)
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"aborted-with-no-side-to-serve": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		c.RevertAfter = 0
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the analysis", atStep("v2", 1))
		c.Behaviours["v1"] = plansim.Behaviour{Never: true}
		c.Run(30, nil)
		c.Behaviours["v1"] = plansim.Behaviour{ReadyAfter: 3 * time.Second}
		c.Run(60, nil)
		return c
	},
	"router-refuses-the-abort": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50), analyse()))
		c.Verdict = verdicts("v2", plan.RunStep, fails)
		c.RevertAfter = 0
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the analysis", atStep("v2", 1))
		c.RefuseWeights = true
		c.Run(120, nil)
		c.RefuseWeights = false
		c.Run(60, nil)
		return c
	},
	"irreversible": func(t *testing.T) *plansim.Cluster {
		c := cluster(withRouter(setWeight(50)))
		stableAt(t, c, "v1")
		push(c, "v2")
		c.Template.Irreversible = true
		c.Run(30, nil)
		c.Send(v1alpha1.PromoteAnnotation, "yes")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
}

func TestGolden(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := story(t)
			noViolations(t, c)
			path := filepath.Join("testdata", name+".golden")
			got := transcript(c)
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
