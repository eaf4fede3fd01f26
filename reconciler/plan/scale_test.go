package plan

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// midway is a version v2 in progress at a step, with a router and 10 replicas.
func midway(index int32, strategy v1alpha1.CanaryStrategy) (In, v1alpha1.RolloutStatus) {
	strategy.TrafficRouting = &v1alpha1.RolloutTrafficRouting{}
	in := In{
		Replicas: 10, Spec: v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{Canary: &strategy}},
		Routing: &Routing{Observed: routers.Observed{Uniform: true}},
	}
	return in, v1alpha1.RolloutStatus{StableRS: "v1", CurrentPodHash: "v2", CurrentStepIndex: &index}
}

func TestPodsFor(t *testing.T) {
	weight := func(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }
	scale := func(set v1alpha1.SetCanaryScale) v1alpha1.CanaryStep {
		return v1alpha1.CanaryStep{SetCanaryScale: &set}
	}
	n := func(v int32) *int32 { return &v }
	replicas := func(v int32) v1alpha1.CanaryStep { return scale(v1alpha1.SetCanaryScale{Replicas: &v}) }
	match := scale(v1alpha1.SetCanaryScale{MatchTrafficWeight: true})
	for name, tc := range map[string]struct {
		steps []v1alpha1.CanaryStep
		index int32
		floor *int32
		want  int32
		full  bool
	}{
		"the share, rounded up":               {steps: []v1alpha1.CanaryStep{weight(25)}, want: 3},
		"replicas":                            {steps: []v1alpha1.CanaryStep{replicas(4)}, want: 4},
		"it outlives a setWeight":             {steps: []v1alpha1.CanaryStep{replicas(4), weight(80)}, index: 1, want: 4},
		"until matchTrafficWeight":            {steps: []v1alpha1.CanaryStep{replicas(4), weight(80), match}, index: 2, want: 8},
		"a weight of its own":                 {steps: []v1alpha1.CanaryStep{scale(v1alpha1.SetCanaryScale{Weight: n(35)}), weight(10)}, index: 1, want: 4},
		"replicas beat weight":                {steps: []v1alpha1.CanaryStep{scale(v1alpha1.SetCanaryScale{Weight: n(35), Replicas: n(2)})}, want: 2},
		"more than spec.replicas":             {steps: []v1alpha1.CanaryStep{replicas(15)}, want: 15},
		"one that isn't reached":              {steps: []v1alpha1.CanaryStep{weight(10), replicas(4)}, want: 1},
		"not after the last step":             {steps: []v1alpha1.CanaryStep{replicas(4)}, index: 1, want: 10},
		"not when promoted in full":           {steps: []v1alpha1.CanaryStep{replicas(4), weight(30)}, index: 1, full: true, want: 3},
		"no traffic without a pod":            {steps: []v1alpha1.CanaryStep{replicas(0), weight(50)}, index: 1, want: 1},
		"none without traffic":                {steps: []v1alpha1.CanaryStep{replicas(0)}, want: 0},
		"minPodsPerReplicaSet":                {steps: []v1alpha1.CanaryStep{weight(5)}, floor: n(3), want: 3},
		"minPodsPerReplicaSet under it":       {steps: []v1alpha1.CanaryStep{weight(50)}, floor: n(3), want: 5},
		"minPodsPerReplicaSet without pods":   {steps: []v1alpha1.CanaryStep{weight(0)}, floor: n(3), want: 0},
		"minPodsPerReplicaSet, at most all":   {steps: []v1alpha1.CanaryStep{weight(5)}, floor: n(30), want: 10},
		"minPodsPerReplicaSet of a weight":    {steps: []v1alpha1.CanaryStep{scale(v1alpha1.SetCanaryScale{Weight: n(10)})}, floor: n(3), want: 3},
		"minPodsPerReplicaSet of a pod count": {steps: []v1alpha1.CanaryStep{replicas(1)}, floor: n(3), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			in, st := midway(tc.index, v1alpha1.CanaryStrategy{Steps: tc.steps, MinPodsPerReplicaSet: tc.floor})
			st.PromoteFull = tc.full
			if got := podsFor(in, st, 10, stepWeight(in, index(st))); got != tc.want {
				t.Errorf("%d pods, want %d", got, tc.want)
			}
		})
	}
}

func TestEnough(t *testing.T) {
	for name, tc := range map[string]struct {
		threshold  *v1alpha1.ReplicaProgressThreshold
		pods, want int32
	}{
		"none":                  {nil, 7, 7},
		"a share, rounded up":   {&v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ThresholdPercent, Value: 70}, 7, 5},
		"by its other name":     {&v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ThresholdPercentage, Value: 50}, 8, 4},
		"never nothing":         {&v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ThresholdPercent, Value: 1}, 1, 1},
		"a number":              {&v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ThresholdPods, Value: 3}, 7, 3},
		"a number, at most all": {&v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ThresholdPods, Value: 9}, 7, 7},
		"of nothing":            {&v1alpha1.ReplicaProgressThreshold{Type: v1alpha1.ThresholdPods, Value: 9}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := midway(0, v1alpha1.CanaryStrategy{ReplicaProgressThreshold: tc.threshold})
			if got := enough(in, tc.pods); got != tc.want {
				t.Errorf("%d of %d are enough, want %d", got, tc.pods, tc.want)
			}
		})
	}
}
