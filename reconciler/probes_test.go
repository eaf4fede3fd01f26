package reconciler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

func TestObserveProbe(t *testing.T) {
	at := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	now := metav1.NewTime(at)
	erred := []v1alpha1.MetricResult{{Name: "a", Phase: v1alpha1.AnalysisPhaseSuccessful}, {Name: "b", Phase: v1alpha1.AnalysisPhaseError}}
	for name, tc := range map[string]struct {
		annotation string
		status     v1alpha1.AnalysisRunStatus
		want       plan.Run
	}{
		"nobody asks":    {"", v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseError, MetricResults: erred}, plan.Run{Askable: true}},
		"asked":          {"2026-11-30T01:02:03Z", v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseError, MetricResults: erred}, plan.Run{Askable: true, AskFrom: &at}},
		"asked in words": {"soon", v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseError, MetricResults: erred}, plan.Run{Askable: true, AskFrom: &time.Time{}}},
		"answered":       {"", v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseError, MetricResults: erred, AnsweredAt: &now}, plan.Run{Askable: true, Answered: true}},
		"refused":        {"", v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseError}, plan.Run{}},
		"failed":         {"", v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseFailed, MetricResults: erred}, plan.Run{}},
	} {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.AnalysisRun{Status: tc.status}
			if tc.annotation != "" {
				run.Annotations = map[string]string{v1alpha1.ProbeAnnotation: tc.annotation}
			}
			var got plan.Run
			observeProbe(run, &got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The wish is one annotation of exactly the run that was read (law 17).
func TestProbeHitsWhatWasRead(t *testing.T) {
	l := newLab(t)
	run := &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: "run", Annotations: map[string]string{"team": "shop"}}, Spec: v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{}}}
	l.create(run)
	l.byHand()
	at := time.Date(2026, 11, 30, 1, 2, 3, 0, time.FixedZone("elsewhere", 3600))
	ask := func(of *v1alpha1.AnalysisRun, from *time.Time) error {
		return l.reconciler.executeProbes(t.Context(), &observed{runs: map[string]*v1alpha1.AnalysisRun{"run": of}},
			plan.Plan{Probes: []plan.ProbeWant{{Name: "run", NotBefore: from}, {Name: "unknown", NotBefore: from}}})
	}
	annotations := func() map[string]string {
		live := &v1alpha1.AnalysisRun{}
		if err := l.get("run", live); err != nil {
			t.Fatal(err)
		}
		run = live
		return live.Annotations
	}
	another, stale := run.DeepCopy(), run.DeepCopy()
	another.UID = "00000000-0000-0000-0000-000000000000"
	stale.ResourceVersion = "1"
	for name, of := range map[string]*v1alpha1.AnalysisRun{"made anew": another, "changed since": stale} {
		if err := ask(of, &at); !isConflict(err) {
			t.Errorf("a run that was %s: got %v, want a conflict", name, err)
		}
	}
	if err := ask(run, &at); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "shop", v1alpha1.ProbeAnnotation: "2026-11-30T00:02:03Z"}, annotations()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if err := ask(run, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "shop"}, annotations()); diff != "" {
		t.Errorf("not asked any more (-want +got):\n%s", diff)
	}
	if err := l.client.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := ask(run, &at); err != nil {
		t.Errorf("a run that is gone: %v", err)
	}
}

// TestLaw10_AnAnswerStartsTheNextAttempt: from the Error of a run to its annotation,
// and from its answer to the next attempt, by the objects of a real API server alone.
func TestLaw10_AnAnswerStartsTheNextAttempt(t *testing.T) {
	l := newLab(t)
	analyse := v1alpha1.CanaryStep{Analysis: &v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "rate"}}}}
	template := &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "rate"}}
	template.Spec.Metrics = []v1alpha1.Metric{{Name: "rate", SuccessCondition: "result[0] > 0.5",
		Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus.example.com", Query: "up"}}}}
	l.create(template, webRollout(setWeight(50), analyse))
	l.watch()
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	waiting := l.reach("at the analysis", patience, func(r *v1alpha1.Rollout) bool {
		return r.Status.Canary.CurrentStepAnalysisRunStatus != nil
	})
	run := &v1alpha1.AnalysisRun{}
	name := waiting.Status.Canary.CurrentStepAnalysisRunStatus.Name
	set := func(change func(*v1alpha1.AnalysisRunStatus)) {
		t.Helper()
		if err := l.get(name, run); err != nil {
			t.Fatal(err)
		}
		before := run.DeepCopy()
		change(&run.Status)
		if err := l.client.Status().Patch(t.Context(), run, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	ended := metav1.Now().Rfc3339Copy()
	set(func(s *v1alpha1.AnalysisRunStatus) {
		s.Phase, s.Message, s.CompletedAt = v1alpha1.AnalysisPhaseError, "connection refused", &ended
		s.MetricResults = []v1alpha1.MetricResult{{Name: "rate", Phase: v1alpha1.AnalysisPhaseError, Error: 5, ConsecutiveError: 5,
			Measurements: []v1alpha1.Measurement{{Phase: v1alpha1.AnalysisPhaseError, Message: "connection refused"}}}}
	})
	down := l.reach("unmeasured", patience, func(r *v1alpha1.Rollout) bool {
		return r.Status.Abort && r.Status.AbortReason == v1alpha1.AbortError && l.get(name, run) == nil && run.Annotations[v1alpha1.ProbeAnnotation] != ""
	})
	want := down.Status.AbortedAt.Add(10 * time.Second).UTC().Format(time.RFC3339)
	if got := run.Annotations[v1alpha1.ProbeAnnotation]; got != want || down.Status.Unmeasured != 1 || !strings.Contains(down.Status.Message, "when the provider answers") {
		t.Errorf("asked from %s, want %s; %d attempts in a row, message %q", got, want, down.Status.Unmeasured, down.Status.Message)
	}
	back := metav1.Now().Rfc3339Copy()
	set(func(s *v1alpha1.AnalysisRunStatus) { s.AnsweredAt = &back })
	next := l.reach("started again", patience, func(r *v1alpha1.Rollout) bool {
		return r.Status.Attempt > down.Status.Attempt && !r.Status.Abort && l.get(name, run) == nil && run.Annotations[v1alpha1.ProbeAnnotation] == ""
	})
	if next.Status.Attempt != down.Status.Attempt+1 || next.Status.CurrentPodHash != down.Status.CurrentPodHash || len(next.Status.Rejected) > 0 {
		t.Errorf("attempt %d of %s after attempt %d of %s, rejected %v", next.Status.Attempt, next.Status.CurrentPodHash, down.Status.Attempt, down.Status.CurrentPodHash, next.Status.Rejected)
	}
}
