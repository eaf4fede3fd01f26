package reconciler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/routers"
	"github.com/pushback-dev/pushback/routers/gatewayapi"
)

// writesThrough lets a test come between all writes of a lab, the router's as well.
func (l *lab) writesThrough(before func(verb string, object client.Object, dryRun bool) error) {
	m := &meddler{Client: l.reconciler.Client, before: before}
	l.reconciler.Client = m
	l.reconciler.RouterFor = func(tr *v1alpha1.RolloutTrafficRouting) (routers.Router, error) {
		if settings, err := routers.GatewayAPI(tr); err != nil || settings == nil {
			return nil, err
		}
		return gatewayapi.New(m, l.manager.GetAPIReader()), nil
	}
}

// frozenLeader is a leader that stops between a decision and one of its writes, and
// goes on with it long after another has taken over.
type frozenLeader struct {
	*lab
	stuck, thaw, done chan struct{}
}

// freezeAt makes passes until the nth write of a kind is due.
func (l *lab) freezeAt(kind string, nth int) *frozenLeader {
	f := &frozenLeader{lab: l, stuck: make(chan struct{}), thaw: make(chan struct{}), done: make(chan struct{})}
	seen, once := 0, sync.OnceFunc(func() { close(f.stuck) })
	l.writesThrough(func(verb string, object client.Object, dryRun bool) error {
		if dryRun || verb+" "+kindOf(object) != kind {
			return nil
		}
		if seen++; seen == nth {
			once()
			<-f.thaw
		}
		return nil
	})
	l.Cleanup(sync.OnceFunc(func() { // a test that fails early leaves nobody behind
		select {
		case <-f.thaw:
		default:
			close(f.thaw)
		}
		<-f.done
	}))
	go func() {
		defer close(f.done)
		for l.Context().Err() == nil {
			if _, err := l.pass(); err != nil && l.Context().Err() == nil {
				l.Errorf("a pass of the frozen leader failed: %v", err)
			}
			select {
			case <-f.stuck:
				return // that was the pass with the late write
			default:
			}
		}
	}()
	return f
}

// waits until the leader is stuck.
func (f *frozenLeader) waits() {
	f.Helper()
	clustertest.Eventually(f, patience, func() error {
		select {
		case <-f.stuck:
			return nil
		default:
			return fmt.Errorf("the leader never came to this write: step %s, phase %s", f.rollout().Status.Step, f.rollout().Status.Phase)
		}
	})
}

// wakes lets the late write happen, and the rest of its pass.
func (f *frozenLeader) wakes() {
	close(f.thaw)
	<-f.done
}

// handedOver is what a rollout has come to.
type handedOver struct {
	Phase             v1alpha1.RolloutPhase
	Attempt           int64
	Stable, Current   string
	Step, Weight      int32
	Rejected, Reverts int
	Selects           [2]string
	Pods              map[string]int32
}

func (l *lab) handedOver() handedOver {
	l.Helper()
	r := l.rollout()
	out := handedOver{
		Phase: r.Status.Phase, Attempt: r.Status.Attempt, Stable: r.Status.StableRS, Current: r.Status.CurrentPodHash,
		Step: ptr.Deref(r.Status.CurrentStepIndex, -1), Weight: l.canaryWeight(), Rejected: len(r.Status.Rejected), Pods: map[string]int32{},
	}
	for i, name := range []string{"web-stable", "web-canary"} {
		service := &corev1.Service{}
		if err := l.get(name, service); err != nil {
			l.Fatal(err)
		}
		out.Selects[i] = service.Spec.Selector[v1alpha1.TemplateHashLabel]
	}
	for _, set := range l.sets() {
		out.Pods[set.Labels[v1alpha1.TemplateHashLabel]] = *set.Spec.Replicas
	}
	var reverts v1alpha1.RevertList
	if err := l.client.List(l.Context(), &reverts, client.InNamespace(l.namespace)); err != nil {
		l.Fatal(err)
	}
	out.Reverts = len(reverts.Items)
	return out
}

var latePlaces = map[string]struct {
	kind string
	nth  int
}{
	"the first status":           {"status Rollout", 1},
	"the canary's ReplicaSet":    {"create ReplicaSet", 1},
	"the canary's Service":       {"patch Service", 1},
	"the first weight":           {"patch HTTPRoute", 1},
	"the status of a step":       {"status Rollout", 3},
	"the second weight":          {"patch HTTPRoute", 2},
	"the status of a later step": {"status Rollout", 6},
}

// A leader that was frozen between its decision and a write wakes up after another
// has promoted the version: what it writes late is refused, and it says nothing.
func TestHandoverToAPromotion(t *testing.T) {
	for name, place := range latePlaces {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.routed(setWeight(40), pauseFor("1s"), setWeight(80), pauseFor("1s"))
			heir := labIn(t, l.namespace)
			l.byHand()
			heir.byHand()
			l.passesUntil("healthy", healthy)
			l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
			leader := l.freezeAt(place.kind, place.nth)
			leader.waits()
			v2 := l.hashOf(podTemplate("web:2"))
			steps := []int32{}
			heir.passesUntil("promoted", func(r *v1alpha1.Rollout) bool {
				if i := ptr.Deref(r.Status.CurrentStepIndex, -1); r.Status.CurrentPodHash == v2 && (len(steps) == 0 || steps[len(steps)-1] != i) {
					if len(steps) > 0 && i < steps[len(steps)-1] {
						t.Errorf("the step went back: %v, then %d", steps, i)
					}
					steps = append(steps, i)
				}
				return healthy(r) && r.Status.StableRS == v2
			})
			want := heir.handedOver()
			leader.wakes()
			if diff := cmp.Diff(want, heir.handedOver()); diff != "" {
				t.Errorf("the late write (-before +after):\n%s", diff)
			}
			if want.Attempt != 2 || want.Weight != 0 || want.Rejected != 0 {
				t.Errorf("it ended as %+v", want)
			}
		})
	}
}

// sourceOf is what gitsync says of the commit that declares an image.
func (l *lab) sourceOf(image string) string {
	l.Helper()
	text, err := json.Marshal(v1alpha1.Source{
		Hash: l.hashOf(podTemplate(image)), Revision: "main@sha1:" + strings.Repeat("a", 40), GitSync: l.namespace + "/shop",
	})
	if err != nil {
		l.Fatal(err)
	}
	return string(text)
}

// The same, and the other one has taken the version back before it had the write
// that is late. A weight that nobody has moved meanwhile goes up with it; that is
// seen, and ends with the next pass. Nothing else is undone, or done twice.
func TestHandoverToAnAbort(t *testing.T) {
	for name, place := range latePlaces {
		if place.kind == "status Rollout" && place.nth == 1 || place.kind == "create ReplicaSet" {
			continue // nothing of it is there to be taken back
		}
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			rollout := routedRollout(setWeight(40), pauseFor("1s"), setWeight(80), untilPromoted)
			rollout.Spec.Strategy.Canary.AbortScaleDownDelaySeconds = ptr.To[int32](3)
			sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.GitSyncSpec{
				Interval: metav1.Duration{Duration: time.Minute}, URL: "https://git.example.com/shop.git",
			}}
			l.create(sync, webService("web-stable"), webService("web-canary"), webRoute(), rollout)
			heir := labIn(t, l.namespace)
			l.byHand()
			heir.byHand()
			l.passesUntil("healthy", healthy)
			l.change(func(r *v1alpha1.Rollout) {
				r.Spec.Template = rawTemplate(podTemplate("web:2"))
				metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.SourceAnnotation, l.sourceOf("web:2"))
			})
			leader := l.freezeAt(place.kind, place.nth)
			leader.waits()
			v2 := l.hashOf(podTemplate("web:2"))
			heir.change(func(r *v1alpha1.Rollout) {
				metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.AbortAnnotation, fmt.Sprintf("%s/%d/stop", v2, ptr.Deref(r.Status.CurrentStepIndex, 0)))
			})
			aborted := func(r *v1alpha1.Rollout) bool {
				return r.Status.Phase == v1alpha1.RolloutPhaseDegraded && r.Status.Abort && heir.canaryWeight() == 0
			}
			before := heir.passesUntil("taken back", aborted)
			leader.wakes()
			var end handedOver
			heir.passesUntil("without pods of the aborted version", func(r *v1alpha1.Rollout) bool {
				end = heir.handedOver()
				if pods := end.Pods[v2]; pods == 0 && end.Selects[1] == v2 {
					t.Fatal("the canary Service names a version that has lost its pods")
				}
				return aborted(r) && end.Pods[v2] == 0
			})
			v1 := before.Status.StableRS
			if end.Selects[1] == v2 {
				t.Errorf("the canary Service selects the aborted version")
			}
			want := handedOver{
				Phase: v1alpha1.RolloutPhaseDegraded, Attempt: before.Status.Attempt, Stable: v1, Current: v2, Step: end.Step,
				Rejected: 1, Reverts: 1, Selects: [2]string{v1, end.Selects[1]}, Pods: map[string]int32{v1: 2, v2: 0},
			}
			if diff := cmp.Diff(want, end); diff != "" {
				t.Errorf("the end (-want +got):\n%s", diff)
			}
		})
	}
}

// oneOfMany takes part in the election of a leader, as a replica of the Deployment does.
func oneOfMany(namespace string) func(*ctrl.Options) {
	return func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "pushback-controller", namespace
		o.LeaderElectionReleaseOnCancel = true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(15*time.Second), ptr.To(10*time.Second), ptr.To(200*time.Millisecond)
	}
}

// Each leader ends in the middle of a step, and the next one goes on from there.
func TestLeadersThatEndInTheMiddleOfAStep(t *testing.T) {
	l := newLab(t)
	var leaders []*lab
	for range 4 {
		one := labIn(t, l.namespace, oneOfMany(l.namespace))
		one.watch()
		leaders = append(leaders, one)
	}
	end := func() { // whoever leads
		t.Helper()
		clustertest.Eventually(l, patience, func() error {
			for i, one := range leaders {
				select {
				case <-one.manager.Elected():
					one.stop()
					leaders = append(leaders[:i], leaders[i+1:]...)
					return nil
				default:
				}
			}
			return errors.New("nobody leads")
		})
	}
	l.routed(setWeight(40), untilPromoted, setWeight(80), pauseFor("2s"))
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	v2 := l.hashOf(podTemplate("web:2"))
	l.reach("started", patience, func(r *v1alpha1.Rollout) bool { return r.Status.CurrentPodHash == v2 })
	end()
	l.reach("paused", patience, atPause(1))
	end()
	l.change(func(r *v1alpha1.Rollout) {
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.PromoteAnnotation, v2+"/1/go")
	})
	l.reach("at the second pause", patience, func(r *v1alpha1.Rollout) bool { return ptr.Deref(r.Status.CurrentStepIndex, 0) >= 2 })
	end()
	done := l.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == v2 })
	if done.Status.Attempt != 2 || len(l.sets()) != 2 || l.canaryWeight() != 0 {
		t.Errorf("attempt %d, %d ReplicaSets, weight %d; want 2, 2 and 0", done.Status.Attempt, len(l.sets()), l.canaryWeight())
	}
}
