package plansim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
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
			Phase: v1alpha1.AnalysisPhasePending, Created: c.Now,
			Destinations: destinations(want), Routed: len(destinations(want)) > 0,
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
	for _, name := range p.FreeExperiments {
		if c.stops("freeExperiment") {
			return false
		}
		if i := c.findExperiment(name); i >= 0 && c.experiments[i].Routed {
			c.Writes++
			c.experiments[i].Routed = false
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
		if e.Pods > 0 && !e.Routed && !c.Now.Before(e.Created.Add(experimentLingers)) {
			e.Pods = 0
			c.checkExtraPods()
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
		e.Phase, e.Pods = v1alpha1.AnalysisPhaseRunning, 2
		e.Destinations = slices.Clone(e.Destinations)
		for i := range e.Destinations {
			e.Destinations[i].Available, e.Destinations[i].Ready = 1, true
		}
	}
	if e.Phase.Completed() {
		at := c.Now
		e.Completed = &at
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

// destinations are the versions of an Experiment that have a weight.
func destinations(want plan.ExperimentWant) []plan.Destination {
	var out []plan.Destination
	for _, t := range want.Spec.Templates {
		if t.Weight != nil && *t.Weight > 0 {
			out = append(out, plan.Destination{Extra: routers.Extra{Service: want.Name + "-" + t.Name, Weight: *t.Weight}, Hash: t.Name})
		}
	}
	return out
}

// Extras are the Services of Experiments in the routing object.
func (c *Cluster) Extras() []routers.Extra { return c.route.extras }

func extraNames(extras []routers.Extra) string {
	if len(extras) == 0 {
		return "no share for an Experiment"
	}
	var names []string
	for _, e := range extras {
		names = append(names, fmt.Sprintf("%d for %s", e.Weight, e.Service))
	}
	return strings.Join(names, ", ")
}

// withPods says that the Experiment of a Service has pods.
func (c *Cluster) withPods(service string) bool {
	return slices.ContainsFunc(c.experiments, func(e plan.Experiment) bool {
		return e.Pods > 0 && slices.ContainsFunc(e.Destinations, func(d plan.Destination) bool { return d.Service == service })
	})
}

// checkExtras: laws 1 and 4.
func (c *Cluster) checkExtras(p plan.Plan) {
	for _, e := range p.Split.Extras {
		if !c.withPods(e.Service) {
			c.violated("1", "%s is given %d and has no pods", e.Service, e.Weight)
		}
	}
	if p.Status.Abort && len(p.Split.Extras) > 0 {
		c.violated("4", "an aborted version keeps %s", extraNames(p.Split.Extras))
	}
}

// checkExtraPods: law 2.
func (c *Cluster) checkExtraPods() {
	for _, e := range c.route.extras {
		if !c.withPods(e.Service) {
			c.violated("2", "the pods of %s go while it is given %d", e.Service, e.Weight)
		}
	}
}
