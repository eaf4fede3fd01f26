package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/e2e/node"
)

var shared = clustertest.New(cluster.Options{}, clustertest.CRDs("manifests/crd"), startNode)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // what goes wrong is in statuses, which the tests read
	os.Exit(shared.Run(m))
}

// startNode makes every pod Ready at once, until the process ends.
func startNode(c *cluster.Cluster, ctx context.Context) error {
	n, err := node.New(node.Options{Config: c.RESTConfig(), Hollow: &node.Hollow{}})
	if err != nil {
		return err
	}
	go func() { _ = n.Run(ctx) }() // pods that never become ready fail the tests
	return nil
}

const patience = 60 * time.Second

// serverLab is a namespace with a manager that runs the controller.
type serverLab struct {
	*testing.T
	client    client.Client // without a cache
	namespace string
	events    *events.FakeRecorder
}

func newServerLab(t *testing.T) *serverLab {
	t.Helper()
	t.Parallel()
	c := shared.Cluster(t)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	l := &serverLab{T: t, namespace: clustertest.Namespace(t, c), events: events.NewFakeRecorder(1000)}
	var err error
	if l.client, err = client.New(c.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(c.RESTConfig(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{l.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: l.events,
		Now: func() time.Time { return metav1.Now().Rfc3339Copy().Time }}
	if err := r.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 2}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *serverLab) create(objects ...client.Object) {
	l.Helper()
	for _, object := range objects {
		object.SetNamespace(l.namespace)
		if err := l.client.Create(l.Context(), object); err != nil {
			l.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

func (l *serverLab) get(name string, into client.Object) error {
	return l.client.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, into)
}

// reach waits until the Experiment is as wanted.
func (l *serverLab) reach(what string, is func(*v1alpha1.Experiment) bool) *v1alpha1.Experiment {
	l.Helper()
	e := &v1alpha1.Experiment{}
	clustertest.Eventually(l, patience, func() error {
		e = &v1alpha1.Experiment{}
		if err := l.get("exp", e); err != nil {
			return err
		}
		if is(e) {
			return nil
		}
		return fmt.Errorf("not %s: %s %q, templates %+v", what, e.Status.Phase, e.Status.Message, e.Status.TemplateStatuses)
	})
	return e
}

func phased(phase v1alpha1.AnalysisPhase) func(*v1alpha1.Experiment) bool {
	return func(e *v1alpha1.Experiment) bool { return e.Status.Phase == phase }
}

// told are the reasons of the events so far.
func (l *serverLab) told() []string {
	var out []string
	for {
		select {
		case text := <-l.events.Events:
			out = append(out, strings.Fields(text)[1])
		default:
			return out
		}
	}
}

// verdict ends an AnalysisRun, as its own controller would.
func (l *serverLab) verdict(name string, phase v1alpha1.AnalysisPhase, message string) {
	l.Helper()
	clustertest.Eventually(l, patience, func() error {
		run := &v1alpha1.AnalysisRun{}
		if err := l.get(name, run); err != nil {
			return err
		}
		next := run.DeepCopy()
		next.Status.Phase, next.Status.Message = phase, message
		next.Status.MetricResults = []v1alpha1.MetricResult{{Name: "m", Phase: phase, Count: 1}}
		return l.client.Status().Patch(l.Context(), next, client.MergeFrom(run))
	})
}

func podTemplate(image string) *runtime.RawExtension {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image,
			"ports": []any{map[string]any{"containerPort": 8080}, map[string]any{"name": "admin", "containerPort": 9090}}}}},
	})
	if err != nil {
		panic(err) // maps of strings
	}
	return &runtime.RawExtension{Raw: text}
}

func webExperiment() *v1alpha1.Experiment {
	return &v1alpha1.Experiment{ObjectMeta: metav1.ObjectMeta{Name: "exp"}, Spec: v1alpha1.ExperimentSpec{
		Templates: []v1alpha1.TemplateSpec{
			{Name: "baseline", Template: podTemplate("web:1"), Replicas: ptr.To[int32](2), Service: &v1alpha1.TemplateService{},
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			{Name: "canary", Template: podTemplate("web:1")},
		},
		ScaleDownDelaySeconds: ptr.To[int32](1),
	}}
}

func rateTemplate() *v1alpha1.AnalysisTemplate {
	return &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "rate"}, Spec: v1alpha1.AnalysisTemplateSpec{
		Args: []v1alpha1.Argument{{Name: "hash"}, {Name: "since"}},
		Metrics: []v1alpha1.Metric{{Name: "m", SuccessCondition: "result[0] > 0.9",
			Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus", Query: `x{hash="{{args.hash}}"} > {{args.since}}`}}}},
	}}
}

func rated(e *v1alpha1.Experiment) *v1alpha1.Experiment {
	e.Spec.Analyses = []v1alpha1.ExperimentAnalysisTemplateRef{{Name: "rate", TemplateName: "rate", Args: []v1alpha1.Argument{
		{Name: "hash", Value: ptr.To("{{templates.canary.podTemplateHash}}")}, {Name: "since", Value: ptr.To("1")},
	}}}
	e.Spec.DryRun = []v1alpha1.DryRun{{MetricName: "other"}}
	return e
}

// An Experiment waits for what it names, runs its versions, measures them, and leaves
// nothing running.
func TestExperimentFromBeginningToEnd(t *testing.T) {
	l := newServerLab(t)
	e := rated(webExperiment())
	e.Spec.DryRun = nil
	e.Spec.AnalysisRunMetadata = &v1alpha1.AnalysisRunMetadata{Labels: map[string]string{"team": "shop"}}
	l.create(e)
	l.reach("waiting", func(e *v1alpha1.Experiment) bool {
		return e.Status.Phase == v1alpha1.AnalysisPhasePending && strings.Contains(e.Status.Message, "AnalysisTemplate rate does not exist")
	})
	var sets appsv1.ReplicaSetList
	if err := l.client.List(t.Context(), &sets, client.InNamespace(l.namespace)); err != nil || len(sets.Items) > 0 {
		t.Fatalf("%d ReplicaSets before it can begin (%v)", len(sets.Items), err)
	}
	l.create(rateTemplate())
	running := l.reach("running", phased(v1alpha1.AnalysisPhaseRunning))
	checkMade(l, running)

	l.verdict("exp-rate", v1alpha1.AnalysisPhaseSuccessful, "")
	ended := l.reach("successful", phased(v1alpha1.AnalysisPhaseSuccessful))
	if ended.Status.CompletedAt == nil || len(ended.Status.AnalysisRuns) != 1 || ended.Status.AnalysisRuns[0].Phase != v1alpha1.AnalysisPhaseSuccessful {
		t.Errorf("ended as %+v", ended.Status)
	}
	last := l.reach("without pods", func(e *v1alpha1.Experiment) bool {
		return !slices.ContainsFunc(e.Status.TemplateStatuses, func(t v1alpha1.TemplateStatus) bool { return t.Replicas > 0 })
	})
	clustertest.Eventually(l, patience, func() error {
		if err := l.get("exp-baseline", &corev1.Service{}); err == nil {
			return fmt.Errorf("the Service is still there")
		}
		return nil
	})
	told := l.told()
	for _, reason := range []string{"ExperimentPending", "ExperimentRunning", "ExperimentSuccessful", "TemplateRunning"} {
		want := 1
		if strings.HasPrefix(reason, "Template") {
			want = 2
		}
		if n := count(told, reason); n != want {
			t.Errorf("%d events %s, want %d: %v", n, reason, want, told)
		}
	}
	settled := &v1alpha1.Experiment{}
	if err := l.get("exp", settled); err != nil || settled.ResourceVersion != last.ResourceVersion {
		t.Errorf("it is written at rest: %v %s %s", err, settled.ResourceVersion, last.ResourceVersion)
	}
}

func count(list []string, want string) (n int) {
	for _, item := range list {
		if item == want {
			n++
		}
	}
	return n
}

// checkMade checks what a running Experiment has made.
func checkMade(l *serverLab, e *v1alpha1.Experiment) {
	l.Helper()
	hashes := map[string]string{}
	for _, t := range e.Status.TemplateStatuses {
		hashes[t.Name] = t.PodTemplateHash
		set := &appsv1.ReplicaSet{}
		if err := l.get("exp-"+t.Name, set); err != nil {
			l.Fatal(err)
		}
		if !metav1.IsControlledBy(set, e) || set.Labels["app"] != "" || set.Spec.Template.Labels[v1alpha1.TemplateHashLabel] != t.PodTemplateHash {
			l.Errorf("ReplicaSet %s has owner %v, labels %v, pod labels %v", set.Name, set.OwnerReferences, set.Labels, set.Spec.Template.Labels)
		}
	}
	if hashes["baseline"] == hashes["canary"] {
		l.Errorf("two versions of the same template have the same hash %q", hashes["canary"])
	}
	service := &corev1.Service{}
	if err := l.get("exp-baseline", service); err != nil {
		l.Fatal(err)
	}
	want := map[string]string{"app": "web", v1alpha1.TemplateHashLabel: hashes["baseline"]}
	if len(service.Spec.Ports) != 2 || service.Spec.Ports[0].Port != 8080 || len(service.Spec.Selector) != 2 ||
		service.Spec.Selector["app"] != want["app"] || service.Spec.Selector[v1alpha1.TemplateHashLabel] != want[v1alpha1.TemplateHashLabel] {
		l.Errorf("the Service has ports %v and selects %v, want %v", service.Spec.Ports, service.Spec.Selector, want)
	}
	run := &v1alpha1.AnalysisRun{}
	clustertest.Eventually(l, patience, func() error { return l.get("exp-rate", run) })
	if run.Spec.Args[0].Value == nil || *run.Spec.Args[0].Value != hashes["canary"] || run.Labels["team"] != "shop" {
		l.Errorf("the run has args %+v and labels %v", run.Spec.Args, run.Labels)
	}
}

func TestExperimentEnds(t *testing.T) {
	tests := map[string]struct {
		edit  func(*v1alpha1.Experiment)
		play  func(l *serverLab)
		phase v1alpha1.AnalysisPhase
		text  string
	}{
		"an analysis fails": {
			edit:  func(e *v1alpha1.Experiment) { rated(e).Spec.DryRun = nil },
			play:  func(l *serverLab) { l.verdict("exp-rate", v1alpha1.AnalysisPhaseFailed, "too many errors") },
			phase: v1alpha1.AnalysisPhaseFailed, text: "AnalysisRun exp-rate: ",
		},
		"terminated": {
			edit: func(e *v1alpha1.Experiment) { rated(e).Spec.DryRun = nil },
			play: func(l *serverLab) {
				e := l.reach("running", phased(v1alpha1.AnalysisPhaseRunning))
				clustertest.Eventually(l, patience, func() error { return l.get("exp-rate", &v1alpha1.AnalysisRun{}) })
				next := e.DeepCopy()
				next.Spec.Terminate = true
				if err := l.client.Patch(l.Context(), next, client.MergeFrom(e)); err != nil {
					l.Fatal(err)
				}
				clustertest.Eventually(l, patience, func() error {
					run := &v1alpha1.AnalysisRun{}
					if err := l.get("exp-rate", run); err != nil {
						return err
					}
					if !run.Spec.Terminate {
						return fmt.Errorf("the run is not told to end")
					}
					return nil
				})
				l.verdict("exp-rate", v1alpha1.AnalysisPhaseSuccessful, "run terminated")
			},
			phase: v1alpha1.AnalysisPhaseSuccessful,
		},
		"a pattern of no metric": {edit: func(e *v1alpha1.Experiment) { rated(e) }, phase: v1alpha1.AnalysisPhaseError, text: "spec.dryRun[0].metricName"},
		"a field that no pod has": {
			edit: func(e *v1alpha1.Experiment) {
				e.Spec.Templates[1].Template.Raw = []byte(`{"spec":{"containers":[{"name":"a","image":"b","imagee":"c"}]}}`)
			},
			phase: v1alpha1.AnalysisPhaseError, text: "spec.templates[1].template: ",
		},
		"a duration": {edit: func(e *v1alpha1.Experiment) { e.Spec.Duration = "1s" }, phase: v1alpha1.AnalysisPhaseSuccessful},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newServerLab(t)
			l.create(rateTemplate())
			e := webExperiment()
			tt.edit(e)
			l.create(e)
			if tt.play != nil {
				tt.play(l)
			}
			ended := l.reach(string(tt.phase), phased(tt.phase))
			if !strings.Contains(ended.Status.Message, tt.text) {
				t.Errorf("it says %q, want %q in it", ended.Status.Message, tt.text)
			}
		})
	}
}

// A ReplicaSet of somebody else stands in the way, and is left alone.
func TestExperimentLeavesForeignObjectsAlone(t *testing.T) {
	l := newServerLab(t)
	labels := map[string]string{"app": "other"}
	foreign := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "exp-canary"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}},
	}}
	l.create(foreign, webExperiment())
	l.reach("waiting", func(e *v1alpha1.Experiment) bool {
		return e.Status.Phase == v1alpha1.AnalysisPhasePending && strings.Contains(e.Status.Message, "exp-canary, which belongs to nobody")
	})
	now := &appsv1.ReplicaSet{}
	if err := l.get("exp-canary", now); err != nil || now.UID != foreign.UID || now.Generation != 1 || len(now.OwnerReferences) > 0 {
		t.Errorf("it was touched (%v)", err)
	}
}
