package reconciler

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

func testQueue(t *testing.T) priorityqueue.PriorityQueue[reconcile.Request] {
	t.Helper()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	queue, ok := gatherQueue(t.Name(), limiter).(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		t.Fatal("the queue knows no priorities")
	}
	t.Cleanup(queue.ShutDown)
	return queue
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

func runOf(rollout string, phase v1alpha1.AnalysisPhase) *v1alpha1.AnalysisRun {
	run := &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: rollout + "-run",
		Labels: map[string]string{v1alpha1.RolloutNameLabel: rollout}, ResourceVersion: "1"}}
	run.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.ExperimentKind, Name: "e", Controller: new(true)}}
	run.Status.Phase = phase
	if phase.Completed() {
		run.ResourceVersion = "2"
	}
	return run
}

func rolloutWith(annotations map[string]string) *v1alpha1.Rollout {
	return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad", Annotations: annotations}}
}

// What takes traffic back comes before all that is queued; what doesn't, in its turn.
func TestAnAbortOvertakesTheQueue(t *testing.T) {
	runs := handler.EnqueueRequestsFromMapFunc(rolloutOfRun)
	cases := map[string]struct {
		by       overtaking
		old, now client.Object
		first    string
		priority int
	}{
		"failed run":        {overtaking{runs, condemns}, runOf("bad", v1alpha1.AnalysisPhaseRunning), runOf("bad", v1alpha1.AnalysisPhaseFailed), "bad", urgent},
		"run in error":      {overtaking{runs, condemns}, runOf("bad", v1alpha1.AnalysisPhaseRunning), runOf("bad", v1alpha1.AnalysisPhaseError), "bad", urgent},
		"failed before":     {overtaking{runs, condemns}, runOf("bad", v1alpha1.AnalysisPhaseFailed), runOf("bad", v1alpha1.AnalysisPhaseFailed), "web-0", 0},
		"good run":          {overtaking{runs, condemns}, runOf("bad", v1alpha1.AnalysisPhaseRunning), runOf("bad", v1alpha1.AnalysisPhaseSuccessful), "web-0", 0},
		"abort":             {overtaking{&handler.EnqueueRequestForObject{}, ordersAbort}, rolloutWith(nil), rolloutWith(map[string]string{v1alpha1.AbortAnnotation: "x"}), "bad", urgent},
		"abort without Git": {overtaking{&handler.EnqueueRequestForObject{}, ordersAbort}, rolloutWith(nil), rolloutWith(map[string]string{v1alpha1.AbortKeepGitAnnotation: "x"}), "bad", urgent},
		"old abort": {overtaking{&handler.EnqueueRequestForObject{}, ordersAbort}, rolloutWith(map[string]string{v1alpha1.AbortAnnotation: "x"}),
			rolloutWith(map[string]string{v1alpha1.AbortAnnotation: "x", v1alpha1.PauseAnnotation: "y"}), "web-0", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			queue := testQueue(t)
			for i := range 50 { // these are due: they have waited
				queue.AddWithOpts(priorityqueue.AddOpts{After: time.Nanosecond}, requestFor(fmt.Sprintf("web-%d", i)))
			}
			clustertest.Eventually(t, patience, inQueue(queue, 50))
			tc.by.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.now}, queue)
			if tc.priority == urgent {
				clustertest.Eventually(t, patience, inQueue(queue, 51))
			}
			got, priority, _ := queue.GetWithPriority()
			if diff := cmp.Diff(tc.first, got.Name); diff != "" || priority != tc.priority {
				t.Errorf("first out, with priority %d (want %d): %s", priority, tc.priority, diff)
			}
		})
	}
}

// Each measurement writes to a run; its Rollout has nothing to do with that until it ends.
func TestMeasurementsAreNoNews(t *testing.T) {
	running := runOf("web", v1alpha1.AnalysisPhaseRunning)
	change := func(of func(*v1alpha1.AnalysisRun)) *v1alpha1.AnalysisRun {
		out := running.DeepCopy()
		out.ResourceVersion = "3"
		of(out)
		return out
	}
	measured := v1alpha1.MetricResult{Name: "rate", Count: 3, Measurements: []v1alpha1.Measurement{{Phase: v1alpha1.AnalysisPhaseSuccessful, Value: "1"}}}
	cases := map[string]struct {
		now  *v1alpha1.AnalysisRun
		want bool
	}{
		"measured": {change(func(r *v1alpha1.AnalysisRun) { r.Status.MetricResults = []v1alpha1.MetricResult{measured} }), false},
		"ended":    {change(func(r *v1alpha1.AnalysisRun) { r.Status.Phase = v1alpha1.AnalysisPhaseSuccessful }), true},
		"failed":   {change(func(r *v1alpha1.AnalysisRun) { r.Status.Phase = v1alpha1.AnalysisPhaseFailed }), true},
		"answered": {change(func(r *v1alpha1.AnalysisRun) { r.Status.AnsweredAt = new(metav1.Now()) }), true},
		"asked": {change(func(r *v1alpha1.AnalysisRun) {
			r.Annotations = map[string]string{v1alpha1.ProbeAnnotation: "2026-01-01T00:00:00Z"}
		}), true},
		"to end":     {change(func(r *v1alpha1.AnalysisRun) { r.Spec.Terminate = true }), true},
		"relabelled": {change(func(r *v1alpha1.AnalysisRun) { r.Labels[v1alpha1.StepIndexLabel] = "2" }), true},
		"going":      {change(func(r *v1alpha1.AnalysisRun) { r.DeletionTimestamp = new(metav1.Now()) }), true},
		"orphaned":   {change(func(r *v1alpha1.AnalysisRun) { r.OwnerReferences = nil }), true},
	}
	for name, tc := range cases {
		if got := runNews.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: tc.now}); got != tc.want {
			t.Errorf("%s: news %t, want %t", name, got, tc.want)
		}
	}
}

// Events that come together make one pass, and one that comes alone makes its own.
func TestEventsAreGathered(t *testing.T) {
	queue := testQueue(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	hand := handler.EnqueueRequestForObject{}
	began := time.Now()
	for range 5 {
		hand.Update(t.Context(), event.UpdateEvent{ObjectOld: service, ObjectNew: service}, queue)
	}
	got, _ := queue.Get()
	if got != requestFor("web") || time.Since(began) < gather {
		t.Errorf("got %s after %s, want shop/web after %s", got, time.Since(began), gather)
	}
	queue.Done(got)
	if left := queue.Len(); left != 0 {
		t.Errorf("%d requests are left of one Rollout's events", left)
	}
	queue.Add(got)
	if again, _ := queue.Get(); again != got {
		t.Errorf("got %s, want %s again", again, got)
	}
}

func inQueue(queue interface{ Len() int }, want int) func() error {
	return func() error {
		if got := queue.Len(); got != want {
			return fmt.Errorf("%d in the queue, want %d", got, want)
		}
		return nil
	}
}
