package analysisrun

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// switched is a provider that is out until it is back, by metric.
type switched struct {
	out   map[string]bool
	value any
}

func (s *switched) answer(q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	if s.out[q.Metric] {
		return nil, errors.New("connection refused")
	}
	return analysis.Sample{Value: s.value}, nil
}

// owned makes a run one that a Rollout waits for.
func owned(run *v1alpha1.AnalysisRun) *v1alpha1.AnalysisRun {
	yes := true
	run.OwnerReferences = []metav1.OwnerReference{{APIVersion: "pushback.dev/v1alpha1", Kind: v1alpha1.RolloutKind, Name: "web", UID: "uid-2", Controller: &yes}}
	return run
}

// outage is a run that has ended Error at l.now, as all of its providers were out.
func outage(t *testing.T, s *switched, metrics ...string) *lab {
	t.Helper()
	run := owned(newRun())
	for _, name := range metrics {
		s.out[name] = true
		run.Spec.Metrics = append(run.Spec.Metrics, metric(name))
	}
	l := newLab(t, s.answer, run)
	l.play(10)
	if got := l.run().Status.Phase; got != v1alpha1.AnalysisPhaseError {
		t.Fatalf("got %s, want Error", got)
	}
	l.provider.asked, l.writes = nil, 0
	return l
}

func (l *lab) askFrom(at time.Time) {
	l.t.Helper()
	l.annotate(at.Format(time.RFC3339))
}

// annotate writes the annotation; an empty text takes it off.
func (l *lab) annotate(text string) {
	l.t.Helper()
	run := l.run()
	run.Annotations = map[string]string{v1alpha1.ProbeAnnotation: text}
	if text == "" {
		run.Annotations = nil
	}
	if err := l.client.Update(context.Background(), run); err != nil {
		l.t.Fatal(err)
	}
}

// Law 9 and law 10: while the provider is out nothing is written; when it is back
// that is written once, and the verdict stays.
func TestLaw10_TheProvidersReturnIsWrittenDownOnce(t *testing.T) {
	s := &switched{out: map[string]bool{}, value: []any{0.1}}
	l := outage(t, s, "m")
	ended := l.now
	l.askFrom(ended.Add(20 * time.Second))
	before := l.run().Status
	var waits []time.Duration
	for range 8 {
		wait := l.reconcile().RequeueAfter
		waits = append(waits, wait)
		l.now = l.now.Add(wait)
	}
	want := []time.Duration{20 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("the waits (-want +got):\n%s", diff)
	}
	if len(l.provider.asked) != 7 || l.writes != 0 {
		t.Errorf("%d questions and %d writes while it was out, want 7 and none", len(l.provider.asked), l.writes)
	}
	if diff := cmp.Diff(before, l.run().Status); diff != "" {
		t.Errorf("the status changed:\n%s", diff)
	}
	s.out["m"] = false
	back := l.now
	l.play(10)
	answered := metav1.NewTime(back)
	before.AnsweredAt = &answered
	if diff := cmp.Diff(before, l.run().Status); diff != "" || l.writes != 1 {
		t.Errorf("%d writes, and (-want +got):\n%s", l.writes, diff)
	}
	l.now = l.now.Add(time.Hour)
	asked := len(l.provider.asked)
	l.play(10)
	if l.writes != 1 || len(l.provider.asked) != asked {
		t.Errorf("%d writes and %d questions after the answer", l.writes-1, len(l.provider.asked)-asked)
	}
	for _, event := range l.told() {
		if event == "Normal AnalysisRunSuccessful The analysis is Successful" {
			t.Error("the answer was told as a verdict")
		}
	}
}

// All that could not be measured is to be measurable again; what was measured is not asked.
func TestOneProviderOfTwoIsNotEnough(t *testing.T) {
	s := &switched{out: map[string]bool{}, value: []any{1.0}}
	l := outage(t, s, "a", "b")
	l.askFrom(l.now)
	s.out["a"] = false
	if wait := l.reconcile().RequeueAfter; wait != shortestProbe || l.run().Status.AnsweredAt != nil {
		t.Fatalf("answered at %v, next probe in %s; b is still out", l.run().Status.AnsweredAt, wait)
	}
	s.out["b"] = false
	l.now = l.now.Add(shortestProbe)
	l.reconcile()
	if l.run().Status.AnsweredAt == nil {
		t.Error("both are back, and no answer is written")
	}
	ids := map[string]bool{}
	for _, q := range l.provider.asked {
		ids[q.ID] = true
	}
	if diff := cmp.Diff(map[string]bool{"uid-1.a.6": true, "uid-1.b.6": true}, ids); diff != "" {
		t.Errorf("what was asked (-want +got):\n%s", diff)
	}
}

// Who is not asked for, or not a Rollout's, is left alone.
func TestNobodyIsProbedUnasked(t *testing.T) {
	for name, change := range map[string]func(*lab){
		"without the annotation": func(*lab) {},
		"before its time":        func(l *lab) { l.askFrom(l.now.Add(time.Second)) },
		"with another text":      func(l *lab) { l.annotate("yes, please") },
		"without a Rollout": func(l *lab) {
			l.askFrom(l.now)
			run := l.run()
			run.OwnerReferences = nil
			if err := l.client.Update(context.Background(), run); err != nil {
				l.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &switched{out: map[string]bool{}, value: []any{1.0}}
			l := outage(t, s, "m")
			s.out["m"] = false
			change(l)
			l.reconcile()
			if len(l.provider.asked) > 0 || l.writes > 0 || l.run().Status.AnsweredAt != nil {
				t.Errorf("%d questions, %d writes, answered at %v", len(l.provider.asked), l.writes, l.run().Status.AnsweredAt)
			}
		})
	}
}

// A failed run was measured: no provider is tried for it.
func TestAFailedRunIsNotProbed(t *testing.T) {
	l := newLab(t, always([]any{0.1}), owned(newRun(metric("m"))))
	l.play(5)
	l.provider.asked, l.writes = nil, 0
	l.askFrom(l.now)
	l.play(5)
	if len(l.provider.asked) > 0 || l.writes > 0 {
		t.Errorf("%d questions, %d writes", len(l.provider.asked), l.writes)
	}
}

// A run is kept while its Rollout waits for it, whatever its time to live; then it goes.
func TestTTLWaitsForTheProbe(t *testing.T) {
	s := &switched{out: map[string]bool{}, value: []any{1.0}}
	ttl := int32(60)
	l := outage(t, s, "m")
	run := l.run()
	run.Spec.TTLStrategy = &v1alpha1.TTLStrategy{SecondsAfterCompletion: &ttl}
	if err := l.client.Update(context.Background(), run); err != nil {
		t.Fatal(err)
	}
	l.askFrom(l.now)
	l.now = l.now.Add(time.Hour)
	l.reconcile()
	s.out["m"] = false
	l.reconcile()
	l.reconcile()
	if l.run().Status.AnsweredAt == nil {
		t.Error("no answer is written")
	}
	l.annotate("")
	l.reconcile()
	if err := l.client.Get(context.Background(), key, &v1alpha1.AnalysisRun{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want it gone", err)
	}
}

// A provider that begins something has answered, and what it began is stopped.
func TestWhatAProbeBeginsIsStopped(t *testing.T) {
	s := &switched{out: map[string]bool{}}
	l := outage(t, s, "m")
	l.provider.answer = func(q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
		return analysis.Pending{Handle: analysis.Handle{"job": q.ID}, After: time.Hour}, nil
	}
	l.askFrom(l.now)
	l.reconcile()
	if diff := cmp.Diff([]analysis.Handle{{"job": "uid-1.m.6"}}, l.provider.stopped); diff != "" || l.run().Status.AnsweredAt == nil {
		t.Errorf("answered at %v; stopped (-want +got):\n%s", l.run().Status.AnsweredAt, diff)
	}
}

// A lost race is asked again, silently; a controller that is being stopped says nothing.
func TestAProbeThatIsNotStoredIsRepeated(t *testing.T) {
	s := &switched{out: map[string]bool{}, value: []any{1.0}}
	l := outage(t, s, "m")
	s.out["m"] = false
	l.askFrom(l.now)
	l.beforeWrite = func() error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "analysisruns"}, key.Name, errors.New("changed"))
	}
	if got := l.reconcile().RequeueAfter; got != conflictDelay || l.run().Status.AnsweredAt != nil {
		t.Errorf("next pass in %s, answered at %v", got, l.run().Status.AnsweredAt)
	}
	l.beforeWrite = nil
	l.reconcile()
	if l.run().Status.AnsweredAt == nil {
		t.Error("the answer was lost")
	}
}

// Secrets are read anew for a probe: one that was missing was the outage.
func TestAMissingSecretMayComeBack(t *testing.T) {
	l := newLab(t, always("other"), owned(secretRun()))
	l.play(10)
	l.askFrom(l.now)
	l.reconcile()
	if l.run().Status.AnsweredAt != nil || len(l.provider.asked) != 0 {
		t.Fatalf("answered at %v without the Secret", l.run().Status.AnsweredAt)
	}
	if err := l.client.Create(context.Background(), client.Object(withSecret("t", "s3cr3t"))); err != nil {
		t.Fatal(err)
	}
	l.reconcile()
	if l.run().Status.AnsweredAt == nil || !slices.ContainsFunc(l.provider.asked, func(q analysis.Query) bool {
		return q.Provider.Prometheus.Headers[0].Value == "Bearer s3cr3t"
	}) {
		t.Errorf("answered at %v, asked %d times", l.run().Status.AnsweredAt, len(l.provider.asked))
	}
}

// What is below minSamples is no answer of the metric's own provider, which is asked all
// the same: traffic was taken back, so that there will never be enough.
func TestAProbeAsksTheMetricWithTooFewSamples(t *testing.T) {
	m := metric("quality")
	m.MinSamples = &v1alpha1.MinSamples{Count: 100, Provider: prometheusOf("requests")}
	requests, out := 500.0, map[string]bool{"quality": true}
	l := newLab(t, byQuery(map[string]func() (any, error){
		"requests": func() (any, error) {
			if out["requests"] {
				return nil, errors.New("connection refused")
			}
			return []any{requests}, nil
		},
		"quality": func() (any, error) {
			if out["quality"] {
				return nil, errors.New("connection refused")
			}
			return []any{1.0}, nil
		},
	}), owned(newRun(m)))
	l.play(10)
	requests = 0
	l.askFrom(l.now)
	for _, step := range []struct {
		out  map[string]bool
		want bool
	}{
		{map[string]bool{"quality": true}, false},
		{map[string]bool{"requests": true}, false},
		{nil, true},
	} {
		out = step.out
		l.now = l.now.Add(longestProbe)
		l.reconcile()
		if got := l.run().Status.AnsweredAt != nil; got != step.want {
			t.Errorf("with %v out: answered is %t, want %t", step.out, got, step.want)
		}
	}
}
