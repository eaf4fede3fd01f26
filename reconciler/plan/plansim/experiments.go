package plansim

import (
	"reflect"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// experimentLingers is how long the pods of an Experiment stay after its end.
const experimentLingers = 30 * time.Second

// executeExperiments creates, ends and deletes Experiments.
func (c *Cluster) executeExperiments(p plan.Plan, read Read) bool {
	for _, want := range p.Experiments {
		if c.stops("experiment") {
			return false
		}
		if slices.ContainsFunc(c.experiments, func(e plan.Experiment) bool { return e.Name == want.Name }) {
			continue
		}
		c.Writes++
		c.note("runs", "creates Experiment %s", want.Name)
		c.experiments = append(c.experiments, plan.Experiment{
			Name: want.Name, Hash: want.Hash, Attempt: want.Attempt, Step: want.Step,
			Phase: v1alpha1.AnalysisPhasePending, Pods: int32(len(want.Spec.Templates)), Created: c.Now,
		})
		c.changed("experiments")
	}
	for _, name := range p.EndExperiments {
		if c.stops("endExperiment") {
			return false
		}
		if i := c.findExperiment(name); i >= 0 && !c.experiments[i].Terminating {
			c.Writes++
			c.experiments[i].Terminating = true
			c.changed("experiments")
		}
	}
	for _, name := range p.PruneExperiments {
		if c.stops("pruneExperiment") {
			return false
		}
		if i := c.findExperiment(name); i < 0 {
			continue
		} else if !reflect.DeepEqual(c.experiments[i], read.experiments[name]) {
			return false
		}
		c.Writes++
		c.note("runs", "deletes Experiment %s", name)
		c.experiments = slices.DeleteFunc(slices.Clone(c.experiments), func(e plan.Experiment) bool { return e.Name == name })
		c.changed("experiments")
	}
	return true
}

func (c *Cluster) findExperiment(name string) int {
	return slices.IndexFunc(c.experiments, func(e plan.Experiment) bool { return e.Name == name })
}

// Experiments are those that were created.
func (c *Cluster) Experiments() []plan.Experiment { return slices.Clone(c.experiments) }

func (c *Cluster) tickExperiments() {
	for i := range c.experiments {
		c.tickExperiment(i)
	}
}

// tickExperiment is the controller of Experiments looking at one.
func (c *Cluster) tickExperiment(i int) {
	if i >= len(c.experiments) {
		return
	}
	e := &c.experiments[i]
	if e.Phase.Completed() {
		if e.Pods > 0 && !c.Now.Before(e.Created.Add(experimentLingers)) {
			e.Pods = 0
			c.changed("experiments")
		}
		return
	}
	before := e.Phase
	script := Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseSuccessful}
	if c.Experiment != nil {
		script = c.Experiment(*e)
	}
	switch {
	case e.Terminating:
		e.Phase, e.Message = v1alpha1.AnalysisPhaseInconclusive, "it was terminated"
	case script.Phase != "" && !c.Now.Before(e.Created.Add(script.After)):
		e.Phase, e.Message = script.Phase, script.Detail
	default:
		e.Phase = v1alpha1.AnalysisPhaseRunning
	}
	if e.Phase == before {
		return
	}
	c.note("run", "Experiment %s is %s", e.Name, e.Phase)
	if e.Phase == v1alpha1.AnalysisPhaseFailed || e.Phase == v1alpha1.AnalysisPhaseError {
		c.condemnedBy(e)
	}
	c.changed("experiments")
}

// condemnedBy adds the run that ended an Experiment badly.
func (c *Cluster) condemnedBy(e *plan.Experiment) {
	e.Condemned = e.Name + "-rate"
	at := c.Now
	c.runs = append(slices.Clone(c.runs), plan.Run{
		Name: e.Condemned, Kind: plan.RunExperiment, Hash: e.Hash, Attempt: e.Attempt, Step: e.Step, Phase: e.Phase,
		Message: e.Message, Measurements: []string{"measured " + e.Condemned}, Created: e.Created, Completed: &at,
		Askable: e.Phase == v1alpha1.AnalysisPhaseError,
	})
	c.changed("runs")
}

// checkExperiment: no step is left without a successful Experiment of its own.
func (c *Cluster) checkExperiment(was v1alpha1.RolloutStatus, step int32) {
	for _, e := range c.experiments {
		if e.Hash == was.CurrentPodHash && e.Attempt == was.Attempt && e.Step == step && e.Phase == v1alpha1.AnalysisPhaseSuccessful {
			return
		}
	}
	c.violated("11", "step %d was left without a successful Experiment of its own", step)
}
