package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func at(second int) *metav1.Time {
	t := metav1.NewTime(start.Add(time.Duration(second) * time.Second))
	return &t
}

// world is one Rollout whose statuses are persisted one after the other.
type world struct {
	*testing.T
	recorder *Recorder
	rollout  *v1alpha1.Rollout
}

func newWorld(t *testing.T) *world {
	rollout := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	rollout.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{}
	return &world{T: t, recorder: New(), rollout: rollout}
}

// pass persists a status at a second; failed is the end of the measurement that condemned it.
func (w *world) pass(second int, failed time.Time, edit func(*v1alpha1.RolloutStatus)) {
	after := *w.rollout.Status.DeepCopy()
	edit(&after)
	w.recorder.Record(Pass{Rollout: w.rollout.DeepCopy(), After: after, Desired: 4, FailedAt: failed, Now: at(second).Time})
	w.rollout.Status = after
}

// restart makes a new controller, which sees what is persisted.
func (w *world) restart(second int) {
	w.recorder = New()
	w.pass(second, time.Time{}, func(*v1alpha1.RolloutStatus) {})
}

func weights(canary int32, since *metav1.Time) *v1alpha1.TrafficWeights {
	return &v1alpha1.TrafficWeights{Canary: v1alpha1.WeightDestination{Weight: canary}, Since: since}
}

// onItsWay is v2 at 20% over a stable v1.
func (w *world) onItsWay() {
	w.pass(0, time.Time{}, func(st *v1alpha1.RolloutStatus) {
		*st = v1alpha1.RolloutStatus{
			Phase: v1alpha1.RolloutPhaseProgressing, Attempt: 2, StartedAt: at(0), StableRS: "v1", CurrentPodHash: "v2",
			AvailableReplicas: 5, UpdatedReplicas: 1,
		}
		st.Canary.Weights = weights(20, at(0))
	})
}

func failed(st *v1alpha1.RolloutStatus) {
	st.Phase, st.Abort, st.AbortReason = v1alpha1.RolloutPhaseDegraded, true, v1alpha1.AbortFailed
	st.Canary.Weights = weights(0, nil)
}

// shown are the series whose names begin so, without the buckets of histograms.
func (w *world) shown(prefix string) []string {
	w.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(w.recorder); err != nil {
		w.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			w.Fatal(err)
		}
	}
	var out []string
	for _, line := range strings.Split(text.String(), "\n") {
		if strings.HasPrefix(line, prefix) && !strings.Contains(line, "_bucket{") {
			out = append(out, strings.ReplaceAll(line, `namespace="shop"`, "ns"))
		}
	}
	return out
}

func (w *world) wants(prefix string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.shown(prefix)); diff != "" {
		w.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestGaugesFollowTheStatus(t *testing.T) {
	w := newWorld(t)
	w.wants("pushback")
	w.onItsWay()
	w.wants("pushback_rollout_info", `pushback_rollout_info{name="web",ns,phase="Progressing",strategy="canary"} 1`)
	w.wants("pushback_rollout_weight", `pushback_rollout_weight{name="web",ns} 20`)
	w.wants("pushback_rollout_replicas",
		`pushback_rollout_replicas_available{name="web",ns} 5`,
		`pushback_rollout_replicas_desired{name="web",ns} 4`,
		`pushback_rollout_replicas_updated{name="web",ns} 1`)
	w.pass(5, start, failed)
	w.wants("pushback_rollout_info", `pushback_rollout_info{name="web",ns,phase="Degraded",strategy="canary"} 1`)
	w.wants("pushback_rollout_weight", `pushback_rollout_weight{name="web",ns} 0`)
	w.recorder.Forget(types.NamespacedName{Namespace: "shop", Name: "web"})
	w.wants("pushback")
}

func TestARolloutMadeAgainBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.onItsWay()
	w.pass(5, start, failed)
	w.rollout.UID, w.rollout.Status = "2", v1alpha1.RolloutStatus{}
	w.onItsWay()
	w.wants("pushback_rollout_duration_seconds")
	for _, line := range w.shown("pushback_rollout_aborts_total") {
		if !strings.HasSuffix(line, " 0") {
			t.Errorf("it has %s", line)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1alpha1.RolloutStatus)
		want outcome
	}{
		"promoted":       {func(st *v1alpha1.RolloutStatus) { st.StableRS = "v2" }, promoted},
		"aborted":        {failed, aborted},
		"superseded":     {func(st *v1alpha1.RolloutStatus) { st.Attempt, st.CurrentPodHash = 3, "v3" }, superseded},
		"rolled back":    {func(st *v1alpha1.RolloutStatus) { st.Attempt, st.CurrentPodHash = 3, "v1" }, rolledBack},
		"steps edited":   {func(st *v1alpha1.RolloutStatus) { st.Attempt = 3 }, ""},
		"at a next step": {func(st *v1alpha1.RolloutStatus) { st.AvailableReplicas = 4 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.onItsWay()
			w.pass(90, start, c.edit)
			var want []string
			if c.want != "" {
				labels := `{name="web",ns,outcome="` + string(c.want) + `"}`
				want = []string{"pushback_rollout_duration_seconds_sum" + labels + " 90", "pushback_rollout_duration_seconds_count" + labels + " 1"}
			}
			w.wants("pushback_rollout_duration_seconds", want...)
			w.restart(100)
			w.wants("pushback_rollout_duration_seconds")
		})
	}
}

// An abort is counted in the pass that makes it: not while it lasts, not by the
// controller that comes after, and not when a person joins in.
func TestAbortsAreCountedOnce(t *testing.T) {
	counts := func(failed, byPerson string) []string {
		line := func(reason, count string) string {
			return `pushback_rollout_aborts_total{name="web",ns,reason="` + reason + `"} ` + count
		}
		return []string{line("Aborted", byPerson), line("Deadline", "0"), line("Error", "0"), line("Failed", failed)}
	}
	w := newWorld(t)
	w.onItsWay()
	w.wants("pushback_rollout_aborts_total", counts("0", "0")...)
	w.pass(5, start, failed)
	w.pass(6, start, func(st *v1alpha1.RolloutStatus) { st.AbortReason = v1alpha1.AbortByPerson })
	w.wants("pushback_rollout_aborts_total", counts("1", "0")...)
	w.restart(7)
	w.wants("pushback_rollout_aborts_total", counts("0", "0")...)
	w.pass(8, start, func(st *v1alpha1.RolloutStatus) { st.Attempt, st.Abort = 3, false })
	w.pass(9, start, func(st *v1alpha1.RolloutStatus) { st.Abort = true })
	w.wants("pushback_rollout_aborts_total", counts("0", "1")...)
}

func TestTakeBackTime(t *testing.T) {
	const prefix = "pushback_rollout_take_back_seconds"
	once := []string{prefix + `_sum{name="web",ns} 3`, prefix + `_count{name="web",ns} 1`}
	seen := func(second int) func(*v1alpha1.RolloutStatus) {
		return func(st *v1alpha1.RolloutStatus) { st.Canary.Weights = weights(0, at(second)) }
	}
	t.Run("until the weight is seen, once", func(t *testing.T) {
		w := newWorld(t)
		w.onItsWay()
		w.pass(5, at(4).Time, failed)
		w.wants(prefix)
		w.pass(7, at(4).Time, seen(7))
		w.wants(prefix, once...)
		w.pass(60, at(4).Time, func(st *v1alpha1.RolloutStatus) { st.Canary.Weights = weights(0, nil) }) // somebody edits the route
		w.pass(61, at(4).Time, seen(61))
		w.wants(prefix, once...)
	})
	t.Run("no traffic to take back", func(t *testing.T) {
		w := newWorld(t)
		w.onItsWay()
		w.pass(1, time.Time{}, seen(1))
		w.pass(5, at(4).Time, func(st *v1alpha1.RolloutStatus) { failed(st); seen(1)(st) })
		w.wants(prefix)
	})
	t.Run("the next attempt has nothing of it", func(t *testing.T) {
		w := newWorld(t)
		w.onItsWay()
		w.pass(5, at(4).Time, failed)
		w.pass(6, time.Time{}, func(st *v1alpha1.RolloutStatus) { st.Attempt, st.Abort = 3, false })
		w.pass(9, time.Time{}, seen(9))
		w.wants(prefix)
	})
	t.Run("an abort for another reason", func(t *testing.T) {
		w := newWorld(t)
		w.onItsWay()
		w.pass(5, time.Time{}, func(st *v1alpha1.RolloutStatus) { failed(st); st.AbortReason = v1alpha1.AbortByPerson })
		w.pass(6, time.Time{}, seen(6))
		w.wants(prefix)
	})
}

func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	w := newWorld(t)
	w.onItsWay()
	w.pass(5, start, failed)
	problems, err := testutil.CollectAndLint(w.recorder)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestNoRecorderRecordsNothing(*testing.T) {
	var none *Recorder
	none.Record(Pass{Rollout: &v1alpha1.Rollout{}})
	none.Forget(types.NamespacedName{})
}

// Rollouts come and go for as long as a controller runs: what it knew of them goes too.
func TestC118_SeriesGoWithTheirRollout(t *testing.T) {
	w := newWorld(t)
	for i := range 1000 {
		w.rollout = &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprint(i))}}
		w.onItsWay()
		w.pass(5, at(4).Time, failed)
		w.pass(6, at(4).Time, func(st *v1alpha1.RolloutStatus) { st.Canary.Weights = weights(0, at(6)) })
		if i == 0 {
			if kinds := len(w.shown("pushback_rollout_")); kinds < 10 {
				t.Fatalf("only %d series are there, so this shows little", kinds)
			}
		}
		w.recorder.Forget(types.NamespacedName{Namespace: "shop", Name: w.rollout.Name})
	}
	w.wants("pushback_rollout_")
	if left := len(w.recorder.known); left > 0 {
		t.Errorf("%d Rollouts are remembered", left)
	}
}

// No label takes a value that grows with what happens: hashes, commits and messages are none.
func TestC118_LabelsAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		w.pass(i, at(i).Time, func(st *v1alpha1.RolloutStatus) {
			*st = v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutPhaseProgressing, Attempt: int64(i), StartedAt: at(i), StableRS: "v1", CurrentPodHash: fmt.Sprintf("hash-%d", i)}
			st.Message, st.Superseded = fmt.Sprintf("message %d", i), int64(i)
		})
		w.pass(i, at(i).Time, func(st *v1alpha1.RolloutStatus) { failed(st); st.AbortMessage = fmt.Sprintf("because of %d", i) })
	}
	before := len(w.shown("pushback_rollout_"))
	w.pass(60, at(60).Time, func(st *v1alpha1.RolloutStatus) { st.Abort, st.Attempt, st.CurrentPodHash = false, 99, "another" })
	w.pass(61, at(61).Time, func(st *v1alpha1.RolloutStatus) { failed(st); st.AbortMessage = "another" })
	if after := len(w.shown("pushback_rollout_")); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}
