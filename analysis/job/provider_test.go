package job

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var jobs = schema.GroupResource{Group: "batch", Resource: "jobs"}

func TestTheJob(t *testing.T) {
	l := newLab(t, goodSpec)
	l.q.Provider.Job.Metadata = &runtime.RawExtension{Raw: []byte(`{"labels":{"team":"a"},"annotations":{"note":"b"}}`)}
	first := l.pending(nil)
	if l.created != 0 || l.tried != 1 {
		t.Errorf("the first call made %d Jobs and tried %d: it is to have one checked", l.created, l.tried)
	}
	name := Name(l.q.ID, "smoke test")
	if diff := cmp.Diff(analysis.Handle{NameMetadata: name, NamespaceMetadata: "shop"}, first.Handle); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	second := l.pending(first.Handle)
	job := l.job()
	if second.Handle[UIDMetadata] != string(job.UID) {
		t.Errorf("got handle %v for uid %s", second.Handle, job.UID)
	}
	yes := true
	want := metav1.ObjectMeta{
		Name: name, Namespace: "shop",
		Labels: map[string]string{"team": "a", v1alpha1.AnalysisRunUIDLabel: runUID},
		Annotations: map[string]string{"note": "b", v1alpha1.AnalysisRunAnnotation: "web-1",
			v1alpha1.MetricAnnotation: "smoke test", v1alpha1.MeasurementAnnotation: runUID + ".smoke test.1"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "pushback.dev/v1alpha1", Kind: "AnalysisRun", Name: "web-1", UID: runUID, Controller: &yes}},
	}
	got := job.ObjectMeta
	got.UID, got.ResourceVersion, got.CreationTimestamp = "", "", metav1.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if job.Spec.Template.Spec.Containers[0].Image != "check:1" || *job.Spec.BackoffLimit != 0 {
		t.Errorf("got spec %+v", job.Spec)
	}
}

// Whatever call is repeated, after whatever was lost, there is one Job.
func TestOneJobHoweverOftenItIsAskedFor(t *testing.T) {
	lost := errors.New("connection reset by peer")
	for name, tc := range map[string]struct {
		verb string
		err  error
		done bool
	}{
		"nothing is lost":              {},
		"the answer is lost":           {"create", lost, true},
		"the request is lost":          {"create", lost, false},
		"the server is slow":           {"create", apierrors.NewTimeoutError("slow", 1), true},
		"the server has too much":      {"create", apierrors.NewTooManyRequests("much", 1), false},
		"the server breaks afterwards": {"create", apierrors.NewInternalError(lost), true},
		"it can't be read":             {"get", lost, false},
		"its pods can't be read":       {"list", apierrors.NewServiceUnavailable("away"), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := l.pending(nil).Handle
			failures := 3
			if tc.err != nil {
				l.fail = func(verb string, _ runtime.Object) (error, bool) {
					if verb != tc.verb || failures == 0 {
						return nil, false
					}
					failures--
					return tc.err, tc.done && l.created == 0
				}
			}
			// Each handle may be lost before it is stored, so that the one before is used.
			for range 6 {
				again := l.pending(handle)
				l.pending(handle)
				handle = again.Handle
				l.later(time.Second)
			}
			l.fail = nil
			if n := len(l.jobs()); n != 1 {
				t.Errorf("%d Jobs", n)
			}
			l.now(ends(batchv1.JobComplete, "", ""))
			if got := l.sample(handle).Verdict; got != v1alpha1.AnalysisPhaseSuccessful {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A server that is away for too long is an Error in the end.
func TestAServerThatStaysAway(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	l.fail = func(string, runtime.Object) (error, bool) { return apierrors.NewServiceUnavailable("away"), false }
	for waited := time.Duration(0); waited < 5*time.Minute; waited += time.Minute {
		pending := l.pending(handle)
		if !strings.Contains(pending.Message, "does not answer") {
			t.Errorf("after %s: message %q", waited, pending.Message)
		}
		handle = pending.Handle
		l.later(time.Minute)
	}
	if outcome, err := l.measure(handle); !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %+v, %v, want ErrUnreachable", outcome, err)
	}
	l.fail = nil
	if l.now(ends(batchv1.JobFailed, "BackoffLimitExceeded", "")); l.sample(handle).Verdict != v1alpha1.AnalysisPhaseFailed {
		t.Error("the Job's end is not seen any more")
	}
}

func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		kind            batchv1.JobConditionType
		reason, message string
		want            v1alpha1.AnalysisPhase
		says            string
	}{
		"complete":                {batchv1.JobComplete, "CompletionsReached", "", v1alpha1.AnalysisPhaseSuccessful, ""},
		"success is certain":      {batchv1.JobSuccessCriteriaMet, "", "", v1alpha1.AnalysisPhaseSuccessful, ""},
		"failed":                  {batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit", v1alpha1.AnalysisPhaseFailed, "BackoffLimitExceeded: Job has reached"},
		"failure is certain":      {batchv1.JobFailureTarget, batchv1.JobReasonPodFailurePolicy, "exit 42", v1alpha1.AnalysisPhaseFailed, "PodFailurePolicy: exit 42"},
		"took longer than it may": {batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline", v1alpha1.AnalysisPhaseFailed, "DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := l.begun()
			l.now(ends(tc.kind, tc.reason, tc.message))
			got := l.sample(handle)
			if got.Verdict != tc.want || !strings.Contains(got.Message, tc.says) || tc.says == "" && got.Message != "" {
				t.Errorf("got %s %q, want %s with %q", got.Verdict, got.Message, tc.want, tc.says)
			}
			if diff := cmp.Diff(map[string]string{NameMetadata: l.job().Name, NamespaceMetadata: "shop"}, got.Metadata); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

// A condition that is there and not true says nothing.
func TestConditionsThatAreNotTrue(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	l.now(func(s *batchv1.JobStatus) {
		s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionFalse}, {Type: batchv1.JobFailed, Status: corev1.ConditionUnknown}}
	})
	l.pending(handle)
}

// A failed Job's message has what its containers said, without secrets.
func TestLastWords(t *testing.T) {
	l := newLab(t, goodSpec)
	l.q.Redactor = analysis.MakeRedactor("hunter2")
	handle := l.begun()
	l.pod("a", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "check", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "login with hunter2 failed\n" + strings.Repeat("x", 4096)}}}}})
	l.now(ends(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "no more"))
	got := l.sample(handle).Message
	if !strings.Contains(got, "container check of pod a exited with 3: login with [redacted] failed") || len(got) > 1024 {
		t.Errorf("got %q", got)
	}
}

// What isn't this measurement's is never taken for it, changed or deleted.
func TestSomebodyElsesJobIsRefused(t *testing.T) {
	yes := true
	mine := []metav1.OwnerReference{{APIVersion: "pushback.dev/v1alpha1", Kind: "AnalysisRun", Name: "web-1", UID: runUID, Controller: &yes}}
	theirs := []metav1.OwnerReference{{APIVersion: "pushback.dev/v1alpha1", Kind: "AnalysisRun", Name: "web-1", UID: "another", Controller: &yes}}
	id := map[string]string{v1alpha1.MeasurementAnnotation: runUID + ".smoke test.1"}
	for name, meta := range map[string]metav1.ObjectMeta{
		"of nobody":                {},
		"of nobody, with our mark": {Annotations: id},
		"of another run":           {Annotations: id, OwnerReferences: theirs},
		"of another measurement":   {Annotations: map[string]string{v1alpha1.MeasurementAnnotation: runUID + ".other.1"}, OwnerReferences: mine},
	} {
		t.Run(name, func(t *testing.T) {
			meta.Namespace, meta.Name = "shop", Name(runUID+".smoke test.1", "smoke test")
			foreign := &batchv1.Job{ObjectMeta: meta, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
			l := newLab(t, goodSpec, foreign)
			for what, prior := range map[string]analysis.Handle{"at first": nil, "afterwards": handle(l.q, ""), "instead of ours": handle(l.q, "gone")} {
				if outcome, err := l.measure(prior); !errors.Is(err, ErrForeign) {
					t.Errorf("%s: got %+v, %v, want ErrForeign", what, outcome, err)
				}
			}
			if err := l.p.Terminate(context.Background(), l.q, handle(l.q, "")); !errors.Is(err, ErrForeign) || !errors.Is(err, analysis.ErrUnstoppable) {
				t.Errorf("Terminate: got %v, want ErrForeign", err)
			}
			if len(l.jobs()) != 1 || l.created != 0 {
				t.Errorf("%d Jobs, %d made", len(l.jobs()), l.created)
			}
		})
	}
}

func TestAJobThatIsDeletedWhileItRuns(t *testing.T) {
	ctx := context.Background()
	for name, remove := range map[string]func(l *lab) error{
		"at once": func(l *lab) error { return l.Delete(ctx, l.job()) },
		"with its pods first": func(l *lab) error {
			job := l.job()
			job.Finalizers = []string{metav1.FinalizerDeleteDependents}
			return errors.Join(l.Update(ctx, job), l.Delete(ctx, job))
		},
		"and made anew": func(l *lab) error {
			job := l.job()
			if err := l.Delete(ctx, job); err != nil {
				return err
			}
			job.ResourceVersion, job.UID = "", ""
			return l.Create(ctx, job)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := l.begun()
			if err := remove(l); err != nil {
				t.Fatal(err)
			}
			made := l.created
			outcome, err := l.measure(handle)
			if !errors.Is(err, ErrDeleted) || !strings.Contains(err.Error(), "shop/"+Name(l.q.ID, l.q.Metric)) {
				t.Errorf("got %+v, %v, want ErrDeleted with the name", outcome, err)
			}
			if l.created != made {
				t.Error("it was made again")
			}
		})
	}
}

// A Job that ended before it was deleted has said what it had to say.
func TestAnEndCountsBeforeADeletion(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	l.now(ends(batchv1.JobFailed, "BackoffLimitExceeded", ""))
	job := l.job()
	job.Finalizers = []string{metav1.FinalizerDeleteDependents}
	if err := errors.Join(l.Update(t.Context(), job), l.Delete(t.Context(), job)); err != nil {
		t.Fatal(err)
	}
	if got := l.sample(handle).Verdict; got != v1alpha1.AnalysisPhaseFailed {
		t.Errorf("got %s", got)
	}
}

func TestTerminate(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		prepare func(l *lab) analysis.Handle
		left    int
	}{
		"a running one": {func(l *lab) analysis.Handle { return l.begun() }, 0},
		"one of which the uid was not stored": {func(l *lab) analysis.Handle {
			first := l.pending(nil).Handle
			l.pending(first)
			return first
		}, 0},
		"one that was never made": {func(l *lab) analysis.Handle { return l.pending(nil).Handle }, 0},
		"one that is gone": {func(l *lab) analysis.Handle {
			h := l.begun()
			if err := l.Delete(ctx, l.job()); err != nil {
				l.Fatal(err)
			}
			return h
		}, 0},
		"one that has ended": {func(l *lab) analysis.Handle {
			h := l.begun()
			l.now(ends(batchv1.JobComplete, "", ""))
			return h
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := tc.prepare(l)
			for range 2 { // a repeated call changes nothing
				if err := l.p.Terminate(ctx, l.q, handle); err != nil {
					t.Fatal(err)
				}
				if n := len(l.jobs()); n != tc.left {
					t.Errorf("%d Jobs, want %d", n, tc.left)
				}
			}
		})
	}
}

// The deletion carries what was read, and takes the pods along.
func TestTerminateCarriesWhatWasRead(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	job := l.job()
	conflicts := 2
	var got []client.DeleteOptions
	l.p.client = deleter{l.Client, func(options client.DeleteOptions) error {
		got = append(got, options)
		if conflicts--; conflicts >= 0 {
			return apierrors.NewConflict(jobs, job.Name, errors.New("its status changed"))
		}
		return nil
	}}
	if err := l.p.Terminate(context.Background(), l.q, handle); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || len(l.jobs()) != 0 {
		t.Fatalf("%d deletions, %d Jobs left", len(got), len(l.jobs()))
	}
	for _, o := range got {
		if o.Preconditions == nil || *o.Preconditions.UID != job.UID || *o.Preconditions.ResourceVersion != job.ResourceVersion {
			t.Errorf("got preconditions %+v", o.Preconditions)
		}
		if o.PropagationPolicy == nil || *o.PropagationPolicy != metav1.DeletePropagationBackground {
			t.Errorf("got propagation %v", o.PropagationPolicy)
		}
	}
}

type deleter struct {
	client.Client
	before func(client.DeleteOptions) error
}

func (d deleter) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	if err := d.before(*(&client.DeleteOptions{}).ApplyOptions(options)); err != nil {
		return err
	}
	return d.Client.Delete(ctx, o)
}

// What the API server refuses is an Error at once, without a secret, and nothing is made.
func TestWhatTheServerRefuses(t *testing.T) {
	const secret = "s3cr3t"
	for name, cause := range map[string]error{
		"forbidden": apierrors.NewForbidden(jobs, "x", errors.New("a policy says so")),
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil),
		"unknown":   apierrors.NewBadRequest(`strict decoding error: unknown field "spec.` + secret + `" ` + strings.Repeat("x", 4096)),
		"away":      errors.New("dial tcp: connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []string{"try", "create"} {
				if at == "create" && name == "away" {
					continue // waited for: TestOneJobHoweverOftenItIsAskedFor
				}
				l := newLab(t, goodSpec)
				l.q.Redactor = analysis.MakeRedactor(secret)
				var prior analysis.Handle
				if at == "create" {
					prior = l.pending(nil).Handle
				}
				l.fail = func(verb string, _ runtime.Object) (error, bool) {
					if verb == at {
						return cause, false
					}
					return nil, false
				}
				outcome, err := l.measure(prior)
				if !errors.Is(err, ErrRefused) || l.created != 0 {
					t.Fatalf("%s: got %+v, %v, want ErrRefused", at, outcome, err)
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(e.Error(), secret) || len(e.Error()) > 1024 {
						t.Errorf("%s: the error is %q", at, e)
					}
				}
			}
		})
	}
}

func TestOldJobsGo(t *testing.T) {
	l := newLab(t, goodSpec)
	l.q.Keep = 3
	for n := 1; n <= 5; n++ {
		l.q.Number, l.q.ID = n, analysis.MeasurementID(runUID, l.q.Metric, n)
		handle := l.begun()
		l.now(ends(batchv1.JobComplete, "", ""))
		l.sample(handle)
	}
	kept := map[string]bool{}
	for _, job := range l.jobs() {
		kept[strings.TrimPrefix(job.Annotations[v1alpha1.MeasurementAnnotation], runUID+".smoke test.")] = true
	}
	if diff := cmp.Diff(map[string]bool{"3": true, "4": true, "5": true}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
