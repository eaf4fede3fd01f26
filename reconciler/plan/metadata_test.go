package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestRolesOfVersions(t *testing.T) {
	labels := func(role string) v1alpha1.PodTemplateMetadata {
		return v1alpha1.PodTemplateMetadata{Labels: map[string]string{"role": role}}
	}
	stable, current, nothing := labels("stable"), labels("canary"), v1alpha1.PodTemplateMetadata{}
	strategies := map[string]v1alpha1.RolloutStrategy{
		"canary":     {Canary: &v1alpha1.CanaryStrategy{StableMetadata: &stable, CanaryMetadata: &current}},
		"blue-green": {BlueGreen: &v1alpha1.BlueGreenStrategy{ActiveMetadata: &stable, PreviewMetadata: &current}},
	}
	for name, c := range map[string]struct {
		status v1alpha1.RolloutStatus
		sets   []string
		want   map[string]v1alpha1.PodTemplateMetadata
	}{
		"at rest":     {v1alpha1.RolloutStatus{StableRS: "v1", CurrentPodHash: "v1"}, []string{"v1"}, map[string]v1alpha1.PodTemplateMetadata{"v1": stable}},
		"in progress": {v1alpha1.RolloutStatus{StableRS: "v1", CurrentPodHash: "v2"}, []string{"v1", "v2"}, map[string]v1alpha1.PodTemplateMetadata{"v1": stable, "v2": current}},
		"promoted":    {v1alpha1.RolloutStatus{StableRS: "v2", CurrentPodHash: "v2"}, []string{"v1", "v2"}, map[string]v1alpha1.PodTemplateMetadata{"v1": nothing, "v2": stable}},
		"superseded": {v1alpha1.RolloutStatus{StableRS: "v1", CurrentPodHash: "v3"}, []string{"v1", "v2", "v3"},
			map[string]v1alpha1.PodTemplateMetadata{"v1": stable, "v2": nothing, "v3": current}},
		"taken back":          {v1alpha1.RolloutStatus{StableRS: "v1", CurrentPodHash: "v2", Abort: true}, []string{"v1", "v2"}, map[string]v1alpha1.PodTemplateMetadata{"v1": stable, "v2": current}},
		"Git is back":         {v1alpha1.RolloutStatus{StableRS: "v1", CurrentPodHash: "v1"}, []string{"v1", "v2"}, map[string]v1alpha1.PodTemplateMetadata{"v1": stable, "v2": nothing}},
		"first":               {v1alpha1.RolloutStatus{CurrentPodHash: "v1"}, []string{"v1"}, map[string]v1alpha1.PodTemplateMetadata{"v1": stable}},
		"no stable, not new":  {v1alpha1.RolloutStatus{CurrentPodHash: "v2"}, []string{"v1", "v2"}, map[string]v1alpha1.PodTemplateMetadata{"v1": nothing, "v2": current}},
		"no pods that matter": {v1alpha1.RolloutStatus{}, []string{"v1"}, map[string]v1alpha1.PodTemplateMetadata{"v1": nothing}},
	} {
		for kind, strategy := range strategies {
			t.Run(name+"/"+kind, func(t *testing.T) {
				in := In{Template: Template{Hash: "v1"}, Spec: v1alpha1.RolloutSpec{Strategy: strategy}}
				if strategy.BlueGreen != nil {
					in = asCanary(in)
				}
				for _, hash := range c.sets {
					in.ReplicaSets = append(in.ReplicaSets, ReplicaSet{Hash: hash, Desired: 1, Replicas: 1})
				}
				got := map[string]v1alpha1.PodTemplateMetadata{}
				for _, want := range wantMetadata(in, c.status) {
					got[want.Hash] = want.Metadata
				}
				if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("metadata (-want +got):\n%s", diff)
				}
			})
		}
	}
	t.Run("a spec that can't be used", func(t *testing.T) {
		in := In{Template: Template{Hash: "v1"}, Spec: v1alpha1.RolloutSpec{Strategy: strategies["canary"]},
			ReplicaSets: []ReplicaSet{{Hash: "v1"}}, Invalid: []string{"it is"}}
		if got := wantMetadata(in, v1alpha1.RolloutStatus{StableRS: "v1"}); len(got) > 0 {
			t.Errorf("it changes %v", got)
		}
		if got := dress(in, v1alpha1.RolloutStatus{StableRS: "v1"}, []ReplicaSetWant{{Hash: "v1"}}); got[0].Metadata != nil {
			t.Errorf("what is written gets %v", got[0].Metadata)
		}
	})
}

func TestWhomAVersionAvoids(t *testing.T) {
	rule := &v1alpha1.AntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1alpha1.RequiredDuringSchedulingIgnoredDuringExecution{}}
	for name, c := range map[string]struct {
		strategy     v1alpha1.RolloutStrategy
		stable, hash string
		want         string
	}{
		"canary":                {v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{AntiAffinity: rule}}, "v1", "v2", "v1"},
		"preview":               {v1alpha1.RolloutStrategy{BlueGreen: &v1alpha1.BlueGreenStrategy{AntiAffinity: rule}}, "v1", "v2", "v1"},
		"stable avoids nobody":  {v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{AntiAffinity: rule}}, "v1", "v1", ""},
		"nor does the first":    {v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{AntiAffinity: rule}}, "", "v1", ""},
		"nor without the field": {v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{}}, "v1", "v2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := In{Template: Template{Hash: c.hash}, Spec: v1alpha1.RolloutSpec{Strategy: c.strategy}}
			if c.strategy.BlueGreen != nil {
				in = asCanary(in)
			}
			got := dress(in, v1alpha1.RolloutStatus{StableRS: c.stable, CurrentPodHash: c.hash}, []ReplicaSetWant{{Hash: c.hash}})
			if got[0].Avoid != c.want {
				t.Errorf("it avoids %q, want %q", got[0].Avoid, c.want)
			}
		})
	}
}
