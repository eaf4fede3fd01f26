package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// jobMetric runs a Job whose pod does what the tag of its image says.
func jobMetric(tag, more string) v1alpha1.Metric {
	spec := `{"backoffLimit":0,` + more + `"template":{"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":1,"containers":[{"name":"check","image":"check:` + tag + `"}]}}}`
	return v1alpha1.Metric{Name: "smoke", Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{Spec: &runtime.RawExtension{Raw: []byte(spec)}}}}
}

// analyse makes an AnalysisRun of its own, of no Rollout.
func (s *tale) analyse(metrics ...v1alpha1.Metric) *v1alpha1.AnalysisRun {
	s.Helper()
	run := &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "check"}, Spec: v1alpha1.AnalysisRunSpec{Metrics: metrics}}
	s.must(shared.Client.Create(s.ctx, run))
	return run
}

// analysed waits until the run is as wanted.
func (s *tale) analysed(what string, want func(*v1alpha1.AnalysisRun) bool) *v1alpha1.AnalysisRun {
	s.Helper()
	run := &v1alpha1.AnalysisRun{}
	s.awaitThat(what, func(ctx context.Context) (bool, error) {
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "check"}, run)
		return err == nil && want(run), err
	})
	return run
}

func (s *tale) clientset() kubernetes.Interface {
	s.Helper()
	set, err := kubernetes.NewForConfig(shared.REST)
	s.must(err)
	return set
}

func (s *tale) jobs() []batchv1.Job {
	s.Helper()
	list, err := s.clientset().BatchV1().Jobs(s.namespace).List(s.ctx, metav1.ListOptions{})
	s.must(err)
	return list.Items
}

func (s *tale) pods() []corev1.Pod {
	s.Helper()
	list, err := s.clientset().CoreV1().Pods(s.namespace).List(s.ctx, metav1.ListOptions{})
	s.must(err)
	return list.Items
}

// atWork waits until a Job's pod runs.
func (s *tale) atWork() batchv1.Job {
	s.Helper()
	s.awaitThat("the Job's pod to run", func(context.Context) (bool, error) {
		pods := s.pods()
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning, nil
	})
	jobs := s.jobs()
	if len(jobs) != 1 {
		s.Fatalf("%d Jobs", len(jobs))
	}
	return jobs[0]
}

// nothingRuns waits until no Job and no pod is left.
func (s *tale) nothingRuns() {
	s.Helper()
	s.awaitThat("the Job and its pods to go", func(context.Context) (bool, error) { return len(s.jobs())+len(s.pods()) == 0, nil })
}

func last(run *v1alpha1.AnalysisRun) v1alpha1.Measurement {
	if len(run.Status.MetricResults) == 0 || len(run.Status.MetricResults[0].Measurements) == 0 {
		return v1alpha1.Measurement{}
	}
	kept := run.Status.MetricResults[0].Measurements
	return kept[len(kept)-1]
}

// TestARunOfJobsEnds as its Jobs end, with the rights of manifests/rbac and no more.
func TestARunOfJobsEnds(t *testing.T) {
	repeated := jobMetric("complete", "")
	repeated.Count, repeated.Interval = new(intstr.FromInt32(3)), "1s"
	for name, tc := range map[string]struct {
		metric v1alpha1.Metric
		want   v1alpha1.AnalysisPhase
		says   string
		jobs   int
	}{
		"complete": {jobMetric("complete", ""), v1alpha1.AnalysisPhaseSuccessful, "", 1},
		"failed":   {jobMetric("crash", ""), v1alpha1.AnalysisPhaseFailed, "BackoffLimitExceeded", 1},
		"deadline": {jobMetric("run", `"activeDeadlineSeconds":2,`), v1alpha1.AnalysisPhaseFailed, "DeadlineExceeded", 1},
		"repeated": {repeated, v1alpha1.AnalysisPhaseSuccessful, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "job-"+name)
			run := s.analyse(tc.metric)
			ended := s.analysed("the run to end", func(run *v1alpha1.AnalysisRun) bool { return run.Status.Phase.Completed() })
			m := last(ended)
			if ended.Status.Phase != tc.want || !strings.Contains(m.Message, tc.says) {
				t.Errorf("got %s, measurement %+v, want %s with %q", ended.Status.Phase, m, tc.want, tc.says)
			}
			jobs := s.jobs()
			if len(jobs) != tc.jobs {
				t.Fatalf("%d Jobs, want %d", len(jobs), tc.jobs)
			}
			found := false
			for _, job := range jobs {
				found = found || job.Name == m.Metadata["job-name"] && m.Metadata["job-namespace"] == s.namespace
				if job.Labels[v1alpha1.AnalysisRunUIDLabel] != string(run.UID) {
					t.Errorf("labels %v do not name the run %s", job.Labels, run.UID)
				}
			}
			if !found {
				t.Errorf("the metadata %v names no Job", m.Metadata)
			}
			s.must(shared.Client.Delete(s.ctx, run))
			s.nothingRuns()
		})
	}
}

// TestATerminatedRunLeavesNoJob: its Job is deleted with its pods, and nothing succeeded.
func TestATerminatedRunLeavesNoJob(t *testing.T) {
	t.Parallel()
	s := begin(t, "job-terminate")
	run := s.analyse(jobMetric("run", ""))
	s.atWork()
	s.must(shared.Client.Patch(s.ctx, run, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"terminate":true}}`))))
	ended := s.analysed("the run to end", func(run *v1alpha1.AnalysisRun) bool { return run.Status.Phase.Completed() })
	if r := ended.Status.MetricResults[0]; ended.Status.Phase != v1alpha1.AnalysisPhaseInconclusive || r.Successful != 0 || r.Inconclusive != 1 {
		t.Errorf("got %s with %+v, want Inconclusive", ended.Status.Phase, r)
	}
	s.nothingRuns()
}

// TestARunWithAFailedJobStopsTheOthers.
func TestARunWithAFailedJobStopsTheOthers(t *testing.T) {
	t.Parallel()
	s := begin(t, "job-others")
	long, bad := jobMetric("run", ""), jobMetric("crash-after-3s", "")
	long.Name = "long"
	s.analyse(bad, long)
	ended := s.analysed("the run to end", func(run *v1alpha1.AnalysisRun) bool { return run.Status.Phase.Completed() })
	if ended.Status.Phase != v1alpha1.AnalysisPhaseFailed {
		t.Errorf("got %s", ended.Status.Phase)
	}
	s.awaitThat("the other Job to go, and its pods", func(context.Context) (bool, error) {
		jobs := s.jobs()
		return len(jobs) == 1 && strings.HasPrefix(jobs[0].Name, "smoke-") && len(s.pods()) == 1, nil
	})
}

// TestAJobsTroubleIsTold while it is waited for; a person who deletes it is told of, too,
// and the measurement is made again.
func TestAJobsTroubleIsTold(t *testing.T) {
	t.Parallel()
	s := begin(t, "job-trouble")
	s.analyse(jobMetric("pull-error", ""))
	told := s.analysed("the trouble to be told", func(run *v1alpha1.AnalysisRun) bool { return strings.Contains(last(run).Message, "ErrImagePull") })
	if told.Status.Phase != v1alpha1.AnalysisPhaseRunning {
		t.Errorf("the run is %s", told.Status.Phase)
	}
	first := s.jobs()[0].Name
	background := metav1.DeletePropagationBackground
	s.must(s.clientset().BatchV1().Jobs(s.namespace).Delete(s.ctx, first, metav1.DeleteOptions{PropagationPolicy: &background}))
	said := s.analysed("the deletion to be told", func(run *v1alpha1.AnalysisRun) bool { return last(run).Phase == v1alpha1.AnalysisPhaseError })
	if got := last(said).Message; !strings.Contains(got, "deleted before it had finished") || !strings.Contains(got, first) {
		t.Errorf("message %q", got)
	}
	s.awaitThat("another Job", func(context.Context) (bool, error) {
		jobs := s.jobs()
		return len(jobs) == 1 && jobs[0].Name != first, nil
	})
}

// TestARestartMakesNoSecondJob: the controller is killed while a Job runs, and at once
// after it was told to run one.
func TestARestartMakesNoSecondJob(t *testing.T) {
	s := begin(t, "job-restart")
	again := func() {
		s.must(shared.KillController(controller))
		s.must(shared.StartController(s.ctx, controller, soloFlags...))
	}
	s.analyse(jobMetric("complete-after-3s", ""))
	s.awaitThat("the Job to be there", func(context.Context) (bool, error) { return len(s.jobs()) > 0, nil })
	again()
	s.atWork()
	again()
	ended := s.analysed("the run to end", func(run *v1alpha1.AnalysisRun) bool { return run.Status.Phase.Completed() })
	if ended.Status.Phase != v1alpha1.AnalysisPhaseSuccessful || len(s.jobs()) != 1 || ended.Status.MetricResults[0].Count != 1 {
		t.Errorf("got %s with %d Jobs and %+v", ended.Status.Phase, len(s.jobs()), ended.Status.MetricResults[0])
	}
}

// tested is app whose quality is that of a Job: the tag of its image.
func tested(version, tag string) map[string]string {
	return measured(version, theCondition, "count: 1", "    interval: 1s\n    count: 2\n", "",
		`quality: "1" # what`, fmt.Sprintf(`quality: "%s" # what`, tag), `prometheus: {query: "vector({{args.quality}})"}`,
		`job: {spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: check, image: "check:{{args.quality}}"}]}}}}`)
}

// TestABadVersionIsRevertedByItsJob: a good version passes its Job, and one whose Job
// fails is taken back, in Git as well.
func TestABadVersionIsRevertedByItsJob(t *testing.T) {
	t.Parallel()
	s := begin(t, "job-rollout")
	s.commit("Add web v1", tested("v1", "complete"))
	s.follow()
	s.healthyAs("v1")
	s.commit("Release web v2", tested("v2", "complete-after-1s"))
	v2 := s.healthyAs("v2")
	s.commit("Release web v3", tested("v3", "crash"))
	down := s.await("v3 to be taken back", func(o *v1alpha1.Rollout) bool {
		return len(o.Status.Rejected) == 1 && o.Status.Rejected[0].Revert == v1alpha1.RevertObserved
	})
	if got := down.Status.Rejected[0]; got.Reason != v1alpha1.AbortFailed || !strings.Contains(got.Message, "quality") || !strings.Contains(got.Message, "BackoffLimitExceeded") {
		t.Errorf("rejected as %+v", got)
	}
	if down.Status.StableRS != v2.Status.StableRS {
		t.Errorf("stable is %s, want %s", down.Status.StableRS, v2.Status.StableRS)
	}
	s.weightsBecome(100, 0)
}
