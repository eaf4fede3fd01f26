package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
	"github.com/pushback-dev/pushback/routers"
)

// world is a simulated cluster under random events, with what the test knows of it.
type world struct {
	*plansim.Cluster
	commits int
	tokens  int
	faults  bool
}

// faults that a world may have; each property says which it can stand.
type trouble struct {
	crashes, stale, brokenPods, badRuns, persons, lostStatus, router, handEdits, git, races bool
}

var everything = trouble{
	crashes: true, stale: true, brokenPods: true, badRuns: true, persons: true, lostStatus: true, router: true, handEdits: true,
	git: true, races: true,
}

func drawStrategy(t *rapid.T, routed bool) v1alpha1.CanaryStrategy {
	var s v1alpha1.CanaryStrategy
	n := rapid.IntRange(0, 5).Draw(t, "steps")
	whole := int32(100)
	if routed {
		s.TrafficRouting = drawRouting(t)
		whole = routers.Whole(s.TrafficRouting)
	}
	for range n {
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0, 1:
			s.Steps = append(s.Steps, setWeight(rapid.SampledFrom([]int32{0, 1, 5, 20, 33, 50, 75, 99, 100}).Draw(t, "weight")*whole/100))
		case 2:
			s.Steps = append(s.Steps, pause(rapid.IntRange(1, 20).Draw(t, "pause")))
		case 3:
			s.Steps = append(s.Steps, analyse())
		case 4:
			s.Steps = append(s.Steps, setWeight(rapid.Int32Range(0, whole).Draw(t, "weight")), pause(3))
		case 5:
			if routed {
				s.Steps = append(s.Steps, drawRoute(t))
			}
		case 6:
			if routed {
				s.Steps = append(s.Steps, drawScale(t, whole))
			}
		case 7:
			if step := compare(); routed && rapid.Bool().Draw(t, "weighted") {
				s.Steps = append(s.Steps, setWeight(rapid.Int32Range(0, whole*8/10).Draw(t, "weight")), weighted(step, max(whole/20, 1)))
			} else {
				s.Steps = append(s.Steps, step)
			}
		}
	}
	if rapid.Bool().Draw(t, "background") {
		s.Analysis = background(rapid.Int32Range(0, 3).Draw(t, "startingStep"))
	}
	s.ReplicaProgressThreshold = rapid.SampledFrom([]*v1alpha1.ReplicaProgressThreshold{
		nil, nil, {Type: v1alpha1.ThresholdPercent, Value: 70}, {Type: v1alpha1.ThresholdPods, Value: 2},
	}).Draw(t, "threshold")
	s.MaxSurge = ptr(intstr.FromInt32(rapid.Int32Range(0, 3).Draw(t, "maxSurge")))
	s.MaxUnavailable = ptr(intstr.FromInt32(rapid.Int32Range(0, 2).Draw(t, "maxUnavailable")))
	if routed {
		if rapid.Bool().Draw(t, "noBatches") {
			s.MaxSurge = nil
		}
		if least := rapid.SampledFrom([]int32{0, 0, 1, 3}).Draw(t, "minPods"); least > 0 {
			s.MinPodsPerReplicaSet = &least
		}
		s.AbortScaleDownDelaySeconds = ptr(rapid.SampledFrom([]int32{0, 1, 30}).Draw(t, "abortDelay"))
		if rapid.Bool().Draw(t, "limited") {
			s.ScaleDownDelayRevisionLimit = ptr(rapid.Int32Range(0, 2).Draw(t, "delayed"))
		}
		s.ScaleDownDelaySeconds = ptr(rapid.SampledFrom([]int32{0, 1, 30}).Draw(t, "scaleDownDelay"))
		if rapid.IntRange(0, 3).Draw(t, "pingPong") == 0 {
			s = plansim.WithPingPong(s)
		}
		if rapid.IntRange(0, 2).Draw(t, "dynamic") == 0 {
			s.DynamicStableScale, s.ScaleDownDelaySeconds = true, nil
		}
	}
	return s
}

// managedNames in the order of their precedence.
var managedNames = []string{"testers", "shadow"}

func drawRouting(t *rapid.T) *v1alpha1.RolloutTrafficRouting {
	out := gateway.DeepCopy()
	for _, name := range managedNames {
		out.ManagedRoutes = append(out.ManagedRoutes, v1alpha1.MangedRoutes{Name: name})
	}
	if most := rapid.SampledFrom([]int32{0, 0, 0, 10, 1000}).Draw(t, "maxTrafficWeight"); most > 0 {
		out.MaxTrafficWeight = &most
	}
	return out
}

// drawRoute is a step that adds, changes or removes a managed route.
func drawRoute(t *rapid.T) v1alpha1.CanaryStep {
	name, value := rapid.SampledFrom(managedNames).Draw(t, "name"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "match")
	if rapid.Bool().Draw(t, "mirror") {
		return mirrorRoute(name, value)
	}
	return headerRoute(name, value)
}

func drawScale(t *rapid.T, whole int32) v1alpha1.CanaryStep {
	switch rapid.IntRange(0, 2).Draw(t, "scale") {
	case 0:
		return scaleTo(rapid.Int32Range(0, 8).Draw(t, "pods"))
	case 1:
		return v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Weight: ptr(rapid.Int32Range(0, whole).Draw(t, "weight"))}}
	}
	return matchWeight
}

func drawWorld(t *rapid.T, may trouble, routed bool) *world {
	return furnish(t, may, plansim.New(start, drawStrategy(t, routed), rapid.Int32Range(0, 7).Draw(t, "replicas")))
}

// furnish draws all of a world but the strategy.
func furnish(t *rapid.T, may trouble, c *plansim.Cluster) *world {
	w := &world{Cluster: c, faults: true}
	c.Spec.ProgressDeadlineSeconds = ptr(rapid.SampledFrom([]int32{20, 60, 600}).Draw(t, "deadline"))
	c.Spec.ProgressDeadlineAbort = rapid.Bool().Draw(t, "deadlineAbort")
	if rapid.IntRange(0, 3).Draw(t, "supersede") == 0 {
		c.Spec.Supersede = v1alpha1.SupersedeWait
	}
	if revisions := rapid.Int32Range(0, 3).Draw(t, "window"); revisions > 0 {
		c.Spec.RollbackWindow = &v1alpha1.RollbackWindowSpec{Revisions: revisions}
	}
	c.Spec.RevisionHistoryLimit = ptr(rapid.Int32Range(0, 2).Draw(t, "history"))
	c.DataPlaneDelay = time.Duration(rapid.IntRange(0, 4).Draw(t, "dataPlaneDelay")) * time.Second
	c.Verifies = rapid.Bool().Draw(t, "verifies")
	c.Endpoints = rapid.Bool().Draw(t, "endpoints")
	c.RevertAfter = time.Duration(rapid.IntRange(0, 10).Draw(t, "revertAfter")) * time.Second
	for i := range versions {
		c.Behaviours[version(i)] = plansim.Behaviour{
			ReadyAfter: time.Duration(rapid.IntRange(0, 8).Draw(t, "readyAfter")) * time.Second,
			Never:      may.brokenPods && i > 0 && rapid.IntRange(0, 3).Draw(t, "never") == 0,
		}
	}
	outcomes := map[string]plansim.Script{}
	c.Verdict = func(run plan.Run) plansim.Script {
		s, known := outcomes[run.Name]
		if !known {
			s = plansim.Script{After: time.Duration(rapid.IntRange(0, 15).Draw(t, "runAfter")) * time.Second, Phase: v1alpha1.AnalysisPhaseSuccessful}
			if may.badRuns && w.faults {
				s.Phase = rapid.SampledFrom([]v1alpha1.AnalysisPhase{
					v1alpha1.AnalysisPhaseSuccessful, v1alpha1.AnalysisPhaseSuccessful, v1alpha1.AnalysisPhaseSuccessful,
					v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseError, v1alpha1.AnalysisPhaseInconclusive,
				}).Draw(t, "verdict")
			}
			outcomes[run.Name] = s
		}
		return s
	}
	c.Answers = func(plan.Run) bool { return !w.faults || rapid.IntRange(0, 3).Draw(t, "answers") == 0 }
	if may.git {
		c.SyncAfter = time.Duration(rapid.IntRange(0, 6).Draw(t, "syncAfter")) * time.Second
		c.PushAfter = time.Duration(rapid.IntRange(0, 4).Draw(t, "pushAfter")) * time.Second
	}
	if may.races {
		c.Between = func(string) { w.race(t, may) }
	}
	if may.crashes {
		c.Crash = func(string) bool { return w.faults && rapid.IntRange(0, 9).Draw(t, "crash") == 0 }
	}
	return w
}

const versions = 4

func version(i int) string { return fmt.Sprintf("v%d", i+1) }

// live lets time pass with passes and events at random.
func (w *world) live(t *rapid.T, may trouble, rounds int) {
	w.commits++
	w.Commit("v1", "main@sha1:0000001", "The first commit")
	for range rounds {
		switch rapid.IntRange(0, 11).Draw(t, "happens") {
		case 0, 1:
			w.event(t, may)
		case 2: // all at once, for one pass to sort out
			for range rapid.IntRange(2, 4).Draw(t, "together") {
				w.event(t, may)
			}
		}
		if may.stale {
			for _, kind := range []string{"sets", "route", "services", "runs", "reverts"} {
				w.Lag[kind] = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "lag")
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "passes") {
			w.Pass()
		}
		w.Tick(rapid.IntRange(0, 4).Draw(t, "seconds"))
		w.verify(t)
	}
}

func (w *world) verify(t *rapid.T) {
	if len(w.Violations) > 0 {
		t.Fatalf("broke %v\n%s", w.Violations, transcript(w.Cluster))
	}
}

// calm ends all trouble; what follows must come to rest by itself.
func (w *world) calm() {
	w.faults = false
	w.Lag = map[string]int{}
	w.RefuseWeights, w.RouterErr = false, ""
	w.SyncFails, w.RefusePushes = false, false
	w.Edit("ends the pause", func(s *v1alpha1.RolloutSpec) { s.Paused = false })
	for i := range versions {
		b := w.Behaviours[version(i)]
		b.Never = false
		w.Behaviours[version(i)] = b
		w.HealPods(version(i))
	}
}

// TestLaws drives a Rollout through random events, stale reads and crashes, and
// checks the laws after every effect (see plansim).
func TestLaws(t *testing.T) {
	for _, tc := range []struct {
		name   string
		routed bool
		may    trouble
	}{
		{"routed/calm", true, trouble{badRuns: true, persons: true}},
		{"routed/crashes", true, trouble{crashes: true, badRuns: true, persons: true, router: true}},
		{"routed/stale", true, trouble{crashes: true, stale: true, badRuns: true, persons: true, router: true}},
		{"routed/races", true, trouble{badRuns: true, persons: true, git: true, races: true}},
		{"routed/everything", true, everything},
		{"basic/calm", false, trouble{badRuns: true, persons: true}},
		{"basic/crashes", false, trouble{crashes: true, badRuns: true, persons: true}},
		{"basic/stale", false, trouble{crashes: true, stale: true, badRuns: true, persons: true}},
		{"basic/races", false, trouble{badRuns: true, persons: true, git: true, races: true}},
		{"basic/everything", false, everything},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t, tc.may, tc.routed)
				w.live(t, tc.may, rapid.IntRange(5, 40).Draw(t, "rounds"))
			})
		})
	}
}

// TestComesToRest: once the trouble is over, everything ends Healthy on the live
// template, or Degraded for a reason that stands, and from then on nothing is
// written (law 9), whatever happened before.
func TestComesToRest(t *testing.T) {
	for _, routed := range []bool{true, false} {
		t.Run(fmt.Sprintf("routed=%v", routed), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawWorld(t, everything, routed)
				w.live(t, everything, rapid.IntRange(5, 30).Draw(t, "rounds"))
				w.calm()
				w.settle(t)
				w.mustBeAtRest(t)
			})
		})
	}
}

// settle passes only when the plan or a watch asks for it, so that a wake-up
// that was forgotten shows. A person answers what only a person can.
func (w *world) settle(t *rapid.T) {
	for i := range 40 {
		w.Run(60, nil)
		w.verify(t)
		asks := func(reasons ...v1alpha1.PauseReason) bool {
			return slices.ContainsFunc(w.Status.PauseConditions, func(p v1alpha1.PauseCondition) bool { return slices.Contains(reasons, p.Reason) })
		}
		switch {
		case asks(v1alpha1.PauseReasonUser, v1alpha1.PauseReasonInconclusiveAnalysis):
			w.Send(v1alpha1.ResumeAnnotation, fmt.Sprintf("settle%d", i))
			continue
		case w.Status.Phase == v1alpha1.RolloutPhasePaused:
			w.Send(v1alpha1.PromoteAnnotation, fmt.Sprintf("settle%d", i))
			continue
		case w.unmeasured():
			continue // its provider is back: it is no rest, however long its wait has become
		}
		before := w.Writes
		w.Run(120, nil)
		if w.Writes == before && i > 5 {
			return
		}
	}
}

func (w *world) mustBeAtRest(t *rapid.T) {
	writes := w.Writes
	for range 25 {
		p := w.Pass()
		if p.Split != nil || len(p.Services)+len(p.ReplicaSets)+len(p.Runs)+len(p.Prune)+len(p.PruneRuns)+len(p.Terminate)+len(p.Probes)+len(p.Events) > 0 || p.Revert != nil {
			t.Fatalf("not at rest: %+v\n%s", p, transcript(w.Cluster))
		}
		w.Tick(6)
	}
	if w.Writes != writes {
		t.Fatalf("%d writes in steady state\n%s", w.Writes-writes, transcript(w.Cluster))
	}
	st := w.Status
	switch {
	case st.Phase == v1alpha1.RolloutPhaseHealthy && st.StableRS == w.Template.Hash && st.CurrentPodHash == st.StableRS:
		w.mustServe(t, st.StableRS)
	case w.unmeasured():
		t.Fatalf("the provider is back, and %s was not started again: %s\n%s", w.Template.Hash, st.Message, transcript(w.Cluster))
	case st.Phase == v1alpha1.RolloutPhaseDegraded && (st.Abort && st.CurrentPodHash == w.Template.Hash || rejected(st, w.Template.Hash)):
		if st.StableRS != "" {
			w.mustServe(t, st.StableRS)
		}
	default:
		t.Fatalf("came to rest as %s (%s), stable %s, current %s, template %s\n%s", st.Phase, st.Message, st.StableRS, st.CurrentPodHash, w.Template.Hash, transcript(w.Cluster))
	}
}

// unmeasured says that the live template was taken back, for no fault of its own.
func (w *world) unmeasured() bool {
	st := w.Status
	return st.Abort && st.AbortReason == v1alpha1.AbortError && st.CurrentPodHash == w.Template.Hash && !rejected(st, st.CurrentPodHash)
}

func rejected(st v1alpha1.RolloutStatus, hash string) bool {
	return slices.ContainsFunc(st.Rejected, func(r v1alpha1.RejectedVersion) bool { return r.Hash == hash && !r.Cleared })
}

func (w *world) mustServe(t *rapid.T, stable string) {
	exists := w.Exists(stable) || w.Replicas == 0
	if exists && w.AvailablePods(stable) != w.Replicas {
		t.Fatalf("%d of %d pods of stable %s\n%s", w.AvailablePods(stable), w.Replicas, stable, transcript(w.Cluster))
	}
	if w.Routed && w.Replicas > 0 && (w.Weight() != 0 || len(w.Routes()) > 0 || w.Selects("stable") != stable) {
		t.Fatalf("at rest the canary has %d%% and the stable Service selects %q\n%s", w.Weight(), w.Selects("stable"), transcript(w.Cluster))
	}
}
