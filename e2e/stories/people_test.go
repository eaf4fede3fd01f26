package stories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// pausedCanary is a tale at 25% of v2, waiting for a person, with v1 stable.
func pausedCanary(t *testing.T, name, quality string) (s *tale, v1, v2 *v1alpha1.Rollout) {
	t.Helper()
	s = begin(t, name)
	s.commit("Add web v1", app("v1", "1", waitingSteps))
	s.follow()
	v1 = s.healthyAs("v1")
	s.commit("Release web v2", app("v2", quality, waitingSteps))
	v2 = s.await("the pause at 25%", pausedAt25)
	return s, v1, v2
}

// say sends a verb, as the CLI does.
func (s *tale) say(annotation, token string) {
	s.Helper()
	rollout := s.rollout()
	patch := client.MergeFrom(rollout.DeepCopy())
	metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, annotation,
		fmt.Sprintf("%s/%d/%s", rollout.Status.CurrentPodHash, *rollout.Status.CurrentStepIndex, token))
	s.must(shared.Client.Patch(s.ctx, rollout, patch))
}

// weightsBecome waits for weights.
func (s *tale) weightsBecome(stable, canary int32) {
	s.Helper()
	s.awaitThat(fmt.Sprintf("weights %d/%d", stable, canary), func(context.Context) (bool, error) {
		a, b := s.weights()
		return a == stable && b == canary, nil
	})
}

func (s *tale) delete(object client.Object, name string, options ...client.DeleteOption) {
	s.Helper()
	object.SetNamespace(s.namespace)
	object.SetName(name)
	s.must(shared.Client.Delete(s.ctx, object, options...))
}

func TestWeightsEditedByHandAreSetRight(t *testing.T) {
	t.Parallel()
	s, _, _ := pausedCanary(t, "handweights", "1")
	for _, wrong := range [][2]int32{{0, 100}, {100, 0}, {10, 90}, {0, 0}} {
		route := &gatewayv1.HTTPRoute{}
		s.must(shared.Client.Get(s.ctx, s.key(), route))
		patch := client.MergeFrom(route.DeepCopy())
		route.Spec.Rules[0].BackendRefs[0].Weight, route.Spec.Rules[0].BackendRefs[1].Weight = &wrong[0], &wrong[1]
		s.must(shared.Client.Patch(s.ctx, route, patch, client.FieldOwner("a-person")))
		s.weightsBecome(75, 25)
	}
	s.say(v1alpha1.PromoteAnnotation, "go")
	s.healthyAs("v2")
}

func TestADeletedCanaryReplicaSetIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, v1, v2 := pausedCanary(t, "nocanary", "1")
	s.delete(&appsv1.ReplicaSet{}, "web-"+v2.Status.CurrentPodHash)
	s.awaitThat("the canary to be back", func(ctx context.Context) (bool, error) {
		set := &appsv1.ReplicaSet{}
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "web-" + v2.Status.CurrentPodHash}, set)
		return err == nil && set.DeletionTimestamp == nil && set.Status.AvailableReplicas >= 1, client.IgnoreNotFound(err)
	})
	if now := s.rollout(); now.Status.Attempt != v2.Status.Attempt || now.Status.StableRS != v1.Status.StableRS {
		t.Errorf("attempt %d and stable %s, want %d and %s", now.Status.Attempt, now.Status.StableRS, v2.Status.Attempt, v1.Status.StableRS)
	}
	s.say(v1alpha1.PromoteAnnotation, "go")
	s.healthyAs("v2")
}

func TestADeletedStableReplicaSet(t *testing.T) {
	t.Parallel()
	s, v1, _ := pausedCanary(t, "nostable", "1")
	s.delete(&appsv1.ReplicaSet{}, "web-"+v1.Status.StableRS)
	s.await("Degraded, with the way out", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseDegraded && strings.Contains(o.Status.Message, v1.Status.StableRS)
	})
	s.settled()
	s.calm()
	s.say(v1alpha1.PromoteFullAnnotation, "go")
	v2 := s.healthyAs("v2")
	s.weightsBecome(100, 0)
	// At rest it is simply made again.
	s.delete(&appsv1.ReplicaSet{}, "web-"+v2.Status.StableRS)
	s.awaitThat("stable to be back", func(ctx context.Context) (bool, error) {
		set := &appsv1.ReplicaSet{}
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "web-" + v2.Status.StableRS}, set)
		return err == nil && set.Status.AvailableReplicas == 4, client.IgnoreNotFound(err)
	})
	if again := s.healthyAs("v2"); again.Status.Attempt != v2.Status.Attempt {
		t.Errorf("attempt %d after %d: the stable version was rolled out once more", again.Status.Attempt, v2.Status.Attempt)
	}
}

// TestALiveTemplateThatIsEdited goes back to what Git declares; with drift
// correction off the condition TemplateModified says so.
func TestALiveTemplateThatIsEdited(t *testing.T) {
	t.Parallel()
	s := begin(t, "edited")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	edit := func(rollout *v1alpha1.Rollout) {
		patch := client.MergeFrom(rollout.DeepCopy())
		rollout.Spec.Template = &runtime.RawExtension{Raw: []byte(strings.Replace(string(rollout.Spec.Template.Raw), "app:v1", "app:edited", 1))}
		s.must(shared.Client.Patch(s.ctx, rollout, patch, client.FieldOwner("a-person")))
	}
	edit(s.rollout())
	s.await("Git's template again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Generation > v1.Generation+1 && o.Status.ObservedGeneration == o.Generation &&
			o.Status.CurrentPodHash == v1.Status.StableRS && o.Status.StableRS == v1.Status.StableRS
	})
	s.suspend(s.gitSync(), true)
	<-time.After(2 * time.Second) // an attempt that was under way
	edit(s.rollout())
	s.await("TemplateModified", func(o *v1alpha1.Rollout) bool { return condition(o, v1alpha1.TemplateModifiedCondition) == "True" })
	if count, err := s.repo.Commits(s.ctx); err != nil || count != 1 {
		t.Errorf("%d commits (%v): an edit of the cluster was pushed to Git", count, err)
	}
}

func TestAScaledRolloutKeepsItsStep(t *testing.T) {
	t.Parallel()
	s, v1, v2 := pausedCanary(t, "scaled", "1")
	s.suspend(s.gitSync(), true)
	<-time.After(2 * time.Second)
	rollout := s.rollout()
	patch := client.MergeFrom(rollout.DeepCopy())
	rollout.Spec.Replicas = ptr(int32(8))
	s.must(shared.Client.Patch(s.ctx, rollout, patch, client.FieldOwner("a-person")))
	s.awaitThat("8 pods of stable and 2 of the canary", func(context.Context) (bool, error) {
		return s.replicaSet(v1.Status.StableRS).Status.AvailableReplicas == 8 && s.replicaSet(v2.Status.CurrentPodHash).Status.AvailableReplicas == 2, nil
	})
	if now := s.rollout(); !pausedAt25(now) || now.Status.Attempt != v2.Status.Attempt {
		t.Errorf("phase %s, attempt %d: want the same pause of attempt %d", now.Status.Phase, now.Status.Attempt, v2.Status.Attempt)
	}
	// Git's word goes again when it follows once more.
	s.suspend(s.gitSync(), false)
	s.await("4 replicas", func(o *v1alpha1.Rollout) bool { return *o.Spec.Replicas == 4 && pausedAt25(o) })
}

func ptr[T any](value T) *T { return &value }

// TestARolloutThatIsDeletedAndMadeAgain, with and without its pods: no version is
// taken for a first one while pods of another serve (law 7).
func TestARolloutThatIsDeletedAndMadeAgain(t *testing.T) {
	for title, policy := range map[string]client.PropagationPolicy{
		"pods go": client.PropagationPolicy(metav1.DeletePropagationBackground), "pods stay": client.PropagationPolicy(metav1.DeletePropagationOrphan),
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s, v1, v2 := pausedCanary(t, "again-"+strings.ReplaceAll(title, " ", "-"), "1")
			stablePods := s.podUIDs(v1.Status.StableRS)
			orphans := title == "pods stay"
			laws := &watcher{}
			if orphans {
				laws = s.watchLaws()
			}
			s.delete(&v1alpha1.Rollout{}, "web", policy)
			again := s.await("the new Rollout to begin v2", func(o *v1alpha1.Rollout) bool {
				return o.UID != v2.UID && o.Status.CurrentPodHash == v2.Status.CurrentPodHash
			})
			if orphans {
				if again.Status.StableRS != v1.Status.StableRS {
					t.Errorf("stable is %q and was %q, whose pods serve", again.Status.StableRS, v1.Status.StableRS)
				}
				s.await("the pause at 25% once more", pausedAt25)
				if now := s.podUIDs(v1.Status.StableRS); !sameKeys(stablePods, now) {
					t.Errorf("stable pods were touched: %v, then %v", stablePods, now)
				}
			}
			s.await("v2 to be promoted or to ask", func(o *v1alpha1.Rollout) bool {
				return o.UID != v2.UID && (pausedAt25(o) || o.Status.Phase == v1alpha1.RolloutPhaseHealthy)
			})
			if pausedAt25(s.rollout()) {
				s.say(v1alpha1.PromoteAnnotation, "go")
			}
			s.healthyAs("v2")
			s.weightsBecome(100, 0)
			if orphans {
				laws.judged()
			}
		})
	}
}

// TestAStatusThatIsLost is derived again: a Rollout restored from a backup.
func TestAStatusThatIsLost(t *testing.T) {
	for _, when := range []string{"rest", "canary"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "lost-"+when)
			s.commit("Add web v1", app("v1", "1", waitingSteps))
			s.follow()
			v1 := s.healthyAs("v1")
			if when == "canary" {
				s.commit("Release web v2", app("v2", "1", waitingSteps))
				s.await("the pause at 25%", pausedAt25)
			}
			pods := s.podUIDs(v1.Status.StableRS)
			laws := s.watchLaws()
			for { // whoever writes at the same time
				rollout := s.rollout()
				rollout.Status = v1alpha1.RolloutStatus{}
				err := shared.Client.Status().Update(s.ctx, rollout)
				if err == nil {
					break
				}
				if !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
			}
			s.await("v1 as stable", func(o *v1alpha1.Rollout) bool { return o.Status.StableRS == v1.Status.StableRS })
			if when == "canary" {
				s.await("the pause at 25% once more", pausedAt25)
			} else {
				s.healthyAs("v1")
			}
			if now := s.podUIDs(v1.Status.StableRS); !sameKeys(pods, now) {
				t.Errorf("stable pods were touched: %v, then %v", pods, now)
			}
			laws.judged()
		})
	}
}

func TestADeletedAnalysisRunIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, "norun")
	slow := func(version string) map[string]string {
		files := app(version, "1", quickSteps)
		files["deploy/web.yaml"] = strings.Replace(files["deploy/web.yaml"], "count: 2", "count: 6", 1)
		return files
	}
	s.commit("Add web v1", slow("v1"))
	s.follow()
	s.healthyAs("v1")
	s.commit("Release web v2", slow("v2"))
	s.awaitThat("a measurement", func(context.Context) (bool, error) {
		runs := s.analysisRuns()
		return len(runs) == 1 && len(runs[0].Status.MetricResults) > 0, nil
	})
	old := s.analysisRuns()[0]
	s.delete(&v1alpha1.AnalysisRun{}, old.Name)
	s.healthyAs("v2")
	runs := s.analysisRuns()
	if len(runs) != 1 || runs[0].UID == old.UID || runs[0].Status.Phase != v1alpha1.AnalysisPhaseSuccessful || runs[0].Status.MetricResults[0].Count != 6 {
		t.Errorf("want one new AnalysisRun that measured 6 times, have %+v", runs)
	}
}

// TestADeletedRevertIsMadeAgain as long as it was not worked off: Git must not go
// on claiming what the cluster rejected.
func TestADeletedRevertIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, v1, _ := pausedCanary(t, "norevert", "1")
	hook := filepath.Join(s.repo.Bare, "hooks", "pre-receive")
	s.must(os.WriteFile(hook, []byte("#!/bin/sh\necho 'closed for the night' >&2\nexit 1\n"), 0o755))
	s.say(v1alpha1.AbortAnnotation, "stop")
	blocked := s.await("the revert to be blocked", func(o *v1alpha1.Rollout) bool {
		return len(o.Status.Rejected) == 1 && o.Status.Rejected[0].Revert == v1alpha1.RevertBlocked
	})
	if condition(blocked, "Stalled") != "True" || !strings.Contains(s.reverts()[0].Status.Message, "closed for the night") {
		t.Errorf("want Stalled with the server's words, have %q and %q", blocked.Status.Message, s.reverts()[0].Status.Message)
	}
	s.weightsBecome(100, 0)
	s.settled()
	s.calm()
	s.must(os.Remove(hook))
	s.delete(&v1alpha1.Revert{}, s.reverts()[0].Name)
	s.await("Healthy as v1 again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v1.Status.StableRS
	})
	s.oneRevert(3)
}

// TestADeletedServiceComesBack: Git declares it, and the router its selector.
func TestADeletedServiceComesBack(t *testing.T) {
	t.Parallel()
	s, v1, v2 := pausedCanary(t, "noservice", "1")
	for _, name := range []string{"web-stable", "web-canary"} {
		s.delete(&corev1.Service{}, name)
	}
	s.delete(&gatewayv1.HTTPRoute{}, "web")
	s.awaitThat("the Services with their hashes", func(ctx context.Context) (bool, error) {
		now, err := (&watcher{s: s}).traffic(ctx)
		return err == nil && now == traffic{weight: 25, stable: v1.Status.StableRS, canary: v2.Status.CurrentPodHash}, nil
	})
	if now := s.rollout(); now.Status.Attempt != v2.Status.Attempt {
		t.Errorf("attempt %d, want %d", now.Status.Attempt, v2.Status.Attempt)
	}
	s.say(v1alpha1.PromoteAnnotation, "go")
	s.healthyAs("v2")
}
