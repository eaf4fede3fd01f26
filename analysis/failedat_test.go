package analysis

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestFailedAt(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 10, 0, second, 0, time.UTC) }
	metric := func(phase v1alpha1.AnalysisPhase, dry bool, measured ...v1alpha1.Measurement) v1alpha1.MetricResult {
		return v1alpha1.MetricResult{Name: "m", Phase: phase, DryRun: dry, Measurements: measured}
	}
	one := func(phase v1alpha1.AnalysisPhase, second int) v1alpha1.Measurement {
		finished := metav1.NewTime(at(second))
		return v1alpha1.Measurement{Phase: phase, FinishedAt: &finished}
	}
	const failed, good = v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseSuccessful
	for name, c := range map[string]struct {
		phase   v1alpha1.AnalysisPhase
		results []v1alpha1.MetricResult
		want    time.Time
	}{
		"the last failure of the metric": {failed, []v1alpha1.MetricResult{metric(failed, false, one(failed, 1), one(good, 2), one(failed, 3), one(good, 4))}, at(3)},
		"of the metric that came first":  {failed, []v1alpha1.MetricResult{metric(failed, false, one(failed, 9)), metric(failed, false, one(failed, 5))}, at(5)},
		"not of a dry run":               {failed, []v1alpha1.MetricResult{metric(failed, true, one(failed, 1)), metric(failed, false, one(failed, 5))}, at(5)},
		"not of one that got away":       {failed, []v1alpha1.MetricResult{metric(good, false, one(failed, 1)), metric(failed, false, one(failed, 5))}, at(5)},
		"no measurement":                 {failed, []v1alpha1.MetricResult{metric(failed, false)}, time.Time{}},
		"a run that isn't Failed":        {v1alpha1.AnalysisPhaseError, []v1alpha1.MetricResult{metric(failed, false, one(failed, 1))}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := FailedAt(v1alpha1.AnalysisRunStatus{Phase: c.phase, MetricResults: c.results})
			if !got.Equal(c.want) || ok == c.want.IsZero() {
				t.Errorf("got %s, %t; want %s", got, ok, c.want)
			}
		})
	}
}
