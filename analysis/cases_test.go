package analysis

import (
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Values come twice and then no more: silence is never read as 0 or as a success.
// It is an error each time, until there are more in a row than are tolerated.
func TestC97_ValuesThatEndAreErrors(t *testing.T) {
	m := promMetric("errors", "rate")
	m.Interval, m.SuccessCondition = "10s", "result[0] < 0.05"
	p := prepare(t, v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{m}})
	conditions, err := Compile(m)
	if err != nil {
		t.Fatal(err)
	}
	now := t0
	status := p.Fold(v1alpha1.AnalysisRunStatus{}, nil, now)
	var asked int
	for !status.Phase.Completed() && asked < 20 {
		after, ok := p.Wake(status, now)
		if !ok {
			t.Fatal("nothing is due any more")
		}
		now = now.Add(after)
		var measured []Measured
		for _, task := range p.Due(status, now) {
			value := any([]any{})
			if asked++; asked <= 2 {
				value = []any{0.01}
			}
			phase, message := Judge(conditions, value, now)
			measured = append(measured, Measured{Task: task, Phase: phase, Message: message, Value: Text(value), Started: now})
		}
		status = p.Fold(status, measured, now)
	}
	r := status.MetricResults[0]
	if status.Phase != errored || r.Successful != 2 || r.Failed != 0 || r.ConsecutiveError != 5 || asked != 7 {
		t.Errorf("after %d questions: %s, %+v", asked, status.Phase, r)
	}
	if spent := now.Sub(t0); spent > 2*time.Minute {
		t.Errorf("it took %s to say so", spent)
	}
}
