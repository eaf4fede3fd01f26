package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// byHand is a Revert that somebody made who may make Reverts in the namespace.
func (l *lab) byHand(sync, rollout, rejected, stable string, edits ...func(*v1alpha1.Revert)) string {
	l.Helper()
	revert := &v1alpha1.Revert{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("by-hand-%d", time.Now().UnixNano())},
		Spec: v1alpha1.RevertRequest{
			Rollout: v1alpha1.RevertRollout{Namespace: l.namespace, Name: rollout}, GitSync: v1alpha1.RevertGitSync{Namespace: l.namespace, Name: sync},
			Rejected: rejected, Stable: stable, Attempt: 1, Reason: v1alpha1.AbortFailed, AbortedAt: metav1.Now(),
		},
	}
	for _, edit := range edits {
		edit(revert)
	}
	l.ask(revert)
	return revert.Name
}

// replicaSet makes a ReplicaSet of a Rollout, with a role and without pods.
func (l *lab) replicaSet(rollout, hash, role string) {
	l.Helper()
	owner := &v1alpha1.Rollout{}
	if err := l.client.Get(l.Context(), types.NamespacedName{Namespace: l.namespace, Name: rollout}, owner); err != nil {
		l.Fatal(err)
	}
	labels := map[string]string{"app": rollout, v1alpha1.TemplateHashLabel: hash}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: rollout + "-" + hash, Labels: labels, Annotations: map[string]string{v1alpha1.RoleAnnotation: role},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))}},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}},
	}
	if err := l.client.Create(l.Context(), set); err != nil {
		l.Fatal(err)
	}
}

// rejectedLab is a lab with a healthy version that was replaced by another one.
func rejectedLab(t *testing.T) (l *lab, rejected, stable string) {
	l = newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable = l.declaredHash("web")
	_, rejected = l.roll("sync", "web", "app:1", "app:2")
	return l, rejected, stable
}

// Who may create Reverts may not take healthy versions out of Git by that.
func TestARevertMadeByHandPushesNothing(t *testing.T) {
	l, healthy, old := rejectedLab(t)
	commits := l.commits()
	refused := func(what, name, words string) {
		t.Helper()
		status := l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)
		if !strings.Contains(status.Message, words) || status.PushedAt != nil {
			t.Errorf("%s: want a refusal with %q, got %+v", what, words, status)
		}
	}
	refused("a version that goes on well", l.byHand("sync", "web", healthy, old), "has not rejected template")
	l.judge("web", func(s *v1alpha1.RolloutStatus) { s.StableRS = healthy })
	refused("the stable version", l.byHand("sync", "web", healthy, old), "has not rejected template")
	l.judge("web", condemn(healthy, old, 2))
	refused("another attempt", l.byHand("sync", "web", healthy, old, func(r *v1alpha1.Revert) { r.Spec.Attempt = 3 }), "at attempt 3")
	third := func(r *v1alpha1.Revert) { r.Spec.Attempt = 2 }
	refused("to a version that is not stable", l.byHand("sync", "web", healthy, "0123456789", third), "stable and not 0123456789")
	refused("of an earlier Rollout", l.byHand("sync", "web", healthy, old, third, func(r *v1alpha1.Revert) { r.Spec.Rollout.UID = "1-2-3" }), "earlier Rollout")
	l.sync("other", func(s *v1alpha1.GitSync) { s.Spec.Path, s.Spec.Suspend = "apps", true })
	other := l.byHand("other", "web", healthy, old, third)
	l.waitPhase(other, v1alpha1.RevertPending, "") // suspended: what it declares stays the other's
	if l.commits() != commits {
		t.Fatalf("something was pushed:\n%s", l.git(l.bare, "log", "main"))
	}
	// The one that the Rollout does ask for goes through.
	l.waitPhase(l.reject("sync", "web", healthy, old, third), v1alpha1.RevertObserved, "")
}

// Law 7: a status that was lost is made again of the marks; a revert doesn't wait for that.
func TestVouch_TheMarksSpeakWhenTheStatusIsLost(t *testing.T) {
	l, rejected, stable := rejectedLab(t)
	name := l.byHand("sync", "web", rejected, stable)
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)
	l.replicaSet("web", rejected, v1alpha1.RoleRejected)
	l.replicaSet("web", stable, v1alpha1.RoleStable)
	again := l.byHand("sync", "web", rejected, stable)
	l.waitPhase(again, v1alpha1.RevertObserved, "")
}

// A person who lifts the hold wants the version tried, not reverted.
func TestVouch_ARetriedVersionIsNotReverted(t *testing.T) {
	l, rejected, stable := rejectedLab(t)
	l.settings("sync", v1alpha1.RevertSpec{Mode: v1alpha1.RevertNone})
	commits := l.commits()
	name := l.reject("sync", "web", rejected, stable)
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonPolicy)
	l.judge("web", func(s *v1alpha1.RolloutStatus) { s.Rejected[0].Cleared = true })
	l.waitPhase(name, v1alpha1.RevertSuperseded, "")
	// At a later attempt it failed again: that is another Revert's affair.
	l.judge("web", condemn(rejected, stable, 4))
	l.waitPhase(l.byHand("sync", "web", rejected, stable), v1alpha1.RevertSuperseded, "")
	if l.commits() != commits {
		t.Error("something was pushed")
	}
}

// The Rollout is asked again when it has something else to say.
func TestVouch_IsAskedAgainAtOnce(t *testing.T) {
	l, rejected, stable := rejectedLab(t)
	name := l.byHand("sync", "web", rejected, stable)
	l.waitPhase(name, v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)
	l.judge("web", condemn(rejected, stable, 1))
	l.waitPhase(name, v1alpha1.RevertObserved, "")
}

// What nobody asks for doesn't stay for ever.
func TestVouch_ADisownedRevertAgesOut(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.options.Now = func() time.Time { return time.Now().Add(retainFinal + time.Hour).Truncate(time.Second) }
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	name := l.byHand("sync", "web", l.declaredHash("web"), "0123456789")
	l.wait(func() string {
		if l.object("pushback.dev/v1alpha1", "Revert", name) != nil {
			return "the disowned Revert is still there"
		}
		return ""
	})
}
