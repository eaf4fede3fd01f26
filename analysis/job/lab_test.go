package job

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var start = time.Date(2026, 8, 17, 10, 0, 0, 0, time.UTC)

const (
	runUID   = "8a4f2b9e-5c1d-4e7f-9a3b-1c2d3e4f5a6b"
	goodSpec = `{"backoffLimit":0,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"check","image":"check:1"}]}}}`
)

// lab is a provider over a fake API server, with a clock that tests set.
type lab struct {
	*testing.T
	client.Client
	p *Provider
	q analysis.Query
	// created counts the Jobs that were really made, tried all tries.
	created, tried int
	// fail, if set, answers a request in place of the server; done says that it is
	// carried out all the same.
	fail func(verb string, o runtime.Object) (err error, done bool)
}

func newLab(t *testing.T, spec string, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{T: t, q: query(spec)}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&batchv1.Job{}, &corev1.Pod{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: l.doCreate, Get: l.doGet, List: l.doList, Delete: l.doDelete}).Build()
	l.p = New(Options{Client: l.Client, Live: l.Client})
	return l
}

func query(spec string) analysis.Query {
	return analysis.Query{
		Metric: "smoke test", Namespace: "shop", Run: analysis.RunRef{Name: "web-1", UID: runUID}, At: start, Number: 1, Keep: 10,
		ID:       analysis.MeasurementID(runUID, "smoke test", 1),
		Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{Spec: &runtime.RawExtension{Raw: []byte(spec)}}},
	}
}

func (l *lab) interrupted(verb string, o runtime.Object, do func() error) error {
	if l.fail == nil {
		return do()
	}
	err, done := l.fail(verb, o)
	if err == nil {
		return do()
	}
	if done {
		if failed := do(); failed != nil {
			return failed
		}
	}
	return err
}

func (l *lab) doCreate(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
	l.tried++
	dry := (&client.CreateOptions{}).ApplyOptions(options).DryRun != nil
	verb := "create"
	if dry {
		verb = "try"
	}
	return l.interrupted(verb, o, func() error {
		// The real server says so in a dry run as well: TestOnTheServer.
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), &batchv1.Job{}); dry && err == nil {
			return apierrors.NewAlreadyExists(jobs, o.GetName())
		}
		o.SetUID(types.UID(fmt.Sprintf("job-%d", l.tried)))
		o.SetCreationTimestamp(metav1.NewTime(l.q.At))
		err := c.Create(ctx, o, options...)
		if err == nil && !dry {
			l.created++
		}
		return err
	})
}

func (l *lab) doGet(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return l.interrupted("get", o, func() error { return c.Get(ctx, key, o, options...) })
}

func (l *lab) doList(ctx context.Context, c client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
	return l.interrupted("list", o, func() error { return c.List(ctx, o, options...) })
}

func (l *lab) doDelete(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
	return l.interrupted("delete", o, func() error { return c.Delete(ctx, o, options...) })
}

func (l *lab) measure(prior analysis.Handle) (analysis.Outcome, error) {
	l.Helper()
	return l.p.Measure(context.Background(), l.q, prior)
}

// pending measures and wants it to be under way.
func (l *lab) pending(prior analysis.Handle) analysis.Pending {
	l.Helper()
	outcome, err := l.measure(prior)
	pending, ok := outcome.(analysis.Pending)
	if err != nil || !ok {
		l.Fatalf("got %+v, %v: want Pending", outcome, err)
	}
	return pending
}

func (l *lab) sample(prior analysis.Handle) analysis.Sample {
	l.Helper()
	outcome, err := l.measure(prior)
	sample, ok := outcome.(analysis.Sample)
	if err != nil || !ok {
		l.Fatalf("got %+v, %v: want a Sample", outcome, err)
	}
	return sample
}

// begun is the handle of a Job that was made.
func (l *lab) begun() analysis.Handle {
	l.Helper()
	return l.pending(l.pending(nil).Handle).Handle
}

func (l *lab) later(d time.Duration) { l.q.At = l.q.At.Add(d) }

func (l *lab) job() *batchv1.Job {
	l.Helper()
	job := &batchv1.Job{}
	if err := l.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: Name(l.q.ID, l.q.Metric)}, job); err != nil {
		l.Fatal(err)
	}
	return job
}

func (l *lab) jobs() []batchv1.Job {
	l.Helper()
	list := &batchv1.JobList{}
	if err := l.List(context.Background(), list); err != nil {
		l.Fatal(err)
	}
	return list.Items
}

// now sets the status of the Job.
func (l *lab) now(change func(*batchv1.JobStatus)) {
	l.Helper()
	job := l.job()
	change(&job.Status)
	if err := l.Status().Update(context.Background(), job); err != nil {
		l.Fatal(err)
	}
}

func ends(kind batchv1.JobConditionType, reason, message string) func(*batchv1.JobStatus) {
	return func(s *batchv1.JobStatus) {
		s.Conditions = append(s.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

// pod adds a pod of the Job.
func (l *lab) pod(name string, status corev1.PodStatus) {
	l.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{batchv1.ControllerUidLabel: string(l.job().UID)}}, Status: status}
	if err := l.Create(context.Background(), pod); err != nil {
		l.Fatal(err)
	}
}

func waitingPod(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "check", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}
