package reconciler

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// A Rollout that was deleted without its pods and made again with another template is no first version.
func TestOrphanedReplicaSetsAreAdopted(t *testing.T) {
	l := newLab(t)
	l.create(webRollout(setWeight(50), untilPromoted))
	l.byHand()
	first := l.passesUntil("healthy", healthy)
	if err := l.client.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(l, patience, func() error {
		sets := l.sets()
		if len(sets) == 1 && metav1.GetControllerOf(&sets[0]) == nil {
			return client.IgnoreNotFound(l.get("web", &v1alpha1.Rollout{}))
		}
		return errors.New("not orphaned yet")
	})
	again := webRollout(setWeight(50), untilPromoted)
	again.Spec.Template = rawTemplate(podTemplate("web:2"))
	clustertest.Eventually(l, patience, func() error {
		again.ResourceVersion, again.Namespace = "", l.namespace
		return l.client.Create(t.Context(), again.DeepCopy())
	})
	got := l.passesUntil("paused at its step", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	if got.Status.StableRS != first.Status.StableRS {
		t.Errorf("stable is %q, and the adopted version is %q", got.Status.StableRS, first.Status.StableRS)
	}
	for _, set := range l.sets() {
		if !metav1.IsControlledBy(&set, got) {
			t.Errorf("ReplicaSet %s is not the new Rollout's", set.Name)
		}
	}
}

// A name that is taken by somebody else's ReplicaSet is said, and what is there is left alone.
func TestTakenNameIsSaid(t *testing.T) {
	l := newLab(t)
	hash := l.hashOf(podTemplate("web:1"))
	other := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}},
	}
	other.Spec.Template.Labels = map[string]string{"app": "other"}
	other.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other", Image: "other:1"}}
	l.create(other, webRollout())
	l.byHand()
	got := l.passesUntil("waiting", func(r *v1alpha1.Rollout) bool { return strings.Contains(r.Status.Message, "web-"+hash) })
	if !strings.Contains(got.Status.Message, "nobody") || got.Status.Phase != v1alpha1.RolloutPhaseProgressing {
		t.Errorf("phase %s, message %q", got.Status.Phase, got.Status.Message)
	}
	live := &appsv1.ReplicaSet{}
	if err := l.get(other.Name, live); err != nil || len(live.OwnerReferences) != 0 {
		t.Errorf("it has the owners %v: %v", live.OwnerReferences, err)
	}
}

// No size follows from a ReplicaSet that has changed since it was read.
func TestSizesNeedTheNewestReplicaSets(t *testing.T) {
	l := newLab(t)
	l.create(webRollout())
	l.byHand()
	rollout := l.passesUntil("healthy", healthy)
	var stale *staleError
	for name, age := range map[string]func(*observed){
		"as it is": func(*observed) {},
		"older": func(seen *observed) {
			for _, set := range seen.sets {
				set.ResourceVersion = "1"
			}
		},
		"not seen":       func(seen *observed) { clear(seen.sets) },
		"seen, and gone": func(seen *observed) { seen.sets["0123456789"] = &appsv1.ReplicaSet{} },
	} {
		seen := &observed{rollout: rollout, sets: map[string]*appsv1.ReplicaSet{}}
		for _, set := range l.sets() {
			seen.sets[set.Labels[v1alpha1.TemplateHashLabel]] = &set
		}
		age(seen)
		err := l.reconciler.confirmSets(t.Context(), seen)
		if fresh := name == "as it is"; fresh != (err == nil) || !fresh && !errors.As(err, &stale) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestMinReadySecondsReachesTheVersionThatRuns(t *testing.T) {
	l := newLab(t)
	l.create(webRollout())
	l.byHand()
	before := l.passesUntil("healthy", healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.MinReadySeconds = 2 })
	l.passesUntil("healthy again", healthy)
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			return err
		}
		sets := l.sets()
		if len(sets) != 1 || sets[0].Spec.MinReadySeconds != 2 || sets[0].Labels[v1alpha1.TemplateHashLabel] != before.Status.StableRS {
			return errors.New("the ReplicaSet does not have it, or another one was made")
		}
		return nil
	})
}
