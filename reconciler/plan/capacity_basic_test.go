package plan

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// The counts of Argo Rollouts' own table, and those of the case.
func TestC68_SplitOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, weight, surge int32
		canary, stable          int32
	}{
		"one replica, no surge, a little":       {1, 10, 0, 0, 1},
		"one replica, no surge, half":           {1, 50, 0, 1, 0},
		"one replica, no surge, most":           {1, 90, 0, 1, 0},
		"one replica, surge, a little":          {1, 5, 1, 1, 1},
		"one replica, surge, most":              {1, 95, 1, 1, 1},
		"half of three rounds up":               {3, 50, 0, 2, 1},
		"a third of three":                      {3, 33, 1, 1, 2},
		"half of three with surge is exact":     {3, 50, 1, 2, 2},
		"half way between one and two of ten":   {10, 15, 0, 2, 8},
		"a surge pod comes nearer":              {10, 5, 1, 1, 10},
		"a tenth":                               {10, 10, 1, 1, 9},
		"a third of ten":                        {10, 33, 0, 3, 7},
		"nearly all leaves one":                 {10, 99, 0, 9, 1},
		"hardly any takes one":                  {10, 1, 0, 1, 9},
		"none":                                  {10, 0, 1, 0, 10},
		"all":                                   {10, 100, 1, 10, 0},
		"no replicas":                           {0, 50, 1, 0, 0},
		"two, hardly any":                       {2, 1, 0, 1, 1},
		"two, nearly all":                       {2, 99, 0, 1, 1},
		"five at 50 with surge splits six":      {5, 50, 1, 3, 3},
		"weights don't overflow large replicas": {30_000_000, 99, 0, 29_700_000, 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			canary, stable := split(tc.replicas, tc.weight, tc.surge)
			if canary != tc.canary || stable != tc.stable {
				t.Errorf("split(%d, %d, %d) = %d/%d, want %d/%d", tc.replicas, tc.weight, tc.surge, canary, stable, tc.canary, tc.stable)
			}
		})
	}
}

// TestSplitIsNearest compares with the definition: of all allowed splits none is
// nearer to the weight, and no side is forgotten.
func TestSplitIsNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.Int32Range(0, 200).Draw(t, "replicas")
		weight := rapid.Int32Range(0, 100).Draw(t, "weight")
		surge := rapid.Int32Range(0, 3).Draw(t, "surge")
		canary, stable := split(replicas, weight, surge)
		total := canary + stable
		if canary < 0 || stable < 0 || total < replicas || total > replicas+min(surge, 1) {
			t.Fatalf("split(%d, %d, %d) = %d/%d", replicas, weight, surge, canary, stable)
		}
		if replicas == 0 {
			return
		}
		alone := replicas == 1 && surge == 0
		if weight > 0 && weight < 100 && !alone && (canary == 0 || stable == 0) {
			t.Fatalf("split(%d, %d, %d) = %d/%d leaves a side without a pod", replicas, weight, surge, canary, stable)
		}
		for other := int32(0); other <= replicas; other++ {
			allowed := weight == 0 || weight == 100 || alone || other > 0 && other < replicas
			if allowed && off(other, replicas, weight)*int64(total) < off(canary, total, weight)*int64(replicas) {
				t.Fatalf("split(%d, %d, %d) = %d/%d, and %d/%d is nearer", replicas, weight, surge, canary, stable, other, replicas-other)
			}
		}
	})
}

func off(canary, total, weight int32) int64 {
	d := int64(canary)*100 - int64(weight)*int64(total)
	return max(d, -d)
}

// TestMovesKeepTheBounds: one move from any state keeps within replicas +
// maxSurge and never takes an available pod below replicas - maxUnavailable.
func TestMovesKeepTheBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, st := drawBasic(t)
		want := moveBasic(in, st, sortOut(in, st))
		pods, serving, before := int32(0), int32(0), int32(0)
		grew := false
		for _, rs := range in.ReplicaSets {
			next, moved := want[rs.Hash]
			if !moved {
				next = rs.Desired
			}
			grew = grew || next > rs.Desired
			pods += max(next, min(rs.Replicas, max(next, rs.Replicas)))
			serving += min(rs.Available, next)
			before += min(rs.Available, rs.Desired)
		}
		up, down := bounds(in)
		if grew && pods > in.Replicas+up {
			t.Fatalf("%d pods, and %d + %d are allowed: %v from %+v", pods, in.Replicas, up, want, in.ReplicaSets)
		}
		if serving < before && serving < in.Replicas-down {
			t.Fatalf("%d pods are left available, and %d - %d are needed: %v from %+v", serving, in.Replicas, down, want, in.ReplicaSets)
		}
	})
}

func drawBasic(t *rapid.T) (In, v1alpha1.RolloutStatus) {
	percent := func(name string) *intstr.IntOrString {
		v := intstr.FromString(fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, name)))
		return &v
	}
	weight := rapid.Int32Range(0, 100).Draw(t, "weight")
	in := In{Replicas: rapid.Int32Range(0, 20).Draw(t, "replicas"), Template: Template{Hash: "c"}}
	in.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{
		Steps: []v1alpha1.CanaryStep{{SetWeight: &weight}}, MaxSurge: percent("maxSurge"), MaxUnavailable: percent("maxUnavailable"),
	}
	for _, hash := range []string{"s", "c", "o"} {
		rs := ReplicaSet{Hash: hash, Desired: rapid.Int32Range(0, 25).Draw(t, "desired")}
		rs.Replicas = rapid.Int32Range(0, 25).Draw(t, "pods")
		rs.Available = rapid.Int32Range(0, rs.Replicas).Draw(t, "available")
		in.ReplicaSets = append(in.ReplicaSets, rs)
	}
	st := v1alpha1.RolloutStatus{StableRS: "s", CurrentPodHash: rapid.SampledFrom([]string{"c", "s"}).Draw(t, "current")}
	st.Abort = rapid.Bool().Draw(t, "abort")
	in.Spec.Paused = rapid.Bool().Draw(t, "paused")
	return in, st
}

func TestBoundsOfPods(t *testing.T) {
	text, number := intstr.FromString, intstr.FromInt32
	for name, tc := range map[string]struct {
		surge, unavailable *intstr.IntOrString
		replicas           int32
		up, down           int32
	}{
		"defaults":                         {nil, nil, 10, 3, 2},
		"surge rounds up":                  {pods(text("10%")), pods(number(0)), 3, 1, 0},
		"unavailable rounds down":          {pods(number(1)), pods(text("50%")), 3, 1, 1},
		"both nothing":                     {pods(number(0)), pods(text("10%")), 3, 0, 1},
		"a string without % is a percent":  {pods(text("25")), pods(number(0)), 8, 2, 0},
		"never more missing than there is": {pods(number(1)), pods(number(5)), 2, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := In{Replicas: tc.replicas}
			in.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{MaxSurge: tc.surge, MaxUnavailable: tc.unavailable}
			if up, down := bounds(in); up != tc.up || down != tc.down {
				t.Errorf("got +%d -%d, want +%d -%d", up, down, tc.up, tc.down)
			}
		})
	}
}

func pods(v intstr.IntOrString) *intstr.IntOrString { return &v }

func TestStepWeight(t *testing.T) {
	w := func(n int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &n} }
	wait := v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
	full := int32(1000)
	strategy := &v1alpha1.CanaryStrategy{Steps: []v1alpha1.CanaryStep{wait, w(20), wait, w(5), w(101)}}
	in := In{Spec: v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{Canary: strategy}}}
	for index, want := range map[int32]int32{0: 0, 1: 20, 2: 20, 3: 5, 4: 100, 5: 100, 9: 100} {
		if got := stepWeight(in, index); got != want {
			t.Errorf("at index %d: %d, want %d", index, got, want)
		}
	}
	strategy.TrafficRouting = &v1alpha1.RolloutTrafficRouting{MaxTrafficWeight: &full}
	for index, want := range map[int32]int32{3: 5, 4: 101, 5: 1000} {
		if got := stepWeight(in, index); got != want {
			t.Errorf("at index %d of 1000: %d, want %d", index, got, want)
		}
	}
	if got := stepWeight(In{}, 0); got != 100 {
		t.Errorf("without steps: %d, want 100", got)
	}
}
