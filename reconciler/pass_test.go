package reconciler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/internal/persist"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

func pauseFor(length string) v1alpha1.CanaryStep {
	d := intstr.FromString(length)
	return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: &d}}
}

// meddler is a client that lets a test come between.
type meddler struct {
	client.Client
	// before is asked before a write; its error is what the API server says.
	before func(verb string, object client.Object, dryRun bool) error
	// after sees what a status write gave back.
	after func(object client.Object)
}

func (m *meddler) say(verb string, object client.Object, dryRun bool) error {
	if m.before == nil {
		return nil
	}
	return m.before(verb, object, dryRun)
}

func (m *meddler) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	applied := (&client.CreateOptions{}).ApplyOptions(options)
	if err := m.say("create", object, len(applied.DryRun) > 0); err != nil {
		return err
	}
	return m.Client.Create(ctx, object, options...)
}

func (m *meddler) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := m.say("patch", object, false); err != nil {
		return err
	}
	return m.Client.Patch(ctx, object, patch, options...)
}

func (m *meddler) Status() client.SubResourceWriter {
	return &statusMeddler{SubResourceWriter: m.Client.Status(), meddler: m}
}

type statusMeddler struct {
	client.SubResourceWriter
	meddler *meddler
}

func (m *statusMeddler) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	if err := m.meddler.say("status", object, false); err != nil {
		return err
	}
	err := m.SubResourceWriter.Patch(ctx, object, patch, options...)
	if err == nil && m.meddler.after != nil {
		m.meddler.after(object)
	}
	return err
}

func conflict(object client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, object.GetName(), errors.New("somebody else was first"))
}

// Each kind of write loses one race; nothing is said of it, and nothing is lost.
func TestConflictsAreSilent(t *testing.T) {
	l := newLab(t)
	l.routed(setWeight(50), untilPromoted)
	lost := map[string]bool{}
	refused := 0
	m := &meddler{Client: l.reconciler.Client, before: func(verb string, object client.Object, dryRun bool) error {
		kind := verb + " " + kindOf(object)
		if dryRun || lost[kind] {
			return nil
		}
		lost[kind] = true
		refused++
		return conflict(object)
	}}
	l.reconciler.Client = m
	l.byHand()
	until := func(what string, is func(*v1alpha1.Rollout) bool) {
		t.Helper()
		clustertest.Eventually(l, patience, func() error {
			before := refused
			result, err := l.pass()
			if err != nil {
				t.Fatalf("a pass failed: %v", err)
			}
			if refused > before && result.RequeueAfter != conflictDelay {
				t.Fatalf("after a lost race the next pass is in %s", result.RequeueAfter)
			}
			if is(l.rollout()) {
				return nil
			}
			return errors.New("not " + what + ": " + l.rollout().Status.Message)
		})
	}
	until("healthy", healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	until("paused at 50", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	want := map[string]bool{"create ReplicaSet": true, "patch ReplicaSet": true, "patch Rollout": true, "patch Service": true, "status Rollout": true}
	if diff := cmp.Diff(want, lost); diff != "" {
		t.Errorf("the writes that lost a race (-want +got):\n%s", diff)
	}
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *appsv1.ReplicaSet:
		return "ReplicaSet"
	case *v1alpha1.Rollout:
		return "Rollout"
	case *v1alpha1.AnalysisRun:
		return "AnalysisRun"
	}
	return object.GetObjectKind().GroupVersionKind().Kind
}

// What Git declares is stored as declared; a typing error in it is found before anything is made.
func TestUnknownTemplateFieldIsNamed(t *testing.T) {
	l := newLab(t)
	template := podTemplate("web:1")
	template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["imagee"] = "web:2"
	rollout := webRollout()
	rollout.Spec.Template = rawTemplate(template)
	l.create(rollout)
	l.byHand()
	got := l.passesUntil("degraded", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhaseDegraded })
	if !strings.Contains(got.Status.Message, "spec.template.spec.containers[0].imagee") {
		t.Errorf("the message does not name the field: %s", got.Status.Message)
	}
	if sets := l.sets(); len(sets) != 0 {
		t.Errorf("%d ReplicaSets were made", len(sets))
	}
}

// Fields that are newer than this build go to the API server as they are.
func TestTemplateIsRenderedAsDeclared(t *testing.T) {
	template := podTemplate("web:1")
	template["spec"].(map[string]any)["fieldOfTomorrow"] = map[string]any{"deep": []any{int64(1), "two"}}
	rollout := webRollout()
	rollout.Spec.Template = rawTemplate(template)
	set, err := renderReplicaSet(rollout, plan.ReplicaSetWant{Hash: "0123456789", Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(set.Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	want := runtime.DeepCopyJSON(template["spec"].(map[string]any))
	want["fieldOfTomorrow"] = map[string]any{"deep": []any{float64(1), "two"}} // numbers as encoding/json reads them
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("the pod spec (-declared +rendered):\n%s", diff)
	}
}

func TestTranslatedRolloutsKeepArgosLabel(t *testing.T) {
	for name, translated := range map[string]bool{"ours": false, "Argo's": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			rollout := webRollout()
			want := map[string]string{"app": "web", v1alpha1.TemplateHashLabel: l.hashOf(podTemplate("web:1"))}
			if translated {
				rollout.Annotations = map[string]string{v1alpha1.TranslatedFromAnnotation: "argoproj.io/v1alpha1"}
				want[v1alpha1.ArgoTemplateHashLabel] = want[v1alpha1.TemplateHashLabel]
			}
			l.create(rollout)
			l.byHand()
			l.passesUntil("healthy", healthy)
			var pods corev1.PodList
			if err := l.client.List(t.Context(), &pods, client.InNamespace(l.namespace)); err != nil {
				t.Fatal(err)
			}
			if len(pods.Items) != 2 {
				t.Fatalf("there are %d pods", len(pods.Items))
			}
			for _, pod := range pods.Items {
				if diff := cmp.Diff(want, pod.Labels); diff != "" {
					t.Errorf("labels of %s (-want +got):\n%s", pod.Name, diff)
				}
			}
		})
	}
}

// An API server with an older CRD drops fields without a word. What rests on them would be done again for ever.
func TestC100_StatusThatWasNotKeptIsAnError(t *testing.T) {
	l := newLab(t)
	l.create(webRollout())
	l.reconciler.Client = &meddler{Client: l.reconciler.Client, after: func(object client.Object) {
		object.(*v1alpha1.Rollout).Status.Attempt = 0
	}}
	l.byHand()
	var dropped *persist.NotKeptError
	if _, err := l.pass(); !errors.As(err, &dropped) || !slices.Equal(dropped.Fields, []string{"attempt"}) {
		t.Errorf("want a NotKeptError about attempt, got %v", err)
	}
}

// While the API server can't take new versions, old ones can be taken back.
func TestAbortDoesNotWaitForADryRun(t *testing.T) {
	l := newLab(t)
	l.routed(setWeight(50), untilPromoted)
	l.byHand()
	l.passesUntil("healthy", healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	paused := l.passesUntil("paused", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	if got := l.canaryWeight(); got != 50 {
		t.Fatalf("the canary has weight %d", got)
	}
	l.reconciler.Client = &meddler{Client: l.reconciler.Client, before: func(_ string, _ client.Object, dryRun bool) error {
		if dryRun {
			return apierrors.NewInternalError(errors.New("a webhook is down"))
		}
		return nil
	}}
	l.change(func(r *v1alpha1.Rollout) {
		r.Spec.Template = rawTemplate(podTemplate("web:3"))
		r.Annotations = map[string]string{v1alpha1.AbortAnnotation: paused.Status.CurrentPodHash + "/1/now"}
	})
	l.passesUntil("taken back", func(r *v1alpha1.Rollout) bool { return r.Status.Abort && l.canaryWeight() == 0 })
}

func TestTerminateHitsWhatWasRead(t *testing.T) {
	l := newLab(t)
	run := &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{}}}
	l.create(run)
	l.byHand()
	another := run.DeepCopy()
	another.UID = "00000000-0000-0000-0000-000000000000"
	if err := l.reconciler.terminate(t.Context(), another); !isConflict(err) {
		t.Errorf("ending a run that was made anew: got %v, want a conflict", err)
	}
	stale := run.DeepCopy()
	stale.ResourceVersion = "1"
	if err := l.reconciler.terminate(t.Context(), stale); err != nil {
		t.Errorf("ending a run whose status has changed: %v", err)
	}
	live := &v1alpha1.AnalysisRun{}
	if err := l.get("run", live); err != nil || !live.Spec.Terminate {
		t.Errorf("terminate is %t: %v", live.Spec.Terminate, err)
	}
}

// A Revert outlives its Rollout. One of the same name must not be taken for the new Rollout's.
func TestAttemptsCountOnFromOlderReverts(t *testing.T) {
	l := newLab(t)
	hash := l.hashOf(podTemplate("web:1"))
	l.create(&v1alpha1.Revert{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash + "-4", Labels: map[string]string{v1alpha1.RolloutNameLabel: "web"}},
		Spec: v1alpha1.RevertRequest{
			Rollout: v1alpha1.RevertRollout{Namespace: l.namespace, Name: "web", UID: "of-a-rollout-that-is-gone"}, Rejected: hash, Attempt: 4,
			GitSync: v1alpha1.RevertGitSync{Namespace: l.namespace, Name: "shop"}, Reason: v1alpha1.AbortFailed, AbortedAt: metav1.Now(),
		},
	}, webRollout())
	l.byHand()
	got := l.passesUntil("healthy", healthy)
	if got.Status.Attempt != 5 || len(got.Status.Rejected) != 0 {
		t.Errorf("attempt %d with %d rejected versions; want 5 and none", got.Status.Attempt, len(got.Status.Rejected))
	}
}
