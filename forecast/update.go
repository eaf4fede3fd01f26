package forecast

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

const (
	stable, latest = "stable", "latest"
	// settling is how long the first version may take.
	settling = time.Hour
	// horizon is how long an update is followed.
	horizon = 60 * 24 * time.Hour
)

// followed is what became of one simulated update.
type followed struct {
	*plansim.Cluster
	input    Input
	commit   time.Time
	steps    []Step
	started  map[string]Seconds // of runs, from the commit
	exposure Exposure
	traffic  *time.Time // when the new version first had some
	outcomes map[outcome]plansim.Script
	closed   bool // all steps are over
	aborted  bool
	end      Seconds
}

// outcome is what a run's end depends on.
type outcome struct {
	run  string
	bad  culprit
	from time.Duration
}

// update follows one update from its commit to its promotion, or until its traffic is
// back.
func update(in Input, runs []run, bad culprit) (*followed, error) {
	c := simulated(in)
	f := &followed{Cluster: c, input: in, started: map[string]Seconds{}, outcomes: map[outcome]plansim.Script{}}
	c.Verdict = func(live plan.Run) plansim.Script { return f.verdict(live, runs, bad) }
	c.Experiment = func(e plan.Experiment) plansim.Script {
		return plansim.Script{After: experimentLasts(in.Spec, e.Step), Phase: v1alpha1.AnalysisPhaseSuccessful}
	}
	c.Commit(stable, "main@sha1:0000001", "The stable version")
	healthy := func(c *plansim.Cluster) bool {
		return c.Status.Phase == v1alpha1.RolloutPhaseHealthy && c.Status.StableRS == c.Template.Hash
	}
	if !c.Run(int(settling.Seconds()), healthy) {
		return nil, fmt.Errorf("rollout %s: the first version does not become healthy in %s: %s", in.Name, settling, c.Status.Message)
	}
	f.commit = c.Now
	c.Commit(latest, "main@sha1:0000002", "The new version")
	for range int(horizon.Seconds()) {
		if c.Second(f.pass) {
			break
		}
		f.elapse()
	}
	if !f.over() {
		return nil, fmt.Errorf("rollout %s: the update is not over in %s: %s", in.Name, horizon, c.Status.Message)
	}
	f.end = seconds(c.Now.Sub(f.commit))
	f.aborted = c.Status.StableRS != latest
	f.settleStep()
	if !f.aborted {
		f.exposure.Most = 1 // it has all of it from now on
	}
	return f, nil
}

// verdict is what becomes of a run. A metric of the background can't fail before there
// is traffic to fail; one of a step or a stage may look at something else, and fails
// from its start.
func (f *followed) verdict(live plan.Run, runs []run, bad culprit) plansim.Script {
	i := slices.IndexFunc(runs, func(r run) bool { return r.is(live) })
	if i < 0 {
		return plansim.Script{Phase: v1alpha1.AnalysisPhaseSuccessful}
	}
	r := runs[i]
	f.started[r.name] = seconds(live.Created.Sub(f.commit))
	from := time.Duration(0)
	if r.kind == plan.RunBackground {
		if f.traffic == nil {
			bad = nobody
		} else {
			from = f.traffic.Sub(live.Created)
		}
	}
	known := outcome{r.name, bad, from}
	script, ok := f.outcomes[known]
	if !ok {
		script.After, script.Phase = r.outcome(bad, from)
		f.outcomes[known] = script
	}
	return script
}

// simulated is a cluster with the Rollout, whose pods and gateways do what they are told.
func simulated(in Input) *plansim.Cluster {
	var c *plansim.Cluster
	start := time.Unix(0, 0).UTC()
	if bg := in.Spec.Strategy.BlueGreen; bg != nil {
		c = plansim.NewBlueGreen(start, *bg, in.Replicas)
	} else {
		c = plansim.New(start, *in.Spec.Strategy.Canary.DeepCopy(), in.Replicas)
	}
	strategy := c.Spec.Strategy
	c.Spec = *in.Spec.DeepCopy()
	c.Spec.Strategy = strategy
	c.Spec.Paused = false
	if !c.Routed { // the simulator wants numbers
		up, down := plan.Bounds(*strategy.Canary, in.Replicas)
		surge, unavailable := intstr.FromInt32(up), intstr.FromInt32(down)
		strategy.Canary.MaxSurge, strategy.Canary.MaxUnavailable = &surge, &unavailable
	}
	ready := in.ReadyDelay + time.Duration(in.Spec.MinReadySeconds)*time.Second
	for _, version := range []string{stable, latest} {
		c.Behaviours[version] = plansim.Behaviour{ReadyAfter: ready}
	}
	return c
}

// pass is called after each pass: it notes the step, answers for a person, and says
// whether the update is over.
func (f *followed) pass(*plansim.Cluster) bool {
	st := f.Status
	f.exposure.Most = max(f.exposure.Most, f.share())
	if st.CurrentPodHash == latest && st.CurrentStepIndex != nil && !st.Abort {
		f.reach(*st.CurrentStepIndex)
	}
	if f.waits() {
		f.steps[len(f.steps)-1].Waits = true
		f.Send(v1alpha1.PromoteAnnotation, fmt.Sprintf("forecast%d", len(f.steps)))
	}
	return f.over()
}

// waits says that a person is asked for.
func (f *followed) waits() bool {
	i := f.Status.CurrentStepIndex
	steps := stepsOf(f.input.Spec)
	return f.Status.Phase == v1alpha1.RolloutPhasePaused && i != nil && int(*i) < len(steps) &&
		steps[*i].Pause != nil && steps[*i].Pause.Duration == nil && !f.steps[len(f.steps)-1].Waits
}

// over says that the update is promoted, or that its traffic is back.
func (f *followed) over() bool {
	st := f.Status
	if st.CurrentPodHash == latest && st.Abort {
		return f.share() == 0
	}
	return st.StableRS == latest
}

// reach ends the step before and begins one.
func (f *followed) reach(index int32) {
	if int(index) >= len(stepsOf(f.input.Spec)) {
		f.settleStep()
		f.closed = true
		return
	}
	for i := int32(len(f.steps)); i <= index; i++ {
		f.settleStep()
		f.steps = append(f.steps, Step{
			Index: i + 1, Text: stepText(f.input.Spec, i), From: seconds(f.Now.Sub(f.commit)), Asked: asked(f.input.Spec, i),
		})
	}
}

// settleStep notes what the step before has come to.
func (f *followed) settleStep() {
	if len(f.steps) == 0 || f.closed {
		return
	}
	last := &f.steps[len(f.steps)-1]
	last.Lasts = seconds(f.Now.Sub(f.commit)) - last.From
	last.Share, last.NewPods, last.OldPods = f.share(), f.AvailablePods(latest), f.AvailablePods(stable)
}

// elapse adds up a second.
func (f *followed) elapse() {
	share := f.share()
	if share > 0 && f.traffic == nil {
		now := f.Now
		f.traffic = &now
	}
	f.exposure.Most = max(f.exposure.Most, share)
	f.exposure.Traffic += Seconds(share)
}

// share is what the new version gets of the traffic now.
func (f *followed) share() float64 {
	switch {
	case f.input.Spec.Strategy.BlueGreen != nil:
		if f.Serving() == latest {
			return 1
		}
		return 0
	case !f.Routed:
		fresh, old := float64(f.AvailablePods(latest)), float64(f.AvailablePods(stable))
		if fresh+old == 0 {
			return 0
		}
		return fresh / (fresh + old)
	}
	whole, weight := float64(f.Whole()), float64(f.DataPlane())
	share := 0.0
	if f.Selects("canary") == latest {
		share += weight / whole
	}
	if f.Selects("stable") == latest {
		share += 1 - weight/whole
	}
	return share
}

// measured is how often a metric was measured in the update: until its run was over by
// itself, or until the update was.
func (f *followed) measured(r run, m Metric) int32 {
	started, ran := f.started[r.name]
	if !ran {
		return 0
	}
	return r.times(m.Metric, (f.end - started).Duration())
}
