package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// plainDeployment is what a team has before it has a Rollout: a Deployment, with the
// Services and the route.
func plainDeployment(version, quality string) map[string]string {
	around, rollout, _ := strings.Cut(webYAML, "apiVersion: pushback.dev/v1alpha1\nkind: Rollout\n")
	deployment, _, _ := strings.Cut(rollout, "  strategy:\n")
	text := strings.Replace(around+"apiVersion: apps/v1\nkind: Deployment\n"+deployment, "template:\n    metadata:", "template: # as it is declared\n    metadata:", 1)
	return map[string]string{"deploy/web.yaml": strings.Replace(fmt.Sprintf(text+"%[3]s", version, quality, ""), "  name: web\nspec:\n  replicas: 4", "  name: web-old\nspec:\n  replicas: 4", 1)}
}

// withRollout adds a Rollout that takes over from it.
func withRollout(files map[string]string) map[string]string {
	_, strategy, _ := strings.Cut(webYAML, "  strategy:\n")
	files["deploy/rollout.yaml"] = "apiVersion: pushback.dev/v1alpha1\nkind: Rollout\nmetadata:\n  name: web\nspec:\n  replicas: 4\n" +
		"  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web-old, scaleDown: progressively}\n  strategy:\n" + strings.Replace(strategy, "%[3]s", quickSteps, 1)
	return files
}

func (s *tale) deployment() *appsv1.Deployment {
	s.Helper()
	out := &appsv1.Deployment{}
	s.must(shared.Client.Get(s.ctx, types.NamespacedName{Namespace: s.namespace, Name: "web-old"}, out))
	return out
}

func (s *tale) awaitDeployment(size, available int32) {
	s.Helper()
	s.awaitThat(fmt.Sprintf("a Deployment of %d", size), func(context.Context) (bool, error) {
		d := s.deployment()
		return *d.Spec.Replicas == size && d.Status.AvailableReplicas == available, nil
	})
}

// healthyBeside waits for any other version than the given one.
func (s *tale) healthyBeside(other string) string {
	s.Helper()
	return s.await("another version than "+other+" to be Healthy", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.StableRS != other && o.Status.CurrentPodHash == o.Status.StableRS
	}).Status.StableRS
}

// C88, and the way of a team from a Deployment to a Rollout and back, with rights
// as they are installed: it takes over, a bad template is reverted in the
// Deployment's file, and the Deployment serves again when the Rollout goes.
func TestC88_ADeploymentIsTakenOverAndGivenBack(t *testing.T) {
	t.Parallel()
	s := begin(t, "workload")
	s.commit("Add web v1", plainDeployment("v1", "1"))
	s.follow()
	s.awaitThat("the Deployment", func(ctx context.Context) (bool, error) {
		d := &appsv1.Deployment{}
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "web-old"}, d)
		return d.Status.AvailableReplicas == 4, client.IgnoreNotFound(err)
	})
	s.commit("Roll out web by steps", withRollout(plainDeployment("v1", "1")))
	v1 := s.healthyBeside("")
	s.awaitDeployment(0, 0)
	s.awaitSelector("web-stable", v1)

	s.commit("Release web v2", plainDeployment("v2", "1"))
	v2 := s.healthyBeside(v1)
	s.awaitDeployment(0, 0)
	before, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	stable := s.podUIDs(v2)

	s.commit("Release web v3", plainDeployment("v3", "0.5"))
	s.await("the abort", func(o *v1alpha1.Rollout) bool {
		return len(o.Status.Rejected) == 1 && strings.Contains(o.Status.Rejected[0].Message, "quality")
	})
	s.await("Healthy as v2 again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v2
	})
	after, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	if after != before {
		t.Errorf("the Deployment's file differs from v2's:\n%s", after)
	}
	if now := s.podUIDs(v2); !sameKeys(stable, now) {
		t.Errorf("stable pods were touched: %v, then %v", stable, now)
	}
	s.oneRevert(5)
	s.awaitDeployment(0, 0)

	_, err = s.repo.Commit(s.ctx, "Go back to a Deployment", map[string][]byte{"deploy/rollout.yaml": nil})
	s.must(err)
	s.awaitThat("the Rollout to go", func(ctx context.Context) (bool, error) {
		err := shared.Client.Get(ctx, s.key(), &v1alpha1.Rollout{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	s.awaitDeployment(4, 4)
	s.awaitSelector("web-stable", "")
	if _, held := s.deployment().Annotations[v1alpha1.WorkloadAnnotation]; held {
		t.Error("the Deployment is still held")
	}
}
