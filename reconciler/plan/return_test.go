package plan

import (
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Age is the revision counter alone: all of these were made in the same second.
func TestInRollbackWindow(t *testing.T) {
	sets := func(revisions map[string]int64) []ReplicaSet {
		var out []ReplicaSet
		for hash, revision := range revisions {
			out = append(out, ReplicaSet{Hash: hash, Revision: revision})
		}
		return out
	}
	five := map[string]int64{"v1": 1, "v2": 2, "v3": 3, "v4": 4, "v5": 5}
	for name, tc := range map[string]struct {
		window   int32
		sets     map[string]int64
		template string
		want     bool
	}{
		"the one before":             {1, five, "v3", true},
		"one lies between":           {1, five, "v2", false},
		"one may lie between":        {2, five, "v2", true},
		"two lie between":            {2, five, "v1", false},
		"a newer one":                {9, five, "v5", false},
		"stable itself":              {9, five, "v4", false},
		"one that was never there":   {9, five, "v9", false},
		"what is gone doesn't count": {1, map[string]int64{"v1": 1, "v4": 4}, "v1", true},
		"without a revision":         {9, map[string]int64{"v1": 0, "v4": 4}, "v1", false},
		"a window of nothing":        {0, five, "v3", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := In{
				Template: Template{Hash: tc.template}, ReplicaSets: sets(tc.sets),
				Spec: v1alpha1.RolloutSpec{RollbackWindow: &v1alpha1.RollbackWindowSpec{Revisions: tc.window}},
			}
			if got := inRollbackWindow(in, v1alpha1.RolloutStatus{StableRS: "v4"}); got != tc.want {
				t.Errorf("in the window: %v, want %v", got, tc.want)
			}
		})
	}
}
