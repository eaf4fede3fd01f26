package analysis

import (
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// errorRetry is the time from the end of a measurement that was an Error to the
// next one, whatever the interval.
const errorRetry = 10 * time.Second

// Action is what to do with a metric.
type Action int

// The actions.
const (
	// Begin a measurement.
	Begin Action = iota
	// Resume the measurement under way.
	Resume
	// Stop the measurement under way, because the run ends.
	Stop
)

// Task is one metric that is due.
type Task struct {
	// Index of the metric in the run's spec.
	Index int
	// Metric is its name.
	Metric string
	Action Action
	// Number of the measurement, from 1; the same until it is recorded as finished.
	Number int
	// Prior is the measurement under way; zero for Begin.
	Prior v1alpha1.Measurement
	// Probe asks only whether the metric's own provider answers; see Probes.
	Probe bool
}

// ID is unique to the measurement of a task: <run uid>.<metric>.<number>.
func (t Task) ID(uid string) string { return MeasurementID(uid, t.Metric, t.Number) }

// MeasurementID is the ID of any measurement of a run: <run uid>.<metric>.<number>.
func MeasurementID(uid, metric string, number int) string {
	return fmt.Sprintf("%s.%s.%d", uid, metric, number)
}

// Due lists what is due at this time, in the order of the metrics. A run that has
// not started has nothing due: Fold starts it.
func (p Prepared) Due(status v1alpha1.AnalysisRunStatus, now time.Time) []Task {
	if status.Phase.Completed() || status.StartedAt == nil {
		return nil
	}
	var tasks []Task
	ending := p.ending(status)
	for i, m := range p.metrics {
		r := resultOf(status, m.name)
		if t, ok := m.task(r, status.StartedAt.Time, ending, now); ok {
			t.Index, t.Metric, t.Number = i, m.name, finished(r)+1
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// Wake is how long after now the next metric is due; ok is false when none will be
// without a change of the run.
func (p Prepared) Wake(status v1alpha1.AnalysisRunStatus, now time.Time) (after time.Duration, ok bool) {
	if status.Phase.Completed() {
		return 0, false
	}
	if status.StartedAt == nil {
		return 0, true
	}
	ending := p.ending(status)
	for _, m := range p.metrics {
		at, due := m.next(resultOf(status, m.name), status.StartedAt.Time, ending)
		if !due {
			continue
		}
		if wait := max(at.Sub(now), 0); !ok || wait < after {
			after, ok = wait, true
		}
	}
	return after, ok
}

// task says what is due now for the metric.
func (m prepared) task(r v1alpha1.MetricResult, started time.Time, ending bool, now time.Time) (Task, bool) {
	at, due := m.next(r, started, ending)
	if !due || now.Before(at) {
		return Task{}, false
	}
	prior, underway := inFlight(r)
	switch {
	case !underway:
		return Task{Action: Begin}, true
	case ending:
		return Task{Action: Stop, Prior: prior}, true
	}
	return Task{Action: Resume, Prior: prior}, true
}

// next is the time of the metric's next task; ok is false when there is none.
func (m prepared) next(r v1alpha1.MetricResult, started time.Time, ending bool) (at time.Time, ok bool) {
	if r.Phase.Completed() {
		return time.Time{}, false
	}
	if prior, underway := inFlight(r); underway {
		stopped := prior.Metadata[stopTries] != "" // in vain, so that ResumeAt is the next try
		if ending && !stopped || prior.ResumeAt == nil {
			return time.Time{}, true
		}
		return prior.ResumeAt.Time, true
	}
	if ending || m.count > 0 && r.Count >= m.count {
		return time.Time{}, false
	}
	last, measured := lastOf(r)
	switch {
	case !measured:
		return started.Add(m.initialDelay), true
	case last.FinishedAt == nil:
		return time.Time{}, true
	case last.Phase == v1alpha1.AnalysisPhaseError:
		return last.FinishedAt.Add(errorRetry), true
	}
	return last.FinishedAt.Add(m.interval), true
}

// ending says that no measurement begins any more: the end was asked for, or a
// metric that decides has gone bad.
func (p Prepared) ending(status v1alpha1.AnalysisRunStatus) bool {
	if p.spec.Terminate {
		return true
	}
	for _, m := range p.metrics {
		if !m.dryRun && bad(resultOf(status, m.name).Phase) {
			return true
		}
	}
	return false
}

// bad says that a phase is final and no success.
func bad(p v1alpha1.AnalysisPhase) bool {
	return p.Completed() && p != v1alpha1.AnalysisPhaseSuccessful
}

func resultOf(status v1alpha1.AnalysisRunStatus, name string) v1alpha1.MetricResult {
	for _, r := range status.MetricResults {
		if r.Name == name {
			return r
		}
	}
	return v1alpha1.MetricResult{Name: name}
}

// finished counts the measurements that came to an end, kept or not.
func finished(r v1alpha1.MetricResult) int { return int(r.Count) + int(r.Error) }

func lastOf(r v1alpha1.MetricResult) (v1alpha1.Measurement, bool) {
	if len(r.Measurements) == 0 {
		return v1alpha1.Measurement{}, false
	}
	return r.Measurements[len(r.Measurements)-1], true
}

// inFlight is the measurement under way, if there is one.
func inFlight(r v1alpha1.MetricResult) (v1alpha1.Measurement, bool) {
	last, ok := lastOf(r)
	return last, ok && !last.Phase.Completed()
}
