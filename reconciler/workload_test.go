package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/templatehash"
)

// workloadOf makes an object of any kind that holds a template.
func workloadOf(kind string, replicas int, image string) *unstructured.Unstructured {
	gvk := workloadKinds[kind]
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(gvk)
	out.SetName("old")
	if kind == "PodTemplate" {
		out.Object["template"] = podTemplate(image)
		return out
	}
	out.Object["spec"] = map[string]any{
		"replicas": int64(replicas), "template": podTemplate(image),
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
	}
	return out
}

// referring is a Rollout of two pods that takes its template from the workload old.
func referring(kind, scaleDown string) *v1alpha1.Rollout {
	rollout := webRollout()
	rollout.Spec.Template = nil
	if kind != "PodTemplate" {
		rollout.Spec.Selector = nil
	}
	version, _ := workloadKinds[kind].ToAPIVersionAndKind()
	rollout.Spec.WorkloadRef = &v1alpha1.ObjectRef{APIVersion: version, Kind: kind, Name: "old", ScaleDown: scaleDown}
	return rollout
}

func (l *lab) old(kind string) *unstructured.Unstructured {
	l.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(workloadKinds[kind])
	if err := l.get("old", live); err != nil {
		l.Fatal(err)
	}
	return live
}

func replicasOf(live *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	return n
}

// sized waits until the workload has this size, and this many pods are available.
func (l *lab) sized(kind string, want int64) {
	l.Helper()
	clustertest.Eventually(l, patience, func() error {
		live := l.old(kind)
		available, _, _ := unstructured.NestedInt64(live.Object, "status", "availableReplicas")
		if got := replicasOf(live); got != want || available != want {
			return fmt.Errorf("%s has size %d and %d available pods, want %d", kind, got, available, want)
		}
		return nil
	})
}

func (l *lab) patchOld(kind, patch string) {
	l.Helper()
	if err := l.client.Patch(l.Context(), l.old(kind), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) image(kind, image string) {
	l.Helper()
	containers := `[{"name":"web","image":"` + image + `"}]`
	if kind == "PodTemplate" {
		l.patchOld(kind, `{"template":{"spec":{"containers":`+containers+`}}}`)
		return
	}
	l.patchOld(kind, `{"spec":{"template":{"spec":{"containers":`+containers+`}}}}`)
}

// patchRollout changes the spec alone.
func (l *lab) patchRollout(patch string) {
	l.Helper()
	rollout := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "web"}}
	if err := l.client.Patch(l.Context(), rollout, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) liveHash(kind string) string {
	l.Helper()
	template, _, err := unstructured.NestedMap(l.old(kind).Object, templatePath(kind)...)
	if err != nil {
		l.Fatal(err)
	}
	text, err := json.Marshal(template)
	if err != nil {
		l.Fatal(err)
	}
	hash, err := templatehash.Hash(templatehash.Version, text)
	if err != nil {
		l.Fatal(err)
	}
	return hash
}

func TestTheTemplateOfAWorkload(t *testing.T) {
	for kind := range workloadKinds {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t)
			l.create(workloadOf(kind, 1, "web:1"), referring(kind, ""))
			l.watch()
			first := l.reach("healthy", patience, healthy)
			if want := l.liveHash(kind); first.Status.StableRS != want {
				t.Errorf("stable is %s, and the live template is %s", first.Status.StableRS, want)
			}
			l.settled()
			l.image(kind, "web:2")
			second := l.reach("healthy on the second template", soon, func(r *v1alpha1.Rollout) bool {
				return healthy(r) && r.Status.StableRS != first.Status.StableRS
			})
			if want := l.liveHash(kind); second.Status.StableRS != want {
				t.Errorf("stable is %s, and the live template is %s", second.Status.StableRS, want)
			}
			if kind != "PodTemplate" {
				if got := replicasOf(l.old(kind)); got != 1 {
					t.Errorf("without scaleDown the workload went to %d", got)
				}
			}
			clustertest.Eventually(t, soon, func() error {
				generation := fmt.Sprint(l.old(kind).GetGeneration())
				if got := l.rollout().Status.WorkloadObservedGeneration; got != generation {
					return fmt.Errorf("workloadObservedGeneration is %q instead of %s", got, generation)
				}
				return nil
			})
		})
	}
}

func (l *lab) held(kind string) bool {
	l.Helper()
	_, held := holdOf(l.old(kind))
	return held
}

func (l *lab) finalizer() bool {
	l.Helper()
	return strings.Contains(strings.Join(l.rollout().Finalizers, " "), v1alpha1.WorkloadFinalizer)
}

// C88: whatever raises the workload, it goes down again while the Rollout is Healthy.
func TestC88_ScaleDownIsLevelBased(t *testing.T) {
	for _, mode := range []string{v1alpha1.ScaleDownOnSuccess, v1alpha1.ScaleDownProgressively} {
		for _, kind := range []string{"Deployment", "ReplicaSet"} {
			t.Run(mode+" "+kind, func(t *testing.T) {
				l := newLab(t)
				l.create(workloadOf(kind, 3, "web:1"))
				l.sized(kind, 3)
				l.create(referring(kind, mode))
				l.watch()
				l.reach("healthy", patience, healthy)
				l.sized(kind, 0)
				hold, _ := holdOf(l.old(kind))
				if hold != (v1alpha1.WorkloadHold{Rollout: "web", Replicas: 3}) || !l.finalizer() {
					t.Errorf("noted is %+v, finalizer %t", hold, l.finalizer())
				}
				l.settled()
				l.patchOld(kind, `{"spec":{"replicas":5}}`)
				clustertest.Eventually(t, soon, func() error {
					if hold, _ := holdOf(l.old(kind)); hold.Replicas != 5 || replicasOf(l.old(kind)) != 0 {
						return fmt.Errorf("%d pods are wanted, and noted is %+v", replicasOf(l.old(kind)), hold)
					}
					return nil
				})
				l.patchRollout(`{"spec":{"workloadRef":{"scaleDown":"never"}}}`)
				l.sized(kind, 5)
				clustertest.Eventually(t, soon, func() error {
					if l.held(kind) || l.finalizer() {
						return fmt.Errorf("held %t, finalizer %t", l.held(kind), l.finalizer())
					}
					return nil
				})
			})
		}
	}
}

// C88, C89: the workload serves again before the pods of a deleted Rollout go.
func TestC88_ADeletedRolloutGivesTheWorkloadItsPodsBack(t *testing.T) {
	l := newLab(t)
	l.create(workloadOf("Deployment", 1, "web:1"), webService("web-stable"), webService("web-canary"), webRoute())
	rollout := referring("Deployment", v1alpha1.ScaleDownOnSuccess)
	rollout.Spec.Strategy = routedRollout().Spec.Strategy
	rollout.Spec.Replicas = ptr.To[int32](3)
	l.create(rollout)
	l.watch()
	stable := l.reach("healthy", patience, healthy).Status.StableRS
	l.sized("Deployment", 0)
	clustertest.Eventually(t, patience, func() error { return l.selects("web-stable", stable) })
	watchPods := l.leastAvailable(3)
	if err := l.client.Delete(t.Context(), l.rollout(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, patience, func() error {
		err := l.get("web", &v1alpha1.Rollout{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Rollout is still there: %v", err)
	})
	l.sized("Deployment", 3) // the larger of the two sizes: what is loaded now has this many
	if l.held("Deployment") {
		t.Error("the Deployment is still held")
	}
	for _, name := range []string{"web-stable", "web-canary"} {
		service := &corev1.Service{}
		if err := l.get(name, service); err != nil {
			t.Fatal(err)
		}
		if hash := service.Spec.Selector[v1alpha1.TemplateHashLabel]; hash != "" {
			t.Errorf("Service %s selects %s, which is gone", name, hash)
		}
	}
	watchPods()
}

// leastAvailable starts to look at the pods of both, and returns what ends it and
// fails if there were ever fewer.
func (l *lab) leastAvailable(want int) (end func()) {
	ctx, cancel := context.WithCancel(l.Context())
	done, least := make(chan struct{}), 1000
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var pods corev1.PodList
			if l.client.List(ctx, &pods, client.InNamespace(l.namespace)) != nil {
				continue
			}
			ready := 0
			for i := range pods.Items {
				for _, c := range pods.Items[i].Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pods.Items[i].DeletionTimestamp == nil {
						ready++
					}
				}
			}
			least = min(least, ready)
		}
	}()
	return func() {
		l.Helper()
		cancel()
		<-done
		if least < want {
			l.Errorf("at some time %d pods were ready, fewer than %d", least, want)
		}
	}
}

func TestPodsWhileTheWorkloadShrinks(t *testing.T) {
	l := newLab(t)
	l.create(workloadOf("Deployment", 3, "web:1"))
	l.sized("Deployment", 3)
	end := l.leastAvailable(3)
	rollout := referring("Deployment", v1alpha1.ScaleDownProgressively)
	rollout.Spec.Replicas = ptr.To[int32](4)
	l.create(rollout)
	l.watch()
	l.reach("healthy", patience, healthy)
	l.sized("Deployment", 0)
	end()
}

func TestAMissingWorkloadTearsNothingDown(t *testing.T) {
	l := newLab(t)
	l.create(referring("Deployment", ""))
	l.watch()
	const words = "Deployment"
	waits := func(r *v1alpha1.Rollout) bool {
		return r.Status.Phase == v1alpha1.RolloutPhaseProgressing && strings.Contains(r.Status.Message, words) && strings.Contains(r.Status.Message, "/old does not exist")
	}
	l.reach("waiting for it", patience, waits)
	l.create(workloadOf("Deployment", 1, "web:1"))
	before := l.reach("healthy", soon, healthy)
	if err := l.client.Delete(t.Context(), l.old("Deployment")); err != nil {
		t.Fatal(err)
	}
	after := l.reach("waiting for it again", soon, waits)
	l.settled()
	if got := l.rollout(); got.Status.AvailableReplicas != 2 || got.Status.CurrentPodHash != before.Status.StableRS || got.Status.Attempt != after.Status.Attempt {
		t.Errorf("status is %+v", got.Status)
	}
	// a pod that goes meanwhile comes back
	sets := l.sets()
	if len(sets) != 1 || *sets[0].Spec.Replicas != 2 {
		t.Errorf("ReplicaSets are %+v", sets)
	}
	l.create(workloadOf("Deployment", 1, "web:1"))
	l.reach("healthy on the same version", soon, func(r *v1alpha1.Rollout) bool {
		return healthy(r) && r.Status.StableRS == before.Status.StableRS && r.Status.Attempt == before.Status.Attempt
	})
}

func TestAWorkloadThatIsBeingDeletedChangesNothing(t *testing.T) {
	l := newLab(t)
	leaving := workloadOf("Deployment", 0, "web:1")
	leaving.SetFinalizers([]string{"somebody/else"})
	l.create(leaving, referring("Deployment", v1alpha1.ScaleDownOnSuccess))
	l.byHand()
	before := l.passesUntil("healthy", healthy)
	if err := l.client.Delete(t.Context(), l.old("Deployment")); err != nil {
		t.Fatal(err)
	}
	after := l.passesUntil("waiting", func(r *v1alpha1.Rollout) bool { return strings.Contains(r.Status.Message, "/old is being deleted") })
	if after.Status.Attempt != before.Status.Attempt || after.Status.StableRS != before.Status.StableRS {
		t.Errorf("the status went from %+v to %+v", before.Status, after.Status)
	}
	for _, set := range l.sets() {
		if set.Labels[v1alpha1.TemplateHashLabel] != "" && *set.Spec.Replicas != 2 {
			t.Errorf("ReplicaSet %s has size %d", set.Name, *set.Spec.Replicas)
		}
	}
	l.patchOld("Deployment", `{"metadata":{"finalizers":null}}`)
}

func TestWorkloadsThatCantBeTaken(t *testing.T) {
	other := referring("Deployment", "")
	other.Name = "another"
	for name, c := range map[string]struct {
		objects []client.Object
		kind    string
		text    string
	}{
		"one that an older Rollout has": {kind: "Deployment", text: "Rollout another names Deployment old too", objects: []client.Object{workloadOf("Deployment", 0, "web:1"), other}},
		"a label of ours in it": {kind: "Deployment", text: "Deployment old, template.metadata.labels", objects: []client.Object{func() client.Object {
			d := workloadOf("Deployment", 0, "web:1")
			_ = unstructured.SetNestedField(d.Object, "1", "spec", "template", "metadata", "labels", v1alpha1.TemplateHashLabel)
			return d
		}()}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.create(c.objects...)
			l.create(referring(c.kind, ""))
			l.byHand()
			l.passesUntil("refused with a reason", func(r *v1alpha1.Rollout) bool {
				return r.Status.Phase == v1alpha1.RolloutPhaseDegraded && strings.Contains(r.Status.Message, c.text)
			})
		})
	}
}

func TestAReplicaSetOfADeploymentIsRefused(t *testing.T) {
	l := newLab(t)
	l.create(workloadOf("Deployment", 0, "web:1"))
	rollout := referring("ReplicaSet", "")
	clustertest.Eventually(t, patience, func() error {
		sets := l.sets()
		if len(sets) != 1 {
			return fmt.Errorf("the Deployment has %d ReplicaSets", len(sets))
		}
		rollout.Spec.WorkloadRef.Name = sets[0].Name
		return nil
	})
	l.create(rollout)
	l.byHand()
	l.passesUntil("refused with a reason", func(r *v1alpha1.Rollout) bool {
		return r.Status.Phase == v1alpha1.RolloutPhaseDegraded && strings.Contains(r.Status.Message, "belongs to Deployment old")
	})
}

func TestASelectorThatChangesIsRefused(t *testing.T) {
	l := newLab(t)
	l.create(workloadOf("Deployment", 0, "web:1"), referring("Deployment", ""))
	l.byHand()
	l.passesUntil("healthy", healthy)
	other := workloadOf("Deployment", 0, "web:1")
	other.SetName("other")
	_ = unstructured.SetNestedStringMap(other.Object, map[string]string{"app": "web", "tier": "front"}, "spec", "selector", "matchLabels")
	_ = unstructured.SetNestedStringMap(other.Object, map[string]string{"app": "web", "tier": "front"}, "spec", "template", "metadata", "labels")
	l.create(other)
	l.patchRollout(`{"spec":{"workloadRef":{"name":"other"}}}`)
	l.passesUntil("refused", func(r *v1alpha1.Rollout) bool {
		return r.Status.Phase == v1alpha1.RolloutPhaseDegraded && strings.Contains(r.Status.Message, "the selector of Deployment other")
	})
	if sets := l.sets(); len(sets) != 2 { // the Deployment's, and the Rollout's first
		for _, set := range sets {
			if set.Labels[v1alpha1.TemplateHashLabel] != "" && *set.Spec.Replicas != 2 {
				t.Errorf("ReplicaSet %s has size %d", set.Name, *set.Spec.Replicas)
			}
		}
	}
}

func TestAScalerOfTheWorkload(t *testing.T) {
	l := newLab(t)
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "hpa"}}
	scaler.Spec.MaxReplicas = 5
	scaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "old"}
	l.create(workloadOf("Deployment", 1, "web:1"), scaler, referring("Deployment", v1alpha1.ScaleDownProgressively))
	l.byHand()
	rollout := l.passesUntil("healthy", healthy)
	c := apimeta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.WorkloadHasScalerCondition)
	if c == nil || c.Reason != v1alpha1.ReasonTwoScalers || !strings.Contains(c.Message, "HorizontalPodAutoscaler hpa sizes Deployment old") {
		t.Errorf("condition is %+v", c)
	}
}

// A workload that the spec names no more gets its size back.
func TestAnotherWorkload(t *testing.T) {
	l := newLab(t)
	l.create(workloadOf("Deployment", 1, "web:1"), referring("Deployment", v1alpha1.ScaleDownOnSuccess))
	l.watch()
	l.reach("healthy", patience, healthy)
	l.sized("Deployment", 0)
	next := workloadOf("Deployment", 1, "web:1")
	next.SetName("next")
	l.create(next)
	l.patchRollout(`{"spec":{"workloadRef":{"name":"next"}}}`)
	l.sized("Deployment", 1)
	clustertest.Eventually(t, soon, func() error {
		live := &appsv1.Deployment{}
		if err := l.get("next", live); err != nil {
			return err
		}
		if *live.Spec.Replicas != 0 || !l.finalizer() || l.held("Deployment") {
			return fmt.Errorf("next has size %d, finalizer %t", *live.Spec.Replicas, l.finalizer())
		}
		return nil
	})
}

// declare writes the Deployment and the Rollout as gitsync does.
func (l *lab) declare(image string) (hash string) {
	l.Helper()
	d := workloadOf("Deployment", 0, image)
	d.SetNamespace(l.namespace)
	own := client.FieldOwner(v1alpha1.FieldManagerGitSync)
	if err := l.client.Apply(l.Context(), client.ApplyConfigurationFromUnstructured(d), own, client.ForceOwnership); err != nil {
		l.Fatal(err)
	}
	hash = l.hashOf(podTemplate(image))
	source, err := json.Marshal(v1alpha1.Source{Hash: hash, Revision: "main@sha1:" + strings.Repeat("a", 40), GitSync: l.namespace + "/shop", Template: rawTemplate(podTemplate(image)).Raw})
	if err != nil {
		l.Fatal(err)
	}
	l.patchRollout(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.SourceAnnotation, source))
	return hash
}

// The version is the template that Git declares, whatever defaults the API server
// puts into the live one; and the live one as soon as somebody edits it.
func TestADeclaredTemplateOfAWorkload(t *testing.T) {
	l := newLab(t)
	l.create(referring("Deployment", ""))
	want := l.declare("web:1")
	l.watch()
	rollout := l.reach("healthy", patience, healthy)
	if rollout.Status.StableRS != want || l.liveHash("Deployment") == want {
		t.Errorf("stable is %s, declared is %s and the live template is %s", rollout.Status.StableRS, want, l.liveHash("Deployment"))
	}
	l.settled()
	l.image("Deployment", "web:hand")
	edited := l.reach("healthy on the edited template", soon, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS != want })
	c := apimeta.FindStatusCondition(edited.Status.Conditions, v1alpha1.TemplateModifiedCondition)
	if c == nil || !strings.Contains(c.Message, "somebody edited it") || edited.Status.StableRS != l.liveHash("Deployment") {
		t.Errorf("stable is %s, condition %+v", edited.Status.StableRS, c)
	}
	if got := l.declare("web:1"); got != want {
		t.Fatal("the same template has another hash")
	}
	l.reach("healthy on what Git declares", soon, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == want })
	next := l.declare("web:2")
	l.reach("healthy on what Git declares next", soon, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == next })
}
