package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// syncs waits until the GitSync was reconciled once more, n times over.
func (s *tale) syncs(n int) {
	s.Helper()
	for i := range n {
		token := fmt.Sprintf("%s-%d", s.namespace, i)
		sync := s.gitSync()
		patch := client.MergeFrom(sync.DeepCopy())
		metav1.SetMetaDataAnnotation(&sync.ObjectMeta, "reconcile.fluxcd.io/requestedAt", token)
		s.must(shared.Client.Patch(s.ctx, sync, patch, client.FieldOwner("a-person")))
		s.awaitThat("sync "+token, func(context.Context) (bool, error) {
			return s.gitSync().Status.LastHandledReconcileAt == token, nil
		})
	}
}

func (s *tale) gitSync() *v1alpha1.GitSync {
	s.Helper()
	sync := &v1alpha1.GitSync{}
	s.must(shared.Client.Get(s.ctx, s.key(), sync))
	return sync
}

// writes are the controller's writes in this namespace so far, the answers to
// requestedAt left out.
func (s *tale) writes() []string {
	s.Helper()
	all, err := shared.Cluster.Writes()
	s.must(err)
	var out []string
	for _, w := range all {
		ours := strings.HasPrefix(w.User, "system:serviceaccount:pushback-system:")
		if ours && !w.DryRun() && w.Namespace == s.namespace && w.Resource != "gitsyncs" {
			out = append(out, fmt.Sprintf("%s %s %s (%d)", w.Time.Format(time.StampMilli), w.Verb, w.URI, w.Code))
		}
	}
	return out
}

// quiet waits and checks that nothing of ours was written meanwhile. The time is
// what is tested here: several polls of the repository fit into it.
func (s *tale) quiet(during time.Duration) {
	s.Helper()
	before := len(s.settled())
	<-time.After(during)
	if after := s.writes(); len(after) != before {
		s.Errorf("%d writes at rest:\n%s", len(after)-before, strings.Join(after[before:], "\n"))
	}
}

// settled waits until no write has come for seven seconds (delays that run on after
// an update are shorter), and returns them all.
func (s *tale) settled() []string {
	s.Helper()
	last, since := s.writes(), time.Now()
	s.awaitThat("the writes to end", func(context.Context) (bool, error) {
		if now := s.writes(); len(now) != len(last) {
			last, since = now, time.Now()
		}
		return time.Since(since) > 7*time.Second, nil
	})
	return last
}

// TestSyncsLeaveTheWeightAlone: 50 syncs during a canary at 25% leave the weight
// at 25 and make no write (laws 9 and 17, C35).
func TestSyncsLeaveTheWeightAlone(t *testing.T) {
	t.Parallel()
	s := begin(t, "steady")
	s.commit("Add web v1", app("v1", "1", waitingSteps))
	s.follow()
	s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "1", waitingSteps))
	s.await("the pause at 25%", pausedAt25)
	before := s.settled()
	s.syncs(50)
	if stable, canary := s.weights(); stable != 75 || canary != 25 {
		t.Errorf("weights %d/%d after 50 syncs, want 75/25", stable, canary)
	}
	if after := s.writes(); len(after) != len(before) {
		t.Errorf("50 syncs made %d writes:\n%s", len(after)-len(before), strings.Join(after[len(before):], "\n"))
	}
}

func pausedAt25(o *v1alpha1.Rollout) bool {
	weights := o.Status.Canary.Weights
	return o.Status.Phase == v1alpha1.RolloutPhasePaused && weights != nil && weights.Canary.Weight == 25
}

// TestAnUnrelatedCommitChangesNothing in the middle of a canary.
func TestAnUnrelatedCommitChangesNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, "unrelated")
	s.commit("Add web v1", app("v1", "1", waitingSteps))
	s.follow()
	s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "1", waitingSteps))
	s.await("the pause at 25%", pausedAt25)
	writes := s.settled()
	before := s.rollout()
	head := s.commit("Explain", map[string]string{"README.md": "the web service\n", "docs/why.md": "because\n"})
	s.awaitThat("the commit to be applied", func(context.Context) (bool, error) {
		return strings.HasSuffix(s.gitSync().Status.LastAppliedRevision, head), nil
	})
	if diff := cmp.Diff(before, s.rollout()); diff != "" {
		t.Errorf("an unrelated commit changed the Rollout:\n%s", diff)
	}
	if after := s.settled(); len(after) != len(writes) {
		t.Errorf("an unrelated commit made writes:\n%s", strings.Join(after[len(writes):], "\n"))
	}
}

// TestABadFileLeavesEverythingRunning and names the file and the line (law 15).
func TestABadFileLeavesEverythingRunning(t *testing.T) {
	t.Parallel()
	s := begin(t, "badfile")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	files := app("v2", "1", quickSteps)
	files["deploy/extra.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\ndata:\n  a: 1\n  a: 2\n"
	s.commit("Release web v2, and break a file", files)
	s.awaitThat("the GitSync to say what is wrong", func(context.Context) (bool, error) {
		for _, c := range s.gitSync().Status.Conditions {
			if c.Type == "Ready" && c.Status == metav1.ConditionFalse {
				return strings.Contains(c.Message, "deploy/extra.yaml") && strings.Contains(c.Message, "7"), nil
			}
		}
		return false, nil
	})
	s.quiet(2 * time.Second)
	now := s.rollout()
	if now.Generation != v1.Generation || now.Status.Phase != v1alpha1.RolloutPhaseHealthy {
		t.Errorf("half of a broken tree was applied: generation %d, phase %s", now.Generation, now.Status.Phase)
	}
	s.commit("Mend the file", map[string]string{"deploy/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: extra\ndata:\n  a: \"2\"\n"})
	s.healthyAs("v2")
}

// TestSomebodyPushesBetweenAbortAndRevert: both commits stay.
func TestSomebodyPushesBetweenAbortAndRevert(t *testing.T) {
	s := begin(t, "between")
	s.commit("Add web v1", app("v1", "1", waitingSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "0.5", waitingSteps))
	s.await("the pause at 25%", pausedAt25)
	// While no controller runs, a person aborts and another one pushes: the revert
	// has to be made on a head that was not there when v2 was rejected.
	s.must(shared.KillController(controller))
	rollout := s.rollout()
	patch := client.MergeFrom(rollout.DeepCopy())
	metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, v1alpha1.AbortAnnotation,
		fmt.Sprintf("%s/%d/abort-1", rollout.Status.CurrentPodHash, *rollout.Status.CurrentStepIndex))
	s.must(shared.Client.Patch(s.ctx, rollout, patch))
	text, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	s.commit("Say more about web", map[string]string{"deploy/web.yaml": "# edited meanwhile\n" + strings.Replace(text, "replicas: 4", "replicas: 5", 1)})
	s.must(shared.StartController(s.ctx, controller, soloFlags...))
	s.await("Healthy as v1 again, with 5 pods", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v1.Status.StableRS && o.Status.AvailableReplicas == 5
	})
	after, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	for _, want := range []string{"# edited meanwhile\n", "replicas: 5", "app:v1 # the version"} {
		if !strings.Contains(after, want) {
			t.Errorf("the file lacks %q:\n%s", want, after)
		}
	}
	s.oneRevert(4)
}
