package plan_test

import (
	"maps"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func init() { maps.Copy(stories, experimentStories) }

// compare is a step that runs stable and canary side by side.
func compare() v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{Experiment: &v1alpha1.RolloutExperimentStep{
		Templates: []v1alpha1.RolloutExperimentTemplate{{Name: "baseline", SpecRef: v1alpha1.SpecRefStable}, {Name: "canary", SpecRef: v1alpha1.SpecRefCanary}},
		Analyses:  []v1alpha1.RolloutExperimentStepAnalysisTemplateRef{{Name: "rate", TemplateName: "success-rate"}},
	}}
}

// weighted gives each version of an Experiment a share of the traffic.
func weighted(step v1alpha1.CanaryStep, weight int32) v1alpha1.CanaryStep {
	for i := range step.Experiment.Templates {
		step.Experiment.Templates[i].Weight = &weight
	}
	return step
}

// experimentEnds scripts the Experiments of a version.
func experimentEnds(hash string, phase v1alpha1.AnalysisPhase) func(plan.Experiment) plansim.Script {
	return func(e plan.Experiment) plansim.Script {
		if e.Hash != hash {
			return plansim.Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseSuccessful}
		}
		return plansim.Script{After: 15 * time.Second, Phase: phase, Detail: "AnalysisRun " + e.Name + "-rate: " + detail}
	}
}

// experimentStories tell of steps that run an Experiment.
var experimentStories = map[string]story{
	"experiment-promoted": {
		start: func() *plansim.Cluster { return cluster(withRouter(compare(), setWeight(50), compare())) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"experiment-without-a-router": {
		start: func() *plansim.Cluster { return cluster(withoutRouter(setWeight(25), compare(), setWeight(50))) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	// C103: the step goes on with its Experiment, however long that takes, and ends with its verdict.
	"experiment-fails-and-is-reverted": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), compare(), pause(10)))
			c.Experiment = experimentEnds("v2", v1alpha1.AnalysisPhaseFailed)
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
	"experiment-unmeasured-and-the-provider-returns": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), compare()))
			c.Experiment = experimentEnds("v2", v1alpha1.AnalysisPhaseError)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			rests(60),
			does(func(c *plansim.Cluster) {
				c.Experiment, c.Answers = nil, func(plan.Run) bool { return true }
			}),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"experiment-inconclusive": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), compare(), setWeight(50), pause(10)))
			c.Experiment = experimentEnds("v2", v1alpha1.AnalysisPhaseInconclusive)
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
	"experiment-superseded": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), compare()))
			c.Experiment = experimentEnds("v2", "")
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "an Experiment", func(c *plansim.Cluster) bool { return c.Status.Canary.CurrentExperiment != "" }),
			rests(5),
			commits("v3"),
			reaches(120, "Healthy", healthyOn("v3")),
			rests(60),
		},
	},
	"experiment-aborted-by-a-person": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), compare()))
			c.Experiment = experimentEnds("v2", "")
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "an Experiment", func(c *plansim.Cluster) bool { return c.Status.Canary.CurrentExperiment != "" }),
			sends(v1alpha1.AbortAnnotation, "stop"),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"experiment-with-weights": {
		start: func() *plansim.Cluster {
			return cluster(withRouter(weighted(compare(), 5), setWeight(50), weighted(compare(), 10)))
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(180, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"experiment-with-weights-fails": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), weighted(compare(), 10), pause(10)))
			c.Experiment = experimentEnds("v2", v1alpha1.AnalysisPhaseFailed)
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
	"experiment-with-weights-aborted-by-a-person": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), weighted(compare(), 10)))
			c.Experiment = experimentEnds("v2", "")
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "its shares", func(c *plansim.Cluster) bool { return len(c.Extras()) == 2 }),
			sends(v1alpha1.AbortAnnotation, "stop"),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"experiment-history": {
		start: func() *plansim.Cluster {
			c := cluster(withRouter(setWeight(25), compare()))
			c.Spec.Analysis = &v1alpha1.AnalysisRunStrategy{SuccessfulRunHistoryLimit: ptr(int32(1))}
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(40),
			commits("v3"),
			reaches(120, "Healthy", healthyOn("v3")),
			rests(40),
			commits("v4"),
			reaches(120, "Healthy", healthyOn("v4")),
			rests(60),
		},
	},
}
