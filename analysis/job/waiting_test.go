package job

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func running(s *batchv1.JobStatus) { s.Active, s.Ready = 1, new(int32) }

// What never starts is told of, and given up with neither a success nor a failure.
func TestWhatNeverStarts(t *testing.T) {
	unscheduled := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}}
	initial := waitingPod("PodInitializing", "")
	initial.InitContainerStatuses = []corev1.ContainerStatus{{Name: "load", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}}}
	sidecar := waitingPod("ImagePullBackOff", "back-off")
	sidecar.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	suspended := strings.Replace(goodSpec, `"backoffLimit":0`, `"suspend":true`, 1)
	for name, tc := range map[string]struct {
		spec  string
		pod   *corev1.PodStatus
		limit time.Duration
		says  string
	}{
		"an image that can't be pulled":     {goodSpec, new(waitingPod("ImagePullBackOff", "no check:1")), 5 * time.Minute, "container check of pod a: ImagePullBackOff: no check:1"},
		"a name that is none":               {goodSpec, new(waitingPod("InvalidImageName", "")), 5 * time.Minute, "InvalidImageName"},
		"a ConfigMap that is missing":       {goodSpec, new(waitingPod("CreateContainerConfigError", "configmap x not found")), 5 * time.Minute, "configmap x not found"},
		"an init container's image":         {goodSpec, &initial, 5 * time.Minute, "container load of pod a: ErrImagePull: no such image"},
		"an image beside a running sidecar": {goodSpec, &sidecar, 5 * time.Minute, "container check of pod a: ImagePullBackOff"},
		"no place":                          {goodSpec, &unscheduled, 15 * time.Minute, "Unschedulable: 0/3 nodes"},
		"a volume that isn't mounted":       {goodSpec, new(waitingPod("ContainerCreating", "")), 15 * time.Minute, "pod a is not running yet"},
		"no pod":                            {goodSpec, nil, 15 * time.Minute, "no pod yet"},
		"suspended":                         {suspended, nil, time.Hour, "suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, tc.spec)
			handle := l.begun()
			if tc.pod != nil {
				l.now(running)
				l.pod("a", *tc.pod)
			}
			// The clock starts when it is seen, not when the Job was made.
			l.later(time.Hour)
			for waited := time.Duration(0); waited < tc.limit; waited += 30 * time.Second {
				pending := l.pending(handle)
				if !strings.Contains(pending.Message, tc.says) {
					t.Fatalf("after %s: message %q lacks %q", waited, pending.Message, tc.says)
				}
				handle = pending.Handle
				l.later(30 * time.Second)
			}
			got := l.sample(handle)
			if got.Verdict != v1alpha1.AnalysisPhaseInconclusive || !strings.Contains(got.Message, tc.says) || !strings.Contains(got.Message, "not waited for any more") {
				t.Errorf("got %s %q", got.Verdict, got.Message)
			}
			if n := len(l.jobs()); n != 0 {
				t.Error("the Job is left to run when nobody looks")
			}
		})
	}
}

// What starts after all is waited for as long as it takes.
func TestWhatStartsAfterAll(t *testing.T) {
	works := func(l *lab) {
		l.now(func(s *batchv1.JobStatus) { s.Active, s.Ready = 1, new(int32(1)) })
	}
	phase := func(p corev1.PodPhase) func(l *lab) {
		return func(l *lab) { l.pod("b", corev1.PodStatus{Phase: p}) }
	}
	for name, tc := range map[string]struct {
		then  func(l *lab)
		waits bool
	}{
		"its pod is ready":             {works, false},
		"another pod works":            {phase(corev1.PodRunning), false},
		"another pod has failed":       {phase(corev1.PodFailed), true},
		"another pod has succeeded":    {phase(corev1.PodSucceeded), true},
		"another pod waits as well":    {phase(corev1.PodPending), true},
		"an init container is at work": {func(l *lab) { l.pod("b", started(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})) }, false},
		"an init container is retried": {func(l *lab) {
			l.pod("b", started(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := l.begun()
			l.now(running)
			l.pod("a", waitingPod("ErrImagePull", "later"))
			handle = l.pending(handle).Handle
			l.later(4 * time.Minute)
			tc.then(l)
			handle = l.pending(handle).Handle
			if got := handle[waitingMetadata] != ""; got != tc.waits {
				t.Errorf("waits: %t, want %t: %v", got, tc.waits, handle)
			}
		})
	}
}

func started(init corev1.ContainerState) corev1.PodStatus {
	s := waitingPod("PodInitializing", "")
	s.InitContainerStatuses = []corev1.ContainerStatus{{Name: "load", State: init}}
	return s
}

// A wait that ends and begins again has its whole limit again.
func TestAWaitThatIsInterrupted(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	l.now(running)
	l.pod("a", waitingPod("ErrImagePull", "later"))
	handle = l.pending(handle).Handle
	l.later(4 * time.Minute)
	l.now(func(s *batchv1.JobStatus) { s.Ready = new(int32(1)) })
	handle = l.pending(handle).Handle
	l.now(running)
	l.later(4 * time.Minute)
	handle = l.pending(handle).Handle
	l.later(4 * time.Minute)
	handle = l.pending(handle).Handle
	l.later(time.Minute)
	if got := l.sample(handle).Verdict; got != v1alpha1.AnalysisPhaseInconclusive {
		t.Errorf("got %s", got)
	}
}

// A deadline that passes before anything has started says nothing of the release.
func TestADeadlineBeforeTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  corev1.PodStatus
		want v1alpha1.AnalysisPhase
	}{
		"nothing had started": {waitingPod("ImagePullBackOff", "no check:1"), v1alpha1.AnalysisPhaseInconclusive},
		"it had":              {corev1.PodStatus{Phase: corev1.PodRunning}, v1alpha1.AnalysisPhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := l.begun()
			l.now(running)
			l.pod("a", tc.pod)
			handle = l.pending(handle).Handle
			l.now(ends(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "too long"))
			got := l.sample(handle)
			if got.Verdict != tc.want || !strings.Contains(got.Message, "DeadlineExceeded") {
				t.Errorf("got %s %q, want %s", got.Verdict, got.Message, tc.want)
			}
		})
	}
}

// A Job that is to be given up and can't be deleted is not forgotten.
func TestAJobThatCannotBeDeleted(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	l.now(running)
	l.pod("a", waitingPod("ErrImagePull", "later"))
	handle = l.pending(handle).Handle
	l.later(5 * time.Minute)
	l.fail = func(verb string, _ runtime.Object) (error, bool) {
		if verb == "delete" {
			return apierrors.NewForbidden(jobs, "x", nil), false
		}
		return nil, false
	}
	pending := l.pending(handle)
	if !strings.Contains(pending.Message, "can't be deleted") {
		t.Errorf("message %q", pending.Message)
	}
	l.fail = nil
	l.later(time.Minute)
	if l.sample(pending.Handle).Verdict != v1alpha1.AnalysisPhaseInconclusive || len(l.jobs()) != 0 {
		t.Error("it was not tried again")
	}
}

// What pods say is redacted in what is stored, as the caller does not do that for handles.
func TestWhatIsStoredHoldsNoSecret(t *testing.T) {
	l := newLab(t, goodSpec)
	l.q.Redactor = analysis.MakeRedactor("hunter2")
	handle := l.begun()
	l.now(running)
	l.pod("a", waitingPod("ErrImagePull", "registry/hunter2:1"))
	pending := l.pending(handle)
	for key, value := range pending.Handle {
		if strings.Contains(value, "hunter2") {
			t.Errorf("%s: %q", key, value)
		}
	}
	if strings.Contains(pending.Message, "hunter2") || !strings.Contains(pending.Message, "[redacted]") {
		t.Errorf("message %q", pending.Message)
	}
}

// A quota that stays full is given up as anything else that never starts.
func TestAQuotaThatStaysFull(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.pending(nil).Handle
	l.fail = func(verb string, _ runtime.Object) (error, bool) {
		if verb == "create" {
			return apierrors.NewForbidden(jobs, "x", errors.New("exceeded quota: jobs, requested: count/jobs.batch=1")), false
		}
		return nil, false
	}
	for range 30 {
		handle = l.pending(handle).Handle
		l.later(30 * time.Second)
	}
	got := l.sample(handle)
	if got.Verdict != v1alpha1.AnalysisPhaseInconclusive || !strings.Contains(got.Message, "exceeded quota") || l.created != 0 {
		t.Errorf("got %s %q with %d made", got.Verdict, got.Message, l.created)
	}
}

// Pods that are taken away before they have started say nothing new.
func TestPodsThatAreTakenAway(t *testing.T) {
	leaving := corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: start}}, Status: waitingPod("ErrImagePull", "")}
	worked := leaving
	worked.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	anew := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: waitingPod("ContainerCreating", "")}
	before := waiting{waitingForImage, "as before"}
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want waiting
	}{
		"alone":              {[]corev1.Pod{leaving}, before},
		"it had started":     {[]corev1.Pod{worked}, waiting{}},
		"beside a new one":   {[]corev1.Pod{leaving, anew}, before},
		"after a new one":    {[]corev1.Pod{anew, leaving}, waiting{waitingForPod, "pod b is not running yet"}},
		"beside one at work": {[]corev1.Pod{leaving, worked}, waiting{}},
	} {
		if got := waitsOf(tc.pods, before); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}
