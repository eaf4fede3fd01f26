package analysisrun

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var start = time.Date(2026, 8, 17, 10, 0, 0, 0, time.UTC)

// scripted is a provider that gives what a function says, and keeps what it was asked.

type scripted struct {
	answer  func(q analysis.Query, prior analysis.Handle) (analysis.Outcome, error)
	mu      sync.Mutex
	asked   []analysis.Query
	stopped []analysis.Handle
	// refuse may make it fail to stop anything.
	refuse func() error
}

func (s *scripted) Measure(_ context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	return s.answer(q, prior)
}

func (s *scripted) Terminate(_ context.Context, _ analysis.Query, prior analysis.Handle) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = append(s.stopped, prior)
	if s.refuse != nil {
		return s.refuse()
	}
	return nil
}

func (s *scripted) Describe(q analysis.Query) map[string]string {
	return map[string]string{"query": q.Provider.Prometheus.Query}
}

func always(value any) func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
	return func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		return analysis.Sample{Value: value}, nil
	}
}

// lab is a controller with a clock that tests set, over a fake API server.

type lab struct {
	t        *testing.T
	r        *Reconciler
	client   client.Client
	provider *scripted
	events   *events.FakeRecorder
	now      time.Time
	writes   int
	// beforeWrite may make the next status write fail.
	beforeWrite func() error
}

func newLab(t *testing.T, answer func(analysis.Query, analysis.Handle) (analysis.Outcome, error), objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{t: t, provider: &scripted{answer: answer}, events: events.NewFakeRecorder(100), now: start}
	l.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.AnalysisRun{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if l.beforeWrite != nil {
					if err := l.beforeWrite(); err != nil {
						return err
					}
				}
				l.writes++
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			},
		}).Build()
	l.r = &Reconciler{
		Client: l.client, Live: l.client, Events: l.events, MeasureTimeout: time.Minute,
		Providers: ByName(map[string]analysis.Provider{"prometheus": l.provider}),
		Now:       func() time.Time { return l.now },
	}
	return l
}

var key = types.NamespacedName{Namespace: "shop", Name: "run"}

func (l *lab) reconcile() ctrl.Result {
	l.t.Helper()
	result, err := l.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if err != nil {
		l.t.Fatal(err)
	}
	return result
}

func (l *lab) run() *v1alpha1.AnalysisRun {
	l.t.Helper()
	run := &v1alpha1.AnalysisRun{}
	if err := l.client.Get(context.Background(), key, run); err != nil {
		l.t.Fatal(err)
	}
	return run
}

// play reconciles at each time that the controller asks for, at most n times.

func (l *lab) play(n int) {
	l.t.Helper()
	for range n {
		result := l.reconcile()
		if result.RequeueAfter == 0 {
			return
		}
		l.now = l.now.Add(result.RequeueAfter)
	}
}

func (l *lab) told() []string {
	var out []string
	for {
		select {
		case e := <-l.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func metric(name string) v1alpha1.Metric {
	return v1alpha1.Metric{
		Name: name, SuccessCondition: "result[0] >= 0.95",
		Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: name}},
	}
}

func repeated(name string, count int32) v1alpha1.Metric {
	m := metric(name)
	n := intstr.FromInt32(count)
	m.Count, m.Interval, m.InitialDelay = &n, "3s", "5s"
	return m
}

func newRun(metrics ...v1alpha1.Metric) *v1alpha1.AnalysisRun {
	return &v1alpha1.AnalysisRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1", Generation: 1},
		Spec:       v1alpha1.AnalysisRunSpec{Metrics: metrics},
	}
}

func TestRunSucceeds(t *testing.T) {
	l := newLab(t, always([]any{1.0}), newRun(repeated("rate", 2)))
	if got := l.reconcile().RequeueAfter; got != 5*time.Second {
		t.Errorf("the first measurement is due after %s, want 5s", got)
	}
	if run := l.run(); run.Status.Phase != v1alpha1.AnalysisPhaseRunning || len(l.provider.asked) != 0 {
		t.Errorf("got %s with %d questions", run.Status.Phase, len(l.provider.asked))
	}
	l.now = l.now.Add(5 * time.Second)
	if got := l.reconcile().RequeueAfter; got != 3*time.Second {
		t.Errorf("the second is due after %s, want 3s", got)
	}
	l.now = l.now.Add(3 * time.Second)
	if got := l.reconcile().RequeueAfter; got != 0 {
		t.Errorf("a finished run wakes after %s", got)
	}
	status := l.run().Status
	if status.Phase != v1alpha1.AnalysisPhaseSuccessful || status.MetricResults[0].Count != 2 {
		t.Errorf("got %+v", status)
	}
	if got := status.MetricResults[0].Metadata["query"]; got != "rate" {
		t.Errorf("the query is kept as %q", got)
	}
	if l.writes != 3 {
		t.Errorf("there were %d writes, want 3", l.writes)
	}
	want := []string{"Normal AnalysisRunRunning The analysis is Running", "Normal AnalysisRunSuccessful The analysis is Successful"}
	if diff := cmp.Diff(want, l.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRunFails(t *testing.T) {
	l := newLab(t, always([]any{0.5}), newRun(metric("success-rate")))
	l.play(10)
	status := l.run().Status
	if status.Message != `Metric "success-rate" assessed Failed due to failed (1) > failureLimit (0)` {
		t.Errorf("got %q", status.Message)
	}
	const detail = "success-rate: value [0.5] does not satisfy result[0] >= 0.95 (failed 1 > failureLimit 0)"
	if got := analysis.Detail(status); got != detail {
		t.Errorf("got  %s\nwant %s", got, detail)
	}
	if got := status.MetricResults[0].Measurements[0].Value; got != "[0.5]" {
		t.Errorf("the value is stored as %q", got)
	}
	want := []string{"Warning AnalysisRunFailed " + detail}
	if diff := cmp.Diff(want, l.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	type conditions map[string]metav1.ConditionStatus
	invalid := metric("m")
	invalid.SuccessCondition = ""
	for name, tc := range map[string]struct {
		metric v1alpha1.Metric
		value  any
		want   conditions
	}{
		"under way":  {repeated("m", 2), []any{1.0}, conditions{"Ready": "Unknown", "Reconciling": "True"}},
		"successful": {metric("m"), []any{1.0}, conditions{"Ready": "True"}},
		"failed":     {metric("m"), []any{0.1}, conditions{"Ready": "False"}},
		"invalid":    {invalid, nil, conditions{"Ready": "False", "Stalled": "True"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, always(tc.value), newRun(tc.metric))
			l.reconcile()
			run := l.run()
			got := conditions{}
			for _, c := range run.Status.Conditions {
				got[c.Type] = c.Status
				if !c.LastTransitionTime.Time.Equal(start) {
					t.Errorf("%s changed at %s", c.Type, c.LastTransitionTime)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if run.Status.ObservedGeneration != 1 {
				t.Errorf("observedGeneration is %d", run.Status.ObservedGeneration)
			}
		})
	}
}

func TestInvalidSpecIsAnError(t *testing.T) {
	m := metric("m")
	m.Provider = v1alpha1.MetricProvider{Plugin: map[string]runtime.RawExtension{"a/b": {Raw: []byte("{}")}}}
	l := newLab(t, always(1.0), newRun(m))
	l.play(5)
	status := l.run().Status
	if status.Phase != v1alpha1.AnalysisPhaseError || !strings.Contains(status.Message, "provider plugin is not built yet") || status.CompletedAt == nil {
		t.Errorf("got %s %q", status.Phase, status.Message)
	}
	if len(l.provider.asked) > 0 {
		t.Error("a provider was asked")
	}
}

// Whatever happens to a finished run, nothing of it is written again.

func TestFinishedRunIsLeftAlone(t *testing.T) {
	l := newLab(t, always([]any{1.0}), newRun(metric("m")))
	l.play(5)
	before := l.run()
	l.provider.answer = always([]any{0.0})
	changed := l.run()
	changed.Spec.Terminate = true
	changed.Spec.Metrics = append(changed.Spec.Metrics, metric("more"))
	if err := l.client.Update(context.Background(), changed); err != nil {
		t.Fatal(err)
	}
	writes := l.writes
	l.now = l.now.Add(time.Hour)
	l.play(5)
	if diff := cmp.Diff(before.Status, l.run().Status); diff != "" || l.writes != writes {
		t.Errorf("it was changed with %d writes:\n%s", l.writes-writes, diff)
	}
}

// A pass with nothing due writes nothing, however often it is made.

func TestNoWritesWithoutNews(t *testing.T) {
	l := newLab(t, always([]any{1.0}), newRun(repeated("m", 5)))
	l.play(2)
	writes, asked := l.writes, len(l.provider.asked)
	l.now = l.now.Add(-time.Second) // before the next one is due
	for range 20 {
		l.reconcile()
	}
	if l.writes != writes || len(l.provider.asked) != asked {
		t.Errorf("%d writes and %d questions in 20 idle passes", l.writes-writes, len(l.provider.asked)-asked)
	}
}

var errCrash = errors.New("killed")

// A crash between the measurement and the status write repeats the measurement, under

// the same ID, and counts it once.

func TestCrashBeforeTheWrite(t *testing.T) {
	l := newLab(t, always([]any{1.0}), newRun(repeated("m", 2)))
	l.play(1)
	for _, due := range []string{"uid-1.m.1", "uid-1.m.2"} {
		l.provider.asked = nil
		l.beforeWrite = func() error { return errCrash }
		for range 3 {
			if _, err := l.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); !errors.Is(err, errCrash) {
				t.Fatalf("got %v", err)
			}
		}
		l.beforeWrite = nil
		l.play(1)
		if len(l.provider.asked) != 4 {
			t.Errorf("%d questions, want 4", len(l.provider.asked))
		}
		for _, q := range l.provider.asked {
			if q.ID != due {
				t.Errorf("got ID %s, want %s", q.ID, due)
			}
		}
	}
	if r := l.run().Status.MetricResults[0]; r.Count != 2 || r.Successful != 2 || len(r.Measurements) != 2 {
		t.Errorf("got %+v", r)
	}
	if got := l.told(); len(got) != 2 {
		t.Errorf("got events %v", got)
	}
}

func TestConflictIsASilentRequeue(t *testing.T) {
	l := newLab(t, always([]any{0.1}), newRun(metric("m")))
	l.beforeWrite = func() error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "analysisruns"}, key.Name, errors.New("changed"))
	}
	if got := l.reconcile().RequeueAfter; got != conflictDelay {
		t.Errorf("got %s, want %s", got, conflictDelay)
	}
	if got := l.told(); got != nil {
		t.Errorf("got events %v before anything was stored", got)
	}
	l.beforeWrite = nil
	l.play(2)
	if r := l.run().Status.MetricResults[0]; r.Failed != 1 {
		t.Errorf("got %+v", r)
	}
}

// A write carries the resourceVersion that was read: somebody else's write in between

// is not overwritten.

func TestStaleReadIsNotWritten(t *testing.T) {
	l := newLab(t, always([]any{0.1}), newRun(metric("m")))
	l.provider.answer = func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		run := l.run()
		run.Labels = map[string]string{"by": "somebody"}
		if err := l.client.Update(context.Background(), run); err != nil {
			t.Error(err)
		}
		return analysis.Sample{Value: []any{0.1}}, nil
	}
	if got := l.reconcile().RequeueAfter; got != conflictDelay {
		t.Errorf("got %s, want %s", got, conflictDelay)
	}
	if run := l.run(); run.Labels["by"] != "somebody" || run.Status.Phase != "" {
		t.Errorf("got labels %v and phase %s", run.Labels, run.Status.Phase)
	}
}

// A controller that is being stopped records nothing: that its calls were cancelled

// says nothing about the provider.

func TestShutdownIsNoError(t *testing.T) {
	l := newLab(t, nil, newRun(metric("m")))
	ctx, cancel := context.WithCancel(context.Background())
	l.provider.answer = func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		cancel()
		return nil, context.Canceled
	}
	if _, err := l.r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := l.run().Status.MetricResults; got != nil {
		t.Errorf("it recorded %+v", got)
	}
}

func withSecret(key string, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}, Data: map[string][]byte{key: []byte(value)}}
}

func TestOutageIsAnError(t *testing.T) {
	l := newLab(t, func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		return nil, errors.New("connection refused")
	}, newRun(metric("m")))
	l.play(10)
	status := l.run().Status
	if status.Phase != v1alpha1.AnalysisPhaseError || len(l.provider.asked) != 5 {
		t.Errorf("got %s after %d questions", status.Phase, len(l.provider.asked))
	}
	if want := `Metric "m" assessed Error due to consecutiveErrors (5) > consecutiveErrorLimit (4): "Error Message: connection refused"`; status.Message != want {
		t.Errorf("got %s", status.Message)
	}
	if got := l.now.Sub(start); got != 40*time.Second {
		t.Errorf("it took %s, want 40s", got)
	}
}

func TestPanicIsAnError(t *testing.T) {
	l := newLab(t, func(analysis.Query, analysis.Handle) (analysis.Outcome, error) { panic("boom") }, newRun(metric("m")))
	l.reconcile()
	if r := l.run().Status.MetricResults[0]; r.Error != 1 || !strings.Contains(r.Measurements[0].Message, "internal error") {
		t.Errorf("got %+v", r)
	}
}

func TestUnknownProviderIsAnError(t *testing.T) {
	l := newLab(t, always(1.0), newRun(metric("m")))
	l.r.Providers = ByName(nil)
	l.reconcile()
	if got := l.run().Status.MetricResults[0].Measurements[0].Message; !strings.Contains(got, "provider prometheus") {
		t.Errorf("got %q", got)
	}
}

// A bad metric ends the run in one pass, with what is under way stopped.

func TestMeasuresInParallel(t *testing.T) {
	const n = 5
	var arrived sync.WaitGroup
	arrived.Add(n)
	l := newLab(t, func(analysis.Query, analysis.Handle) (analysis.Outcome, error) {
		arrived.Done()
		arrived.Wait() // nobody leaves before all have come
		return analysis.Sample{Value: []any{1.0}}, nil
	})
	var metrics []v1alpha1.Metric
	for i := range n {
		metrics = append(metrics, metric(string(rune('a'+i))))
	}
	if err := l.client.Create(context.Background(), newRun(metrics...)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); l.play(3) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the metrics wait for one another")
	}
	if got := l.run().Status.RunSummary; got.Successful != n {
		t.Errorf("got %+v", got)
	}
}

func TestGoneRunIsNoError(t *testing.T) {
	l := newLab(t, always(1.0))
	if got := l.reconcile().RequeueAfter; got != 0 {
		t.Errorf("it wakes after %s", got)
	}
	run := newRun(metric("m"))
	run.Finalizers = []string{"somebody/else"}
	now := metav1.NewTime(start)
	run.DeletionTimestamp = &now
	l = newLab(t, always(1.0), run)
	l.reconcile()
	if l.writes != 0 || len(l.provider.asked) != 0 {
		t.Error("a run that is being deleted is measured")
	}
	if c := meta.FindStatusCondition(l.run().Status.Conditions, "Ready"); c != nil {
		t.Errorf("it got %+v", c)
	}
}
