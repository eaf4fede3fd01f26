package forecast

import (
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// patience is how many times at most a run is looked at: two days of a measurement every
// ten seconds.
const patience = 2 * 8640

// never is the time of what doesn't happen.
const never = 100 * 365 * 24 * time.Hour

// run is an analysis of the strategy with its templates merged.
type run struct {
	name     string
	kind     plan.RunKind
	step     int32
	of       v1alpha1.RolloutAnalysis
	spec     v1alpha1.AnalysisRunSpec
	prepared analysis.Prepared
}

// Analysis is one analysis of a strategy with its templates merged.
type Analysis struct {
	// Name as in Metric.Run.
	Name string
	// Of is what the Rollout says, and Spec the run that is made of it.
	Of   v1alpha1.RolloutAnalysis
	Spec v1alpha1.AnalysisRunSpec
	// Endless is true when nothing in it ever ends by itself.
	Endless bool
}

// Analyses are the analyses of a Rollout, in the order of its strategy.
func Analyses(in Input) ([]Analysis, error) {
	runs, err := prepareRuns(in)
	if err != nil {
		return nil, err
	}
	var out []Analysis
	for _, r := range runs {
		after, _ := r.outcome(nobody, 0)
		out = append(out, Analysis{Name: r.name, Of: r.of, Spec: r.spec, Endless: after == never})
	}
	return out, nil
}

// culprit is the metric that alone fails; the zero value is nobody.
type culprit struct{ run, metric string }

var nobody culprit

// is says that the simulated run is an instance of this one.
func (r run) is(live plan.Run) bool {
	return r.kind == live.Kind && (r.kind != plan.RunStep || r.step == live.Step)
}

func prepareRuns(in Input) ([]run, error) {
	var out []run
	add := func(name string, kind plan.RunKind, step int32, a *v1alpha1.RolloutAnalysis) error {
		if a == nil {
			return nil
		}
		// The hashes stand for what only the cluster knows.
		spec, err := analysis.MakeRunSpec(*a, analysis.ArgumentSource{StableHash: "stable", LatestHash: "latest", Object: in.Object}, in.Lookup)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		prepared, err := analysis.Prepare(spec)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, run{name: name, kind: kind, step: step, of: *a, spec: spec, prepared: prepared})
		return nil
	}
	if bg := in.Spec.Strategy.BlueGreen; bg != nil {
		if err := add("pre-promotion", plan.RunPrePromotion, 0, bg.PrePromotionAnalysis); err != nil {
			return nil, err
		}
		return out, add("post-promotion", plan.RunPostPromotion, 0, bg.PostPromotionAnalysis)
	}
	canary := in.Spec.Strategy.Canary
	if canary == nil {
		return nil, fmt.Errorf("rollout %s has no strategy", in.Name)
	}
	if canary.Analysis != nil {
		if err := add("background", plan.RunBackground, 0, &canary.Analysis.RolloutAnalysis); err != nil {
			return nil, err
		}
	}
	for i, step := range canary.Steps {
		if err := add(fmt.Sprintf("step %d", i+1), plan.RunStep, int32(i), step.Analysis); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// metrics are the metrics of the run, with their times from its start.
func (r run) metrics() []Metric {
	var out []Metric
	for i, m := range r.spec.Metrics {
		first, interval, count := r.prepared.Schedule(i)
		out = append(out, Metric{
			Run: r.name, Metric: m.Name, First: seconds(first), Interval: seconds(interval), Count: count,
			DryRun: r.prepared.DryRun(i),
		})
	}
	return out
}

// outcome is how long a run takes, and how it ends, when the culprit's metric fails
// each time from some time of the run on and every other succeeds. A run without an end
// of its own is never over.
func (r run) outcome(bad culprit, from time.Duration) (time.Duration, v1alpha1.AnalysisPhase) {
	end, status := r.follow(bad, from, never)
	if !status.Phase.Completed() {
		return never, v1alpha1.AnalysisPhaseSuccessful
	}
	return end, status.Phase
}

// times is how often a metric is measured in a time when all is well.
func (r run) times(metric string, within time.Duration) int32 {
	_, status := r.follow(nobody, 0, within)
	for i, result := range status.MetricResults {
		if result.Name != metric {
			continue
		}
		if !status.Phase.Completed() && r.endless(status, nobody) {
			first, interval, _ := r.prepared.Schedule(i)
			if within < first {
				return 0
			}
			return int32((within-first)/interval) + 1 // nothing but more of the same
		}
		return result.Count
	}
	return 0
}

// follow folds measurements until the run is over, until a time of it, or until nothing
// new can come of it.
func (r run) follow(bad culprit, from, until time.Duration) (time.Duration, v1alpha1.AnalysisRunStatus) {
	start := time.Unix(0, 0).UTC()
	status := r.prepared.Fold(v1alpha1.AnalysisRunStatus{}, nil, start)
	now := start
	for range patience {
		var measured []analysis.Measured
		for _, task := range r.prepared.Due(status, now) {
			phase := v1alpha1.AnalysisPhaseSuccessful
			if bad == (culprit{r.name, task.Metric}) && now.Sub(start) >= from {
				phase = v1alpha1.AnalysisPhaseFailed
			}
			measured = append(measured, analysis.Measured{Task: task, Phase: phase, Started: now})
		}
		status = r.prepared.Fold(status, measured, now)
		after, due := r.prepared.Wake(status, now)
		if status.Phase.Completed() || !due || r.endless(status, bad) {
			break
		}
		next := now.Add(max(after, time.Second))
		if next.Sub(start) > until {
			break
		}
		now = next
	}
	return now.Sub(start), status
}

// endless says that nothing more can come of the run: all that is left to measure
// succeeds for ever.
func (r run) endless(status v1alpha1.AnalysisRunStatus, bad culprit) bool {
	for i, result := range status.MetricResults {
		_, _, count := r.prepared.Schedule(i)
		mayEnd := count > 0 || r.spec.Metrics[i].ConsecutiveSuccessLimit != nil || bad == (culprit{r.name, result.Name})
		if !result.Phase.Completed() && mayEnd {
			return false
		}
	}
	return true
}
