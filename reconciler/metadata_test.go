package reconciler

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// withRoles gives a Rollout metadata for both roles. The annotation covers one of
// the template's own; only the canary has the label trial.
func withRoles(rollout *v1alpha1.Rollout) *v1alpha1.Rollout {
	canary := rollout.Spec.Strategy.Canary
	canary.StableMetadata = &v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": "stable"}}
	canary.CanaryMetadata = &v1alpha1.PodTemplateMetadata{
		Labels: map[string]string{"role": "canary", "trial": "yes"}, Annotations: map[string]string{"note": "on trial"},
	}
	return rollout
}

func noted(image string) map[string]any {
	template := podTemplate(image)
	template["metadata"].(map[string]any)["annotations"] = map[string]any{"note": "declared"}
	return template
}

// rolesOfPods are those that run, by uid: "<hash> role=… trial=… note=…".
func (l *lab) rolesOfPods() map[types.UID]string {
	l.Helper()
	var list corev1.PodList
	if err := l.client.List(l.Context(), &list, client.InNamespace(l.namespace)); err != nil {
		l.Fatal(err)
	}
	out := map[types.UID]string{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp.IsZero() {
			out[pod.UID] = fmt.Sprintf("%s role=%s trial=%s note=%s",
				pod.Labels[v1alpha1.TemplateHashLabel], pod.Labels["role"], pod.Labels["trial"], pod.Annotations["note"])
		}
	}
	return out
}

// podsAre waits until the pods are as wanted, by what is said of them.
func (l *lab) podsAre(want map[string]int) map[types.UID]string {
	l.Helper()
	var pods map[types.UID]string
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			return err
		}
		pods = l.rolesOfPods()
		got := map[string]int{}
		for _, text := range pods {
			got[text]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New("pods (-want +got):\n" + diff)
		}
		return nil
	})
	return pods
}

func TestMetadataFollowsTheRole(t *testing.T) {
	l := newLab(t)
	rollout := withRoles(webRollout(setWeight(50), untilPromoted))
	rollout.Spec.Template = rawTemplate(noted("web:1"))
	l.create(rollout)
	l.byHand()
	first, second := l.hashOf(noted("web:1")), l.hashOf(noted("web:2"))
	l.passesUntil("healthy", healthy)
	l.podsAre(map[string]int{first + " role=stable trial= note=declared": 2})
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(noted("web:2")) })
	paused := l.passesUntil("paused", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	trial := l.podsAre(map[string]int{first + " role=stable trial= note=declared": 1, second + " role=canary trial=yes note=on trial": 1})

	l.change(func(r *v1alpha1.Rollout) {
		r.Annotations = map[string]string{v1alpha1.PromoteAnnotation: paused.Status.CurrentPodHash + "/1/now"}
	})
	l.passesUntil("promoted", func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == second })
	promoted := l.podsAre(map[string]int{second + " role=stable trial= note=declared": 2})
	for uid, was := range trial {
		if _, still := promoted[uid]; !still && was != first+" role=stable trial= note=declared" {
			t.Errorf("the pod that was on trial (%s) was replaced", was)
		}
	}
	l.unwritten()
	for _, set := range l.sets() {
		hash := set.Labels[v1alpha1.TemplateHashLabel]
		want := map[string]string{"app": "web", v1alpha1.TemplateHashLabel: hash}
		if hash == second {
			want["role"] = "stable"
		}
		if diff := cmp.Diff(want, set.Spec.Template.Labels); diff != "" {
			t.Errorf("template of %s (-want +got):\n%s", hash, diff)
		}
		if got := set.Spec.Template.Annotations["note"]; got != "declared" {
			t.Errorf("the template of %s has note %q", hash, got)
		}
	}
}

// unwritten waits until nothing is left to write, and checks that passes at rest
// write nothing.
func (l *lab) unwritten() {
	l.Helper()
	versions := func() map[types.UID]string {
		out := map[types.UID]string{l.rollout().UID: l.rollout().ResourceVersion}
		for _, set := range l.sets() {
			out[set.UID] = set.ResourceVersion
		}
		var pods corev1.PodList
		if err := l.client.List(l.Context(), &pods, client.InNamespace(l.namespace)); err != nil {
			l.Fatal(err)
		}
		for _, pod := range pods.Items {
			out[pod.UID] = pod.ResourceVersion
		}
		return out
	}
	const quiet = 5
	clustertest.Eventually(l, patience, func() error {
		before := versions()
		for range quiet {
			if result, err := l.pass(); err != nil || result.RequeueAfter == conflictDelay {
				return errOr(err, "a race was lost")
			}
		}
		if diff := cmp.Diff(before, versions()); diff != "" {
			return errors.New("written at rest (-before +after):\n" + diff)
		}
		return nil
	})
}

// A controller that stops between the template and its pods leaves it to the next
// one, which takes off what the role before had, and nothing else.
func TestMetadataAfterACrash(t *testing.T) {
	l := newLab(t)
	l.create(withRoles(webRollout(setWeight(50), untilPromoted)))
	l.byHand()
	first, second := l.hashOf(podTemplate("web:1")), l.hashOf(podTemplate("web:2"))
	l.passesUntil("healthy", healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	paused := l.passesUntil("paused", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	l.podsAre(map[string]int{first + " role=stable trial= note=": 1, second + " role=canary trial=yes note=on trial": 1})

	crash, honest := errors.New("the controller is gone"), l.reconciler.Client
	l.reconciler.Client = &meddler{Client: honest, before: func(verb string, object client.Object, _ bool) error {
		if _, pod := object.(*metav1.PartialObjectMetadata); pod && verb == "patch" {
			return crash
		}
		return nil
	}}
	l.change(func(r *v1alpha1.Rollout) {
		r.Annotations = map[string]string{v1alpha1.PromoteAnnotation: paused.Status.CurrentPodHash + "/1/now"}
	})
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil && !errors.Is(err, crash) {
			return err
		}
		if r := l.rollout(); !healthy(r) || r.Status.StableRS != second {
			return errors.New("not promoted")
		}
		return nil
	})
	still := 0
	for _, text := range l.rolesOfPods() {
		if text == second+" role=canary trial=yes note=on trial" {
			still++
		}
	}
	if still == 0 {
		t.Fatalf("%v: no pod has the old role, so this shows nothing", l.rolesOfPods())
	}
	l.reconciler.Client = honest
	l.podsAre(map[string]int{second + " role=stable trial= note=": 2})
	l.unwritten()
}

// Metadata that leaves the spec leaves the pods, and what a person writes stays.
func TestMetadataThatIsNotWantedAnyMore(t *testing.T) {
	l := newLab(t)
	l.create(withRoles(webRollout()))
	l.byHand()
	l.passesUntil("healthy", healthy)
	hash := l.hashOf(podTemplate("web:1"))
	pods := l.podsAre(map[string]int{hash + " role=stable trial= note=": 2})
	var list corev1.PodList
	if err := l.client.List(t.Context(), &list, client.InNamespace(l.namespace)); err != nil {
		t.Fatal(err)
	}
	byPerson := list.Items[0].DeepCopy()
	byPerson.Annotations = map[string]string{"note": "mine"}
	if err := l.client.Patch(t.Context(), byPerson, client.MergeFrom(&list.Items[0])); err != nil {
		t.Fatal(err)
	}
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Strategy.Canary.StableMetadata = nil })
	after := l.podsAre(map[string]int{hash + " role= trial= note=": 1, hash + " role= trial= note=mine": 1})
	for uid := range pods {
		if _, there := after[uid]; !there {
			t.Errorf("pod %s was replaced", uid)
		}
	}
	l.unwritten()
	if _, there := l.sets()[0].Annotations[v1alpha1.EphemeralMetadataAnnotation]; there {
		t.Error("the ReplicaSet remembers what is nowhere")
	}
}
