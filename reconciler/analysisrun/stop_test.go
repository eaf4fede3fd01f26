package analysisrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// twice is a Job metric that is measured again after an error.
func twice(name string) v1alpha1.Metric {
	m := jobMetric(name)
	m.Count, m.Interval = new(intstr.FromInt32(2)), "1m"
	return m
}

// An error while something runs at the provider stops it before it is recorded, as the
// next measurement begins another.
func TestAnErrorStopsWhatIsUnderWay(t *testing.T) {
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, jobRun(twice("smoke")))
	l.play(1)
	answer := l.provider.answer
	l.provider.answer = func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		return nil, errors.New("it can't be read")
	}
	l.play(1)
	result := l.run().Status.MetricResults[0]
	if diff := cmp.Diff([]analysis.Handle{{"job-name": "uid-1.smoke.1"}}, l.provider.stopped); diff != "" || result.Error != 1 {
		t.Errorf("%d errors, stopped (-want +got):\n%s", result.Error, diff)
	}
	l.provider.answer = func(q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
		if prior == nil {
			return nil, errors.New("it can't be made")
		}
		return answer(q, prior)
	}
	l.play(1)
	if got := l.run().Status.MetricResults[0]; got.Error != 2 || len(l.provider.stopped) != 1 {
		t.Errorf("%d errors, stopped %v: nothing was begun the second time", got.Error, l.provider.stopped)
	}
}

// A Secret that can't be read while a Job runs is such an error.
func TestASecretThatIsLostStopsWhatIsUnderWay(t *testing.T) {
	run := jobRun(twice("smoke"))
	run.Spec.Args = []v1alpha1.Argument{{Name: "tok", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}}}
	secret := withSecret("t", "s3cr3t")
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, run)
	if err := l.client.Create(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
	l.play(2)
	if err := l.client.Delete(context.Background(), secret); err != nil {
		t.Fatal(err)
	}
	l.play(1)
	if got := l.run().Status.MetricResults[0]; got.Error != 1 || len(l.provider.stopped) != 1 {
		t.Errorf("%d errors, stopped %v", got.Error, l.provider.stopped)
	}
}

// A controller that is being stopped leaves to the next what is under way.
func TestAControllerThatIsStoppedStopsNoJob(t *testing.T) {
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, jobRun(twice("smoke")))
	l.play(1)
	before := l.run().Status
	ctx, cancel := context.WithCancel(context.Background())
	l.provider.answer = func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		cancel()
		return nil, context.Canceled
	}
	prepared, err := analysis.Prepare(l.run().Spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.r.advance(ctx, l.run(), prepared); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, l.run().Status); diff != "" || len(l.provider.stopped) != 0 {
		t.Errorf("stopped %v, status (-want +got):\n%s", l.provider.stopped, diff)
	}
}

// A measurement that can't be stopped stays under way, and is stopped once that can be.
func TestStoppingIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		fails int
		tries int
		took  time.Duration
	}{
		"at once":           {errors.New("away"), 0, 1, 0},
		"the third time":    {errors.New("away with s3cr3t"), 2, 3, 3 * time.Second},
		"never":             {errors.New("away"), 100, 5, 15 * time.Second},
		"it would not help": {fmt.Errorf("%w: not ours", analysis.ErrUnstoppable), 100, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := jobRun(jobMetric("smoke"))
			run.Spec.Args = []v1alpha1.Argument{{Name: "tok", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}}}
			l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return "" }, run)
			if err := l.client.Create(context.Background(), withSecret("t", "s3cr3t")); err != nil {
				t.Fatal(err)
			}
			l.play(1)
			l.terminate()
			began, fails := l.now, tc.fails
			l.provider.refuse = func() error {
				if fails--; fails < 0 {
					return nil
				}
				return tc.err
			}
			for !l.run().Status.Phase.Completed() {
				l.now = l.now.Add(l.reconcile().RequeueAfter)
				if m := l.run().Status.MetricResults[0].Measurements[0]; strings.Contains(m.Message, "s3cr3t") {
					t.Errorf("message %q", m.Message)
				}
			}
			result := l.run().Status.MetricResults[0]
			if len(l.provider.stopped) != tc.tries || l.now.Sub(began) != tc.took || result.Inconclusive != 1 || len(result.Measurements) != 1 {
				t.Errorf("%d tries in %s, %+v; want %d in %s", len(l.provider.stopped), l.now.Sub(began), result, tc.tries, tc.took)
			}
			for _, handle := range l.provider.stopped {
				if diff := cmp.Diff(analysis.Handle{"job-name": "uid-1.smoke.1"}, handle); diff != "" {
					t.Errorf("the handle (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// What could neither be measured nor stopped for a moment is measured after all.
func TestAnErrorThatPassesWhileNothingCanBeStopped(t *testing.T) {
	away, verdict := errors.New("away"), v1alpha1.AnalysisPhase("")
	l := newJobLab(t, func(string) v1alpha1.AnalysisPhase { return verdict }, jobRun(jobMetric("smoke")))
	l.play(1)
	answer := l.provider.answer
	l.provider.answer = func(analysis.Query, analysis.Handle) (analysis.Outcome, error) { return nil, away }
	l.provider.refuse = func() error { return away }
	l.play(2)
	result := l.run().Status.MetricResults[0]
	if last := result.Measurements[0]; result.Error != 0 || len(result.Measurements) != 1 || last.Phase != v1alpha1.AnalysisPhaseRunning || !strings.Contains(last.Message, "away") {
		t.Fatalf("got %+v", result)
	}
	l.provider.answer, verdict = answer, v1alpha1.AnalysisPhaseSuccessful
	l.play(2)
	if got := l.run().Status; got.Phase != v1alpha1.AnalysisPhaseSuccessful || got.MetricResults[0].Count != 1 {
		t.Errorf("got %+v", got)
	}
}
