package reconciler

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// A run that was ended before it had measured is no gate; one that had is, as
// people end unlimited metrics to go on.
func TestC14_AnEndedRunIsAGateOnlyIfItMeasured(t *testing.T) {
	tests := map[string]struct {
		kind      plan.RunKind
		terminate bool
		results   []v1alpha1.MetricResult
		want      v1alpha1.AnalysisPhase
	}{
		"never measured":           {plan.RunStep, true, nil, v1alpha1.AnalysisPhaseInconclusive},
		"only a dry run measured":  {plan.RunStep, true, []v1alpha1.MetricResult{{Count: 2, DryRun: true}}, v1alpha1.AnalysisPhaseInconclusive},
		"measured, then ended":     {plan.RunStep, true, []v1alpha1.MetricResult{{Count: 2}}, v1alpha1.AnalysisPhaseSuccessful},
		"came to its end":          {plan.RunStep, false, []v1alpha1.MetricResult{{Count: 2}}, v1alpha1.AnalysisPhaseSuccessful},
		"a background run is ours": {plan.RunBackground, true, nil, v1alpha1.AnalysisPhaseSuccessful},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.AnalysisRun{}
			run.Labels = map[string]string{v1alpha1.RolloutTypeLabel: string(tc.kind)}
			run.Spec.Terminate = tc.terminate
			run.Status = v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseSuccessful, MetricResults: tc.results}
			if got := observeRun(run).Phase; got != tc.want {
				t.Errorf("phase %s, want %s", got, tc.want)
			}
		})
	}
}
