package analysisrun

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// jobs is scripted as a provider that judges for itself and takes its time.
type jobs struct{ *scripted }

// Describe has nothing to tell.
func (jobs) Describe(analysis.Query) map[string]string { return nil }

// newJobLab is a lab whose Jobs end as a function of the metric says; empty is still
// running. What is begun is pending first, and is looked at every 10 s.
func newJobLab(t *testing.T, verdict func(metric string) v1alpha1.AnalysisPhase, run *v1alpha1.AnalysisRun) *lab {
	t.Helper()
	l := newLab(t, func(q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
		if phase := verdict(q.Metric); prior != nil && phase != "" {
			return analysis.Sample{Verdict: phase, Message: "the Job says so"}, nil
		}
		return analysis.Pending{Handle: analysis.Handle{"job-name": q.ID}, Message: "it runs", After: 10 * time.Second}, nil
	}, run)
	l.r.Providers = ByName(map[string]analysis.Provider{"job": jobs{l.provider}})
	return l
}

func jobMetric(name string) v1alpha1.Metric {
	return v1alpha1.Metric{Name: name, Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{Spec: &runtime.RawExtension{
		Raw: []byte(`{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i","args":["{{args.tok}}"]}]}}}`)}}}}
}

func jobRun(metrics ...v1alpha1.Metric) *v1alpha1.AnalysisRun {
	run := newRun(metrics...)
	run.Spec.Args = []v1alpha1.Argument{{Name: "tok", Value: new("t")}}
	return run
}

func (l *lab) terminate() {
	l.t.Helper()
	run := l.run()
	run.Spec.Terminate = true
	if err := l.client.Update(context.Background(), run); err != nil {
		l.t.Fatal(err)
	}
}

// What a provider is told, and what is stored of what it waits for.
func TestAMeasurementThatTakesItsTime(t *testing.T) {
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, jobRun(jobMetric("smoke")))
	l.play(2)
	m := l.run().Status.MetricResults[0].Measurements[0]
	if m.Phase != v1alpha1.AnalysisPhaseRunning || m.Message != "it runs" || m.Metadata["job-name"] != "uid-1.smoke.1" {
		t.Errorf("got %+v", m)
	}
	asked := l.provider.asked[len(l.provider.asked)-1]
	if diff := cmp.Diff(analysis.RunRef{Name: "run", UID: "uid-1"}, asked.Run); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked.ID != "uid-1.smoke.1" || asked.Number != 1 || asked.Keep != 10 || asked.Namespace != "shop" {
		t.Errorf("asked %+v", asked)
	}
}

// A Job that is cut off has not succeeded, and one that never began has done nothing.
func TestC14_AJobThatIsCutOffIsNoSuccess(t *testing.T) {
	late := jobMetric("late")
	late.InitialDelay = "1h"
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, jobRun(jobMetric("smoke"), late))
	l.play(2)
	l.terminate()
	l.play(2)
	run := l.run()
	if run.Status.Phase != v1alpha1.AnalysisPhaseInconclusive {
		t.Errorf("the run is %s", run.Status.Phase)
	}
	for i, want := range []v1alpha1.MetricResult{{Name: "smoke", Count: 1, Inconclusive: 1}, {Name: "late"}} {
		got := run.Status.MetricResults[i]
		if got.Name != want.Name || got.Count != want.Count || got.Inconclusive != want.Inconclusive || got.Successful != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if diff := cmp.Diff([]analysis.Handle{{"job-name": "uid-1.smoke.1"}}, l.provider.stopped); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
}

// Of Jobs too only those that aren't dry decide, in whatever order they are.
func TestC37_DryJobsDontDecide(t *testing.T) {
	const dry, wet = "dry", "wet"
	for name, tc := range map[string]struct {
		order []string
		wet   v1alpha1.AnalysisPhase
		want  v1alpha1.AnalysisPhase
	}{
		"both fail":               {[]string{dry, wet}, v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseFailed},
		"both fail, wet first":    {[]string{wet, dry}, v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseFailed},
		"the dry one fails":       {[]string{dry, wet}, v1alpha1.AnalysisPhaseSuccessful, v1alpha1.AnalysisPhaseSuccessful},
		"there is a dry one only": {[]string{dry}, "", v1alpha1.AnalysisPhaseSuccessful},
	} {
		t.Run(name, func(t *testing.T) {
			run := jobRun()
			for _, metric := range tc.order {
				run.Spec.Metrics = append(run.Spec.Metrics, jobMetric(metric))
			}
			run.Spec.DryRun = []v1alpha1.DryRun{{MetricName: dry}}
			l := newJobLab(t, func(metric string) v1alpha1.AnalysisPhase {
				if metric == dry {
					return v1alpha1.AnalysisPhaseFailed
				}
				return tc.wet
			}, run)
			l.play(5)
			status := l.run().Status
			if status.Phase != tc.want || status.DryRunSummary == nil || status.DryRunSummary.Failed != 1 {
				t.Errorf("got %s with %+v, want %s", status.Phase, status.DryRunSummary, tc.want)
			}
		})
	}
}

// A Job is stopped also when a Secret that it was made with is gone.
func TestWhatIsBegunIsStoppedWithoutItsSecret(t *testing.T) {
	run := jobRun(jobMetric("smoke"))
	run.Spec.Args = []v1alpha1.Argument{{Name: "tok", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}}}
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, run)
	secret := withSecret("t", "s3cr3t")
	if err := l.client.Create(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
	l.play(2)
	if err := l.client.Delete(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
	l.terminate()
	l.play(2)
	if len(l.provider.stopped) != 1 {
		t.Error("it was not stopped")
	}
}

// Each measurement of a Job has an ID of its own, however often it is asked for.
func TestEachMeasurementHasItsID(t *testing.T) {
	m := jobMetric("smoke")
	m.Count, m.Interval = new(intstr.FromInt32(3)), "1m"
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return v1alpha1.AnalysisPhaseSuccessful }, jobRun(m))
	l.play(20)
	var ids []string
	for _, q := range l.provider.asked {
		ids = append(ids, q.ID)
	}
	want := []string{"uid-1.smoke.1", "uid-1.smoke.1", "uid-1.smoke.2", "uid-1.smoke.2", "uid-1.smoke.3", "uid-1.smoke.3"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if phase := l.run().Status.Phase; phase != v1alpha1.AnalysisPhaseSuccessful {
		t.Errorf("got %s", phase)
	}
}

// A run that is made unusable while a Job runs stops it, and nothing but it.
func TestARunThatIsSpoiltStopsWhatItBegan(t *testing.T) {
	done := jobMetric("done")
	done.Count, done.Interval = new(intstr.FromInt32(2)), "1h"
	l := newJobLab(t, func(metric string) v1alpha1.AnalysisPhase {
		if metric == "done" {
			return v1alpha1.AnalysisPhaseSuccessful
		}
		return ""
	}, jobRun(jobMetric("smoke"), done))
	l.play(3)
	run := l.run()
	run.Spec.Metrics[0].SuccessCondition = "result > 1" // a Job has no value
	if err := l.client.Update(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	l.play(2)
	if phase := l.run().Status.Phase; phase != v1alpha1.AnalysisPhaseError {
		t.Errorf("the run is %s", phase)
	}
	if diff := cmp.Diff([]analysis.Handle{{"job-name": "uid-1.smoke.1"}}, l.provider.stopped); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
}
