package stories

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// rounds of each race: enough that a race which is there is met, few enough for CI.
const rounds = 3

// promoteThenRevert takes a tale through a promotion and a revert in each round,
// and checks the end of each.
func (s *tale) promoteThenRevert(n int) {
	s.Helper()
	for round := range n {
		good, bad := fmt.Sprintf("v%d", 2*round+2), fmt.Sprintf("v%d", 2*round+3)
		s.commit("Release web "+good, app(good, "1", quickSteps))
		stable := s.healthyAs(good)
		s.commit("Release web "+bad, app(bad, "0.5", quickSteps))
		back := s.await(bad+" to be reverted", func(o *v1alpha1.Rollout) bool {
			return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && len(o.Status.Rejected) == round+1 &&
				o.Status.Rejected[round].Revert == v1alpha1.RevertObserved && o.Status.CurrentPodHash == stable.Status.StableRS
		})
		if back.Status.StableRS != stable.Status.StableRS {
			s.Errorf("round %d: stable was %s and is %s", round, stable.Status.StableRS, back.Status.StableRS)
		}
		if got := back.Status.Attempt - stable.Status.Attempt; got != 2 {
			s.Errorf("round %d: %d attempts from the promotion to the return, want 2: the bad version and the return", round, got)
		}
	}
	s.oneOfEach(n)
}

// oneOfEach checks what n rounds leave behind.
func (s *tale) oneOfEach(n int) {
	s.Helper()
	if count, err := s.repo.Commits(s.ctx); err != nil || count != 1+3*n {
		text, _ := s.repo.Log(s.ctx, "--oneline", "main")
		s.Errorf("%d commits (%v), want %d: one revert for each bad version\n%s", count, err, 1+3*n, text)
	}
	if got := len(s.reverts()); got != n {
		s.Errorf("%d Reverts, want %d", got, n)
	}
	perHash := map[string]int{}
	for _, run := range s.analysisRuns() {
		perHash[run.Labels[v1alpha1.TemplateHashLabel]]++
		if got := run.Status.MetricResults; len(got) != 1 || len(got[0].Measurements) == 0 || len(got[0].Measurements) > 2 {
			s.Errorf("AnalysisRun %s measured %+v, want 1 metric and at most its 2 measurements", run.Name, got)
		}
	}
	for hash, count := range perHash {
		if count != 1 {
			s.Errorf("%d AnalysisRuns of template %s, want 1: a step was repeated", count, hash)
		}
	}
	if len(perHash) != 2*n {
		s.Errorf("%d templates were analysed, want %d", len(perHash), 2*n)
	}
	s.awaitThat("weights 100/0", func(context.Context) (bool, error) {
		stable, canary := s.weights()
		return stable == 100 && canary == 0, nil
	})
}

// TestTwoControllersWithoutAnElection work on one Rollout at the same time: every
// write is bound to what was read, so nothing is done twice (laws 7, 12 and 17).
func TestTwoControllersWithoutAnElection(t *testing.T) {
	s := begin(t, "twocontrollers")
	s.must(shared.StartController(s.ctx, "second", soloFlags...))
	t.Cleanup(func() {
		if err := shared.KillController("second"); err != nil {
			t.Error(err)
		}
	})
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	s.healthyAs("v1")
	laws := s.watchLaws()
	s.promoteThenRevert(rounds)
	for _, weight := range laws.judged() {
		if !slices.Contains([]int32{0, 25, 50, 100}, weight) {
			t.Errorf("weight %d was seen, which no step asks for", weight)
		}
	}
}

// TestKillsAtRandomMoments end the controller without warning again and again.
func TestKillsAtRandomMoments(t *testing.T) {
	s := begin(t, "kills")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	s.healthyAs("v1")
	const kills = 16
	random := rand.New(rand.NewSource(1)) // the moments still differ: they count from a start that does
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for range kills {
			select {
			case <-stop:
				ended <- nil
				return
			case <-time.After(time.Duration(random.Intn(1500)) * time.Millisecond):
			}
			if err := shared.KillController(controller); err != nil {
				ended <- err
				return
			}
			if err := shared.StartController(context.WithoutCancel(s.ctx), controller, soloFlags...); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	laws := s.watchLaws()
	s.promoteThenRevert(rounds)
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	laws.judged()
}

// TestAPersonPushesAllTheTime while reverts are made: nothing of theirs is lost,
// the history stays linear, and the revert lands.
func TestAPersonPushesAllTheTime(t *testing.T) {
	t.Parallel()
	s := begin(t, "pushes")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	s.commit("Release web v2", app("v2", "0.5", quickSteps))
	var written []string
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			name := fmt.Sprintf("notes-%d", i)
			text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {n: \"%d\"}\n", name, i)
			// A push that is refused stays in the clone, and goes out with the next.
			_, _ = s.repo.Commit(s.ctx, "Note "+name, map[string][]byte{"deploy/" + name + ".yaml": []byte(text)})
			written = append(written, name)
		}
	}()
	s.await("v2 to be reverted under pushes", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v1.Status.StableRS && len(o.Status.Rejected) == 1
	})
	close(stop)
	<-ended
	s.commit("The last word", map[string]string{"README.md": "done\n"})
	for _, name := range written {
		if _, err := s.repo.Read(s.ctx, "deploy/"+name+".yaml"); err != nil {
			t.Errorf("the person's %s was lost: %v", name, err)
		}
	}
	merges, err := s.repo.Log(s.ctx, "--merges", "--oneline", "main")
	s.must(err)
	if merges != "" {
		t.Errorf("the history isn't linear:\n%s", merges)
	}
	reverts, err := s.repo.Log(s.ctx, "--oneline", "--grep", "^Revert ", "main")
	s.must(err)
	if strings.Count(reverts, "\n") != 1 {
		t.Errorf("want one revert commit, have:\n%s", reverts)
	}
	if stat, err := s.repo.Log(s.ctx, "--grep", "^Revert ", "--format=", "--name-only", "main"); err != nil || strings.TrimSpace(stat) != "deploy/web.yaml" {
		t.Errorf("the revert touches %q (%v), want deploy/web.yaml alone", stat, err)
	}
}

// second makes another application of the same YAML, without the template that both share.
func second(name, version, quality, steps string) string {
	docs := strings.Split(fmt.Sprintf(webYAML, version, quality, steps), "---\n")
	docs = slices.DeleteFunc(docs, func(doc string) bool { return strings.Contains(doc, "kind: AnalysisTemplate") })
	return strings.ReplaceAll(strings.Join(docs, "---\n"), "web", name)
}

// TestC11_TwoAbortsInOneSecond: two Rollouts of one file, two commits, both there.
func TestC11_TwoAbortsInOneSecond(t *testing.T) {
	t.Parallel()
	s := begin(t, "c11")
	both := func(version string) map[string]string {
		files := app(version, "1", waitingSteps)
		files["deploy/web.yaml"] += "---\n" + second("api", version, "1", waitingSteps)
		return files
	}
	s.commit("Add web and api v1", both("v1"))
	s.follow()
	s.healthyAs("v1")
	names := []string{"web", "api"}
	get := func(name string) *v1alpha1.Rollout {
		rollout := &v1alpha1.Rollout{}
		s.must(shared.Client.Get(s.ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, rollout))
		return rollout
	}
	s.awaitThat("api to be Healthy", func(context.Context) (bool, error) {
		return get("api").Status.Phase == v1alpha1.RolloutPhaseHealthy, nil
	})
	before, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	s.commit("Release both as v2", both("v2"))
	for _, name := range names {
		s.awaitThat(name+" to pause at 25%", func(context.Context) (bool, error) { return pausedAt25(get(name)), nil })
	}
	for _, name := range names {
		rollout := get(name)
		patch := client.MergeFrom(rollout.DeepCopy())
		metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, v1alpha1.AbortAnnotation,
			fmt.Sprintf("%s/%d/abort", rollout.Status.CurrentPodHash, *rollout.Status.CurrentStepIndex))
		s.must(shared.Client.Patch(s.ctx, rollout, patch))
	}
	for _, name := range names {
		s.awaitThat(name+" to be reverted", func(context.Context) (bool, error) {
			o := get(name)
			return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && len(o.Status.Rejected) == 1 && o.Status.Rejected[0].Revert == v1alpha1.RevertObserved, nil
		})
	}
	if after, err := s.repo.Read(s.ctx, "deploy/web.yaml"); err != nil || after != before {
		t.Errorf("the file differs from that of v1 (%v):\n%s", err, after)
	}
	if count, err := s.repo.Commits(s.ctx); err != nil || count != 4 {
		text, _ := s.repo.Log(s.ctx, "--oneline", "main")
		t.Errorf("%d commits (%v), want 4: one revert each\n%s", count, err, text)
	}
}
