package reconciler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/reconciler/experiment"
	"github.com/pushback-dev/pushback/routers"
)

// compareStep runs stable and canary side by side and measures the canary.
func compareStep() v1alpha1.CanaryStep {
	latest := v1alpha1.HashLatest
	return v1alpha1.CanaryStep{Experiment: &v1alpha1.RolloutExperimentStep{
		Templates: []v1alpha1.RolloutExperimentTemplate{
			{Name: "baseline", SpecRef: v1alpha1.SpecRefStable},
			{Name: "canary", SpecRef: v1alpha1.SpecRefCanary, Replicas: ptr.To[int32](2),
				Metadata: &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"app": "trial"}}},
		},
		ScaleDownDelaySeconds: ptr.To[int32](0),
		Analyses: []v1alpha1.RolloutExperimentStepAnalysisTemplateRef{{Name: "rate", TemplateName: "rate", RequiredForCompletion: true, Args: []v1alpha1.AnalysisRunArgument{
			{Name: "hash", Value: "{{templates.canary.podTemplateHash}}"},
			{Name: "version", ValueFrom: &v1alpha1.ArgumentValueFrom{PodTemplateHashValue: &latest}},
		}}},
	}}
}

func rateOfVersion() *v1alpha1.AnalysisTemplate {
	return &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: "rate"}, Spec: v1alpha1.AnalysisTemplateSpec{
		Args: []v1alpha1.Argument{{Name: "hash"}, {Name: "version"}},
		Metrics: []v1alpha1.Metric{{Name: "rate", SuccessCondition: "result[0] > 0.9", Provider: v1alpha1.MetricProvider{
			Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus", Query: `x{hash="{{args.hash}}",version="{{args.version}}"}`}}}},
	}}
}

// watchExperiments runs the controller of Experiments beside that of Rollouts.
func (l *lab) watchExperiments() {
	l.Helper()
	r := &experiment.Reconciler{Client: l.manager.GetClient(), Live: l.manager.GetAPIReader(), Events: events.NewFakeRecorder(1000), Now: l.reconciler.Now}
	if err := r.SetupWithManager(l.manager, controller.Options{}); err != nil {
		l.Fatal(err)
	}
}

// runOf waits for the run of the only Experiment of a version.
func (l *lab) runOf(hash string) *v1alpha1.AnalysisRun {
	l.Helper()
	var runs v1alpha1.AnalysisRunList
	clustertest.Eventually(l, patience, func() error {
		if err := l.client.List(l.Context(), &runs, client.InNamespace(l.namespace), client.MatchingLabels{v1alpha1.TemplateHashLabel: hash}); err != nil {
			return err
		}
		if len(runs.Items) != 1 {
			return fmt.Errorf("%d runs of %s", len(runs.Items), hash)
		}
		return nil
	})
	return &runs.Items[0]
}

// ends gives a run its verdict, as its own controller would.
func (l *lab) ends(run *v1alpha1.AnalysisRun, phase v1alpha1.AnalysisPhase, message string) {
	l.Helper()
	next := run.DeepCopy()
	next.Status.Phase, next.Status.Message = phase, message
	next.Status.MetricResults = []v1alpha1.MetricResult{{Name: "rate", Phase: phase, Count: 1, Message: message}}
	if err := l.client.Status().Patch(l.Context(), next, client.MergeFrom(run)); err != nil {
		l.Fatal(err)
	}
}

func TestExperimentStep(t *testing.T) {
	tests := map[string]struct {
		phase v1alpha1.AnalysisPhase
		then  func(l *lab, hash string)
	}{
		"successful": {v1alpha1.AnalysisPhaseSuccessful, func(l *lab, hash string) {
			l.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == hash })
		}},
		"failed": {v1alpha1.AnalysisPhaseFailed, func(l *lab, hash string) {
			r := l.reach("aborted", patience, func(r *v1alpha1.Rollout) bool { return r.Status.Abort })
			if r.Status.AbortReason != v1alpha1.AbortFailed || !strings.Contains(r.Status.AbortMessage, "Experiment web-"+hash+"-2-0: AnalysisRun web-"+hash+"-2-0-rate") {
				l.Errorf("aborted for %s: %s", r.Status.AbortReason, r.Status.AbortMessage)
			}
		}},
		"error": {v1alpha1.AnalysisPhaseError, func(l *lab, _ string) {
			r := l.reach("aborted", patience, func(r *v1alpha1.Rollout) bool { return r.Status.Abort })
			if r.Status.AbortReason != v1alpha1.AbortError || len(r.Status.Rejected) > 0 {
				l.Errorf("aborted for %s, rejected %+v", r.Status.AbortReason, r.Status.Rejected)
			}
		}},
		"inconclusive": {v1alpha1.AnalysisPhaseInconclusive, func(l *lab, _ string) {
			l.reach("paused", patience, func(r *v1alpha1.Rollout) bool {
				return len(r.Status.PauseConditions) == 1 && r.Status.PauseConditions[0].Reason == v1alpha1.PauseReasonInconclusiveExperiment
			})
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.watchExperiments()
			l.watch()
			l.create(rateOfVersion(), webRollout(compareStep()))
			l.reach("healthy", patience, healthy)
			l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
			hash := l.hashOf(podTemplate("web:2"))
			run := l.runOf(hash)
			checkStepExperiment(l, run, hash)
			l.ends(run, tt.phase, "so it is")
			tt.then(l, hash)
		})
	}
}

// checkStepExperiment: its versions are those of the Rollout, without what Pushback put
// on their ReplicaSets, and its run is found as the Rollout's.
func checkStepExperiment(l *lab, run *v1alpha1.AnalysisRun, hash string) {
	l.Helper()
	e := &v1alpha1.Experiment{}
	if err := l.get("web-"+hash+"-2-0", e); err != nil {
		l.Fatal(err)
	}
	if !metav1.IsControlledBy(e, l.rollout()) || run.Labels[v1alpha1.RolloutNameLabel] != "web" || run.Labels[v1alpha1.AttemptLabel] != "2" {
		l.Errorf("owner %v, labels of the run %v", e.OwnerReferences, run.Labels)
	}
	if got := *run.Spec.Args[1].Value; got != hash {
		l.Errorf("the version is %s, want %s", got, hash)
	}
	labels := map[string]map[string]string{"baseline": {"app": "web"}, "canary": {"app": "trial"}}
	images := map[string]string{"baseline": "web:1", "canary": "web:2"}
	for _, t := range e.Spec.Templates {
		var got struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Containers []struct{ Image string } }
		}
		if err := json.Unmarshal(t.Template.Raw, &got); err != nil {
			l.Fatal(err)
		}
		if diff := cmp.Diff(labels[t.Name], got.Metadata.Labels); diff != "" || got.Spec.Containers[0].Image != images[t.Name] {
			l.Errorf("template %s has image %s and labels (-want +got):\n%s", t.Name, got.Spec.Containers[0].Image, diff)
		}
	}
	for _, s := range e.Status.TemplateStatuses {
		if s.PodTemplateHash == hash || s.PodTemplateHash == "" {
			l.Errorf("the pods of %s have the hash %q", s.Name, s.PodTemplateHash)
		}
	}
	for _, set := range l.sets() {
		if owner := metav1.GetControllerOf(&set); owner.Kind == v1alpha1.ExperimentKind && set.Labels["app"] != "" {
			l.Errorf("ReplicaSet %s has labels %v, by which the Rollout could take it in", set.Name, set.Labels)
		}
	}
}

// A newer version ends the Experiment of the one before.
func TestExperimentOfASupersededVersionEnds(t *testing.T) {
	l := newLab(t)
	l.watchExperiments()
	l.watch()
	l.create(rateOfVersion(), webRollout(compareStep()))
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	run := l.runOf(l.hashOf(podTemplate("web:2")))
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:3")) })
	clustertest.Eventually(l, patience, func() error {
		now := &v1alpha1.AnalysisRun{}
		if err := l.get(run.Name, now); err != nil {
			return err
		}
		if !now.Spec.Terminate {
			return fmt.Errorf("the run goes on")
		}
		return nil
	})
	l.runOf(l.hashOf(podTemplate("web:3")))
}

// What Pushback puts on the template of a ReplicaSet is taken off, and nothing else.
func TestUndress(t *testing.T) {
	declared := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"future": "field", "affinity": map[string]any{"podAntiAffinity": map[string]any{
			"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": int64(1), "podAffinityTerm": map[string]any{
				"topologyKey": "zone", "labelSelector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}}},
		}}},
	}
	for name, template := range map[string]map[string]any{"with affinity": declared, "bare": {"spec": map[string]any{"future": "field"}}} {
		t.Run(name, func(t *testing.T) {
			dressed := copyJSON(t, template)
			role, err := dressTemplate(dressed, v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": "canary", "app": "other"}, Annotations: map[string]string{"a": "b"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := mergeLabels(dressed, map[string]string{v1alpha1.TemplateHashLabel: "0123456789"}); err != nil {
				t.Fatal(err)
			}
			rule := &v1alpha1.AntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: &v1alpha1.PreferredDuringSchedulingIgnoredDuringExecution{Weight: 5},
				RequiredDuringSchedulingIgnoredDuringExecution:  &v1alpha1.RequiredDuringSchedulingIgnoredDuringExecution{},
			}
			if err := addAvoidance(dressed, rule, "9876543210"); err != nil {
				t.Fatal(err)
			}
			got, err := undress(copyJSON(t, dressed), role)
			if err != nil {
				t.Fatal(err)
			}
			if metadata, _ := got["metadata"].(map[string]any); len(metadata) == 0 {
				delete(got, "metadata")
			}
			if diff := cmp.Diff(copyJSON(t, template), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func copyJSON(t *testing.T, in map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// backends are the weights of the live route by Service.
func (l *lab) backends() map[string]string {
	l.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := l.get("web", route); err != nil {
		l.Fatal(err)
	}
	out := map[string]string{}
	for _, ref := range route.Spec.Rules[0].BackendRefs {
		out[string(ref.Name)] = fmt.Sprintf("%d:%d", *ref.Port, *ref.Weight)
	}
	return out
}

// portedTemplate has the port that the Services lead to.
func portedTemplate(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image,
			"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080)}}}}},
	}
}

// The versions of an Experiment get their part of stable's traffic while they are
// available, and keep their pods until nothing is sent to them any more.
func TestExperimentWithWeights(t *testing.T) {
	l := newLab(t)
	l.watchExperiments()
	l.watch()
	step := compareStep()
	for i := range step.Experiment.Templates {
		step.Experiment.Templates[i].Weight = ptr.To(int32(5 * (i + 1)))
	}
	rollout := routedRollout(setWeight(20), step, untilPromoted)
	rollout.Spec.Template = rawTemplate(podTemplate("web:1"))
	stable, canary := webService("web-stable"), webService("web-canary")
	stable.Spec.Ports[0].TargetPort, canary.Spec.Ports[0].TargetPort = intstr.FromString("http"), intstr.FromString("http")
	l.create(rateOfVersion(), stable, canary, webRoute(), rollout)
	l.reach("refused without a port", patience, func(r *v1alpha1.Rollout) bool {
		return strings.Contains(r.Status.Message, "steps[1].experiment.templates[0].weight: its Service needs a port")
	})
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(portedTemplate("web:1")) })
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(portedTemplate("web:2")) })
	hash := l.hashOf(portedTemplate("web:2"))
	run := l.runOf(hash)
	name := "web-" + hash + "-2-1"
	want := map[string]string{"web-stable": "80:65", "web-canary": "80:20", name + "-baseline": "8080:5", name + "-canary": "8080:10"}
	clustertest.Eventually(l, patience, func() error {
		if diff := cmp.Diff(want, l.backends()); diff != "" {
			return fmt.Errorf("backends (-want +got):\n%s", diff)
		}
		return nil
	})
	l.reach("telling of them", patience, func(r *v1alpha1.Rollout) bool {
		w := r.Status.Canary.Weights
		return w != nil && len(w.Additional) == 2 && w.Additional[1].Weight == 10 && w.Stable.Weight == 65
	})

	l.ends(run, v1alpha1.AnalysisPhaseSuccessful, "")
	clustertest.Eventually(l, patience, func() error {
		if diff := cmp.Diff(map[string]string{"web-stable": "80:80", "web-canary": "80:20"}, l.backends()); diff != "" {
			return fmt.Errorf("backends (-want +got):\n%s", diff)
		}
		return nil
	})
	clustertest.Eventually(l, patience, func() error {
		e := &v1alpha1.Experiment{}
		if err := l.get(name, e); err != nil {
			return err
		}
		for _, s := range e.Status.TemplateStatuses {
			if s.Replicas > 0 || e.Annotations[v1alpha1.RoutedAnnotation] != "" {
				return fmt.Errorf("%s has %d pods, annotations %v", s.Name, s.Replicas, e.Annotations)
			}
		}
		return nil
	})
}

func TestPortsFor(t *testing.T) {
	port := func(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, TargetPort: target}
	}
	own := []corev1.ServicePort{port("http", 8080, intstr.IntOrString{}), port("", 9090, intstr.IntOrString{})}
	cases := map[string]struct {
		stable corev1.ServicePort
		want   []routers.ExtraPort
		ok     bool
	}{
		"by number":        {port("", 80, intstr.FromInt32(8080)), []routers.ExtraPort{{Stable: 80, Extra: 8080}}, true},
		"by name":          {port("", 80, intstr.FromString("http")), []routers.ExtraPort{{Stable: 80, Extra: 8080}}, true},
		"the same":         {port("", 9090, intstr.IntOrString{}), nil, true},
		"none of its name": {port("", 80, intstr.FromString("grpc")), nil, false},
		"none":             {port("", 80, intstr.FromInt32(7070)), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := portsFor([]corev1.ServicePort{tc.stable}, own)
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != tc.ok {
				t.Errorf("%v (-want +got):\n%s", ok, diff)
			}
		})
	}
}
