package analysis

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// sameAsNext stands for the message of an error that the next measurement repeats.
const sameAsNext = "the same error as in the next measurement"

// Measured is what a task gave. It holds no secret.
type Measured struct {
	Task Task
	// Phase is Running while the measurement is under way, and final otherwise.
	Phase   v1alpha1.AnalysisPhase
	Message string
	Value   string
	// Started is when a measurement that the task began was begun.
	Started time.Time
	// Handle and After of a measurement under way.
	Handle Handle
	After  time.Duration
	// Metadata to keep with the measurement.
	Metadata map[string]string
	// About is kept with the metric, such as the query that was sent.
	About map[string]string
}

// Fold records measurements and assesses the run. It starts a run that has not
// started, and leaves a completed one as it is. Status is not changed. Times are in
// whole seconds, as they are stored.
func (p Prepared) Fold(status v1alpha1.AnalysisRunStatus, measured []Measured, now time.Time) v1alpha1.AnalysisRunStatus {
	if status.Phase.Completed() {
		return status
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	out := *status.DeepCopy()
	if out.StartedAt == nil {
		out.StartedAt = &at
	}
	results := make([]v1alpha1.MetricResult, len(p.metrics))
	for i, m := range p.metrics {
		results[i] = resultOf(out, m.name)
		results[i].DryRun = m.dryRun
		if results[i].Phase == "" {
			results[i].Phase = v1alpha1.AnalysisPhasePending
		}
	}
	for _, x := range measured {
		record(&results[x.Task.Index], x, roundUp(now))
	}
	for i, m := range p.metrics {
		results[i].Measurements = keepLast(results[i].Measurements, m.retention)
	}
	out.MetricResults = fit(results)
	p.assess(&out, at)
	return out
}

// record adds a measurement to its metric, or puts it in the place of the one under
// way, and counts it once, when it is finished. One that is stopped while it waits for
// something to measure is taken out: it asked nothing of the release, and the metric's
// phase is that of what was measured.
func record(r *v1alpha1.MetricResult, x Measured, at metav1.Time) {
	if r.Phase.Completed() {
		return
	}
	if last := len(r.Measurements) - 1; x.Task.Action == Stop && Waits(x.Task.Prior.Metadata) && last >= 0 {
		r.Measurements = r.Measurements[:last]
		return
	}
	m := v1alpha1.Measurement{
		Phase: x.Phase, Message: Truncate(x.Message, maxMessage), Value: Truncate(x.Value, maxValue),
		StartedAt: x.Task.Prior.StartedAt, Metadata: brief(x.Metadata),
	}
	if x.Task.Action == Begin {
		started := metav1.NewTime(x.Started.Truncate(time.Second))
		m.StartedAt = &started
	}
	if x.Phase.Completed() {
		m.FinishedAt = &at
		count(r, x.Phase)
	} else {
		resume := roundUp(at.Add(x.After))
		m.ResumeAt, m.Metadata = &resume, x.Handle
	}
	if x.About != nil {
		r.Metadata = brief(x.About)
	}
	if x.Task.Action != Begin && len(r.Measurements) > 0 {
		r.Measurements[len(r.Measurements)-1] = m
		return
	}
	if last := len(r.Measurements) - 1; last >= 0 && m.Phase == v1alpha1.AnalysisPhaseError && m.Message != "" && r.Measurements[last].Message == m.Message {
		r.Measurements[last].Message = sameAsNext
	}
	r.Measurements = append(r.Measurements, m)
}

// roundUp is the next whole second: a time that is stored must not lie before what it
// says, or an interval that counts from it would be too short.
func roundUp(now time.Time) metav1.Time {
	return metav1.NewTime(now.Add(time.Second - time.Nanosecond).Truncate(time.Second))
}

func count(r *v1alpha1.MetricResult, phase v1alpha1.AnalysisPhase) {
	if phase == v1alpha1.AnalysisPhaseError {
		r.Error++
		r.ConsecutiveError++
		r.ConsecutiveSuccess = 0
		return
	}
	r.Count++
	r.ConsecutiveError = 0
	switch phase {
	case v1alpha1.AnalysisPhaseSuccessful:
		r.Successful++
		r.ConsecutiveSuccess++
	case v1alpha1.AnalysisPhaseFailed:
		r.Failed++
		r.ConsecutiveSuccess = 0
	case v1alpha1.AnalysisPhaseInconclusive:
		r.Inconclusive++
		r.ConsecutiveSuccess = 0
	}
}

func keepLast(m []v1alpha1.Measurement, limit int) []v1alpha1.Measurement {
	if len(m) <= limit {
		return m
	}
	return append([]v1alpha1.Measurement(nil), m[len(m)-limit:]...)
}

// Stopped is what a Stop task gives: Inconclusive, as in Argo, because nobody knows
// what the measurement would have said.
func Stopped(t Task) Measured {
	return Measured{Task: t, Phase: v1alpha1.AnalysisPhaseInconclusive, Message: "stopped before its end", Metadata: nil}
}

// Failure is a measurement that could not be taken. The error holds no secret.
func Failure(t Task, started time.Time, err error) Measured {
	return Measured{Task: t, Phase: v1alpha1.AnalysisPhaseError, Message: err.Error(), Started: started}
}

// Refuse is the status of a run whose spec can't be used.
func Refuse(status v1alpha1.AnalysisRunStatus, cause error, now time.Time) v1alpha1.AnalysisRunStatus {
	if status.Phase.Completed() {
		return status
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	out := *status.DeepCopy()
	if out.StartedAt == nil {
		out.StartedAt = &at
	}
	out.Phase, out.CompletedAt = v1alpha1.AnalysisPhaseError, &at
	out.Message = Truncate(fmt.Sprintf("analysis spec invalid: %v", cause), maxMessage)
	return out
}
