package plan

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestC104_NextBatch(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	text := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	for name, tc := range map[string]struct {
		surge                        *intstr.IntOrString
		replicas, desired, available int32
		want                         int32
	}{
		"not set":                          {nil, 100, 0, 0, math.MaxInt32},
		"the first":                        {text("10%"), 100, 0, 0, 10},
		"the next, when all are available": {text("10%"), 100, 10, 10, 20},
		"not while one is missing":         {text("10%"), 100, 20, 19, 20},
		"not while one was lost again":     {number(3), 10, 6, 2, 6},
		"pods that are to go don't count":  {number(3), 10, 6, 9, 9},
		"percentages round up":             {text("25%"), 10, 3, 3, 6},
		"a percentage without its sign":    {text("25"), 10, 3, 3, 6},
		"none at all is one":               {number(0), 10, 3, 3, 4},
		"a percentage of nothing is one":   {text("0%"), 10, 3, 3, 4},
		"a huge one doesn't overflow":      {number(math.MaxInt32), 10, 3, 3, math.MaxInt32},
	} {
		t.Run(name, func(t *testing.T) {
			in := In{Replicas: tc.replicas, Spec: v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{
				Canary: &v1alpha1.CanaryStrategy{MaxSurge: tc.surge},
			}}}
			rs := &ReplicaSet{Hash: "v2", Desired: tc.desired, Available: tc.available}
			if got := nextBatch(in, rs); got != tc.want {
				t.Errorf("%d pods, want %d", got, tc.want)
			}
		})
	}
	if got := nextBatch(In{Replicas: 8, Spec: v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{
		Canary: &v1alpha1.CanaryStrategy{MaxSurge: text("25%")}}}}, nil); got != 2 {
		t.Errorf("%d pods of a version that has no ReplicaSet yet, want 2", got)
	}
}
