package revertspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/revertspec"
)

func TestEffective(t *testing.T) {
	self := &v1alpha1.GitIdentity{Name: revertspec.DefaultName, Email: revertspec.DefaultEmail}
	ada := &v1alpha1.GitIdentity{Name: "Ada", Email: "ada@example.com"}
	budget := func(rollout, repository int32) *v1alpha1.RevertBudget {
		return &v1alpha1.RevertBudget{PerRollout: ptr.To(rollout), PerRepository: ptr.To(repository)}
	}
	tests := map[string]struct {
		gitSync, rollout *v1alpha1.RevertSpec
		want             v1alpha1.RevertSpec
	}{
		"defaults": {
			want: v1alpha1.RevertSpec{Mode: v1alpha1.RevertPush, On: revertspec.DefaultOn(), Author: self, Committer: self, Budget: budget(3, 10)},
		},
		"the Rollout wins, field by field": {
			gitSync: &v1alpha1.RevertSpec{Mode: v1alpha1.RevertNone, Author: ada, Owner: "east", Budget: &v1alpha1.RevertBudget{PerRollout: ptr.To[int32](1)}},
			rollout: &v1alpha1.RevertSpec{Mode: v1alpha1.RevertPush, On: []v1alpha1.AbortReason{v1alpha1.AbortFailed}, Budget: &v1alpha1.RevertBudget{PerRepository: ptr.To[int32](2)}},
			want:    v1alpha1.RevertSpec{Mode: v1alpha1.RevertPush, On: []v1alpha1.AbortReason{v1alpha1.AbortFailed}, Author: ada, Committer: ada, Owner: "east", Budget: budget(1, 2)},
		},
		"an empty list reverts nothing": {
			rollout: &v1alpha1.RevertSpec{On: []v1alpha1.AbortReason{}},
			want:    v1alpha1.RevertSpec{Mode: v1alpha1.RevertPush, On: []v1alpha1.AbortReason{}, Author: self, Committer: self, Budget: budget(3, 10)},
		},
		"a budget of 0 is a budget": {
			gitSync: &v1alpha1.RevertSpec{Budget: budget(0, 0)},
			want:    v1alpha1.RevertSpec{Mode: v1alpha1.RevertPush, On: revertspec.DefaultOn(), Author: self, Committer: self, Budget: budget(0, 0)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, revertspec.Effective(tc.gitSync, tc.rollout)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
