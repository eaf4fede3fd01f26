package plansim

import (
	"reflect"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// executeProbes writes the wishes to runs, each over what was read.
func (c *Cluster) executeProbes(in plan.In, p plan.Plan) bool {
	for _, want := range p.Probes {
		if c.stops("probe") {
			return false
		}
		named := func(r plan.Run) bool { return r.Name == want.Name }
		at, read := slices.IndexFunc(c.runs, named), slices.IndexFunc(in.Runs, named)
		if at < 0 {
			continue // it is gone, and so is the wish
		}
		run := &c.runs[at]
		if !reflect.DeepEqual(in.Runs[read], *run) {
			return false // a lost race
		}
		c.Writes++
		run.AskFrom = want.NotBefore
		if want.NotBefore != nil {
			c.note("runs", "asks the provider of %s again, from %s on", run.Name, clockAt(*want.NotBefore))
		} else {
			c.note("runs", "asks the provider of %s no more", run.Name)
		}
		c.changed("runs")
	}
	return true
}

// tickProbe tries the provider of a run that ended Error, and says whether it answered just now.
func (c *Cluster) tickProbe(run *plan.Run) bool {
	if run.Phase != v1alpha1.AnalysisPhaseError || run.AskFrom == nil || run.Answered || c.Now.Before(*run.AskFrom) ||
		c.Answers == nil || !c.Answers(*run) {
		return false
	}
	run.Answered = true
	c.note("run", "the provider of %s answers", run.Name)
	return true
}

// providersBack says that every provider that kept an attempt from being measured is
// back (law 10): a reason for the next one.
func (c *Cluster) providersBack(was v1alpha1.RolloutStatus) bool {
	found := false
	for _, run := range c.runs {
		if run.Hash == was.CurrentPodHash && run.Attempt == was.Attempt && run.Phase == v1alpha1.AnalysisPhaseError {
			if !run.Answered {
				return false
			}
			found = true
		}
	}
	return found && was.Abort && was.AbortReason == v1alpha1.AbortError
}
