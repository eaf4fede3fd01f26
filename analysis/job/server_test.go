package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/e2e/node"
)

var shared = clustertest.New(cluster.Options{}, clustertest.CRDs("manifests/crd"), startNode)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(shared.Run(m))
}

// startNode runs pods in name only, as the tags of their images say, until the process ends.
func startNode(c *cluster.Cluster, ctx context.Context) error {
	n, err := node.New(node.Options{Config: c.RESTConfig(), Hollow: &node.Hollow{}})
	if err != nil {
		return err
	}
	go func() { _ = n.Run(ctx) }() // pods that never run fail the tests
	return nil
}

// patience of every wait: far more than it takes.
const enough = 90 * time.Second

// serverLab is a provider on the real API server, with the real Job controller.
type serverLab struct {
	*testing.T
	client.Client
	p   *Provider
	q   analysis.Query
	run *v1alpha1.AnalysisRun
}

func newServerLab(t *testing.T, spec string) *serverLab {
	t.Helper()
	c := shared.Cluster(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(batchv1.AddToScheme(scheme), corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	live, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := &serverLab{T: t, Client: live, p: New(Options{Client: live, Live: live}), q: query(spec)}
	l.q.Namespace = clustertest.Namespace(t, c)
	// No controller drives it here: it is there to own the Job.
	l.run = &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Namespace: l.q.Namespace, Name: "web-1"},
		Spec: v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{{Name: l.q.Metric, Provider: l.q.Provider}}}}
	if err := live.Create(t.Context(), l.run); err != nil {
		t.Fatal(err)
	}
	l.q.Run = analysis.RunRef{Name: l.run.Name, UID: string(l.run.UID)}
	l.q.ID = analysis.MeasurementID(l.q.Run.UID, l.q.Metric, 1)
	return l
}

func (l *serverLab) measure(prior analysis.Handle) (analysis.Outcome, error) {
	l.q.At = time.Now()
	return l.p.Measure(l.Context(), l.q, prior)
}

// follow measures until a Sample comes, or an error, or an outcome that is wanted.
func (l *serverLab) follow(prior analysis.Handle, wanted func(analysis.Pending) bool) (analysis.Outcome, analysis.Handle, error) {
	l.Helper()
	var outcome analysis.Outcome
	var failed error
	clustertest.Eventually(l, enough, func() error {
		outcome, failed = l.measure(prior)
		pending, ok := outcome.(analysis.Pending)
		if !ok || failed != nil || wanted != nil && wanted(pending) {
			return nil
		}
		prior = pending.Handle
		return fmt.Errorf("it is pending: %+v", pending)
	})
	return outcome, prior, failed
}

func (l *serverLab) begun() analysis.Handle {
	l.Helper()
	_, handle, err := l.follow(nil, func(p analysis.Pending) bool { return p.Handle[UIDMetadata] != "" })
	if err != nil {
		l.Fatal(err)
	}
	outcome, err := l.measure(handle)
	if pending, ok := outcome.(analysis.Pending); ok && err == nil {
		return pending.Handle
	}
	l.Fatalf("got %+v, %v", outcome, err)
	return nil
}

func (l *serverLab) job() *batchv1.Job {
	l.Helper()
	job := &batchv1.Job{}
	if err := l.Get(l.Context(), types.NamespacedName{Namespace: l.q.Namespace, Name: Name(l.q.ID, l.q.Metric)}, job); err != nil {
		l.Fatal(err)
	}
	return job
}

// gone waits until no Job and no pod is left in the namespace.
func (l *serverLab) gone() {
	l.Helper()
	clustertest.Eventually(l, enough, func() error {
		jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
		if err := errors.Join(l.List(l.Context(), jobs, client.InNamespace(l.q.Namespace)), l.List(l.Context(), pods, client.InNamespace(l.q.Namespace))); err != nil {
			return err
		}
		if n, m := len(jobs.Items), len(pods.Items); n+m > 0 {
			return fmt.Errorf("%d Jobs and %d pods are left", n, m)
		}
		return nil
	})
}

func tagged(tag, more string) string {
	return `{"backoffLimit":0,` + more + `"template":{"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":1,"containers":[{"name":"check","image":"check:` + tag + `"}]}}}`
}

// The real Job controller's ends are the verdicts.
func TestVerdictsOnTheServer(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want v1alpha1.AnalysisPhase
		says string
	}{
		"complete":                      {tagged("complete", ""), v1alpha1.AnalysisPhaseSuccessful, ""},
		"complete, many and one by one": {tagged("complete", `"completions":3,"completionMode":"Indexed",`), v1alpha1.AnalysisPhaseSuccessful, ""},
		"failed":                        {tagged("crash", ""), v1alpha1.AnalysisPhaseFailed, "BackoffLimitExceeded"},
		"failed, with its code":         {tagged("crash", ""), v1alpha1.AnalysisPhaseFailed, "exited with 1"},
		"failed after a retry":          {strings.Replace(tagged("crash", ""), `"backoffLimit":0`, `"backoffLimit":1`, 1), v1alpha1.AnalysisPhaseFailed, "BackoffLimitExceeded"},
		"deadline":                      {tagged("run", `"activeDeadlineSeconds":3,`), v1alpha1.AnalysisPhaseFailed, "DeadlineExceeded"},
		"deadline without start":        {tagged("pull-error", `"activeDeadlineSeconds":3,`), v1alpha1.AnalysisPhaseInconclusive, "had not started: container check"},
		"short-lived":                   {tagged("complete", `"ttlSecondsAfterFinished":0,`), v1alpha1.AnalysisPhaseSuccessful, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newServerLab(t, tc.spec)
			outcome, _, err := l.follow(nil, nil)
			got, ok := outcome.(analysis.Sample)
			if err != nil || !ok || got.Verdict != tc.want || !strings.Contains(got.Message, tc.says) {
				t.Fatalf("got %+v, %v, want %s with %q", outcome, err, tc.want, tc.says)
			}
			if job := l.job(); name == "short-lived" && *job.Spec.TTLSecondsAfterFinished != shortestTTL {
				t.Errorf("it is deleted after %d seconds", *job.Spec.TTLSecondsAfterFinished)
			}
		})
	}
}

func TestTroubleIsToldOnTheServer(t *testing.T) {
	for name, tc := range map[string]struct{ spec, says string }{
		"pull":      {tagged("pull-error", ""), "ErrImagePull"},
		"back-off":  {tagged("pull-error", ""), "ImagePullBackOff"},
		"config":    {tagged("config-error", ""), "CreateContainerConfigError"},
		"no place":  {strings.Replace(tagged("run", ""), `"restartPolicy"`, `"nodeSelector":{"nowhere":"x"},"restartPolicy"`, 1), "pod smoke-test-"},
		"no pod":    {strings.Replace(tagged("run", ""), `"restartPolicy"`, `"serviceAccountName":"nobody","restartPolicy"`, 1), "no pod yet"},
		"suspended": {tagged("run", `"suspend":true,`), "suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newServerLab(t, tc.spec)
			_, handle, err := l.follow(nil, func(p analysis.Pending) bool { return strings.Contains(p.Message, tc.says) })
			if err != nil {
				t.Fatal(err)
			}
			if err := l.p.Terminate(t.Context(), l.q, handle); err != nil {
				t.Fatal(err)
			}
			l.gone()
		})
	}
}

// A suspended Job goes on when somebody says so.
func TestASuspendedJobIsResumed(t *testing.T) {
	t.Parallel()
	l := newServerLab(t, tagged("complete", `"suspend":true,`))
	handle := l.begun()
	if err := l.Patch(t.Context(), l.job(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))); err != nil {
		t.Fatal(err)
	}
	outcome, _, err := l.follow(handle, nil)
	if sample, ok := outcome.(analysis.Sample); err != nil || !ok || sample.Verdict != v1alpha1.AnalysisPhaseSuccessful {
		t.Errorf("got %+v, %v", outcome, err)
	}
}

// Terminate takes the pods along, and the owner takes the Job along.
func TestWhatGoesWithWhat(t *testing.T) {
	for name, remove := range map[string]func(l *serverLab, h analysis.Handle) error{
		"terminated":         func(l *serverLab, h analysis.Handle) error { return l.p.Terminate(l.Context(), l.q, h) },
		"its run is deleted": func(l *serverLab, _ analysis.Handle) error { return l.Delete(l.Context(), l.run) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newServerLab(t, tagged("run", ""))
			handle := l.begun()
			_, handle, err := l.follow(handle, func(p analysis.Pending) bool { return p.Message == "" && l.job().Status.Active == 1 })
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(l, handle); err != nil {
				t.Fatal(err)
			}
			l.gone()
			if outcome, err := l.measure(handle); !errors.Is(err, ErrDeleted) {
				t.Errorf("got %+v, %v, want ErrDeleted", outcome, err)
			}
		})
	}
}

func TestDeletedByAPersonOnTheServer(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			l := newServerLab(t, strings.Replace(tagged("stubborn", ""), `"terminationGracePeriodSeconds":1`, `"terminationGracePeriodSeconds":5`, 1))
			handle := l.begun()
			if err := l.Delete(t.Context(), l.job(), client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			if outcome, err := l.measure(handle); !errors.Is(err, ErrDeleted) {
				t.Errorf("got %+v, %v, want ErrDeleted", outcome, err)
			}
			l.gone()
		})
	}
}

// The API server says in the dry run what it would say of the Job, and that it is there.
func TestWhatTheServerSays(t *testing.T) {
	t.Run("an unknown field", func(t *testing.T) {
		t.Parallel()
		l := newServerLab(t, tagged("run", `"backofLimit":1,`))
		if outcome, err := l.measure(nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "backofLimit") {
			t.Errorf("got %+v, %v", outcome, err)
		}
	})
	t.Run("an invalid value", func(t *testing.T) {
		t.Parallel()
		l := newServerLab(t, tagged("run", `"parallelism":-1,`))
		if outcome, err := l.measure(nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "spec.parallelism") {
			t.Errorf("got %+v, %v", outcome, err)
		}
	})
	t.Run("a full quota, for a while", func(t *testing.T) {
		t.Parallel()
		l := newServerLab(t, tagged("complete", ""))
		full := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: l.q.Namespace, Name: "none"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}}}
		if err := l.Create(t.Context(), full); err != nil {
			t.Fatal(err)
		}
		// A quota without a status of its own is looked at live: it holds at once.
		_, handle, err := l.follow(nil, func(p analysis.Pending) bool { return strings.Contains(p.Message, "exceeded quota") })
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Delete(t.Context(), full); err != nil {
			t.Fatal(err)
		}
		outcome, _, err := l.follow(handle, nil)
		if sample, ok := outcome.(analysis.Sample); err != nil || !ok || sample.Verdict != v1alpha1.AnalysisPhaseSuccessful {
			t.Errorf("got %+v, %v", outcome, err)
		}
	})
	t.Run("a Job of somebody else", func(t *testing.T) {
		t.Parallel()
		l := newServerLab(t, tagged("run", ""))
		job, err := compose(l.q)
		if err != nil {
			t.Fatal(err)
		}
		job.SetOwnerReferences(nil)
		if err := l.Create(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if outcome, err := l.measure(nil); !errors.Is(err, ErrForeign) {
			t.Errorf("got %+v, %v, want ErrForeign", outcome, err)
		}
	})
	t.Run("a Job that is ours already", func(t *testing.T) {
		t.Parallel()
		l := newServerLab(t, tagged("run", ""))
		uid := l.begun()[UIDMetadata]
		// As a controller that was stopped before it could store anything.
		if again := l.begun()[UIDMetadata]; again != uid {
			t.Errorf("got another Job: %s, then %s", uid, again)
		}
	})
}

// What an argument holds reaches the Job's container as it is, and changes nothing else.
func TestArgumentsOnTheServer(t *testing.T) {
	t.Parallel()
	const nasty = "\"], \"image\": \"evil\"}\n      hostNetwork: true\n# '`\\ {{args.v}}"
	l := newServerLab(t, tagged("run", ""))
	m := v1alpha1.Metric{Name: l.q.Metric, Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{
		Metadata: &runtime.RawExtension{Raw: []byte(`{"annotations":{"note":"{{args.v}}"}}`)},
		Spec:     &runtime.RawExtension{Raw: []byte(strings.Replace(tagged("run", ""), `"image"`, `"args":["{{args.v}}"],"env":[{"name":"V","value":"{{args.v}}"}],"image"`, 1))},
	}}}
	plain, err := analysis.Substitute(m, map[string]string{"v": "plain"})
	if err != nil {
		t.Fatal(err)
	}
	l.q.Provider = plain.Provider
	l.begun()
	want := l.job()
	if resolved, err := analysis.Substitute(m, map[string]string{"v": nasty}); err != nil {
		t.Fatal(err)
	} else {
		l.q.Provider = resolved.Provider
	}
	l.q.ID = analysis.MeasurementID(l.q.Run.UID, l.q.Metric, 2)
	l.begun()
	got := l.job()
	container := got.Spec.Template.Spec.Containers[0]
	if container.Args[0] != nasty || container.Env[0].Value != nasty || got.Annotations["note"] != nasty {
		t.Errorf("got args %q, env %q, note %q", container.Args, container.Env, got.Annotations["note"])
	}
	got.Spec.Template.Spec.Containers[0].Args, got.Spec.Template.Spec.Containers[0].Env = []string{"plain"}, []corev1.EnvVar{{Name: "V", Value: "plain"}}
	if diff := cmp.Diff(want.Spec, got.Spec, cmpopts.IgnoreFields(batchv1.JobSpec{}, "Selector"), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Labels")); diff != "" {
		t.Errorf("all else (-want +got):\n%s", diff)
	}
}
