// Package revertspec puts the revert settings of a GitSync and of a Rollout
// together, with their defaults, and executes the template of a commit's text.
//
// PURE: it imports the API types and nothing else of Pushback.
package revertspec

import (
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Defaults of the settings, as their documentation gives them.
const (
	DefaultPerRollout    int32 = 3
	DefaultPerRepository int32 = 10
	DefaultName                = "Pushback"
	DefaultEmail               = "pushback@noreply.pushback.dev"
)

// DefaultOn are the aborts that are reverted when nothing is said.
func DefaultOn() []v1alpha1.AbortReason {
	return []v1alpha1.AbortReason{v1alpha1.AbortFailed, v1alpha1.AbortDeadline, v1alpha1.AbortByPerson}
}

// Effective returns the settings that hold for a Rollout: each field of the
// Rollout's own that is set, else the GitSync's, else the default. Neither
// argument is changed; both may be nil.
func Effective(gitSync, rollout *v1alpha1.RevertSpec) v1alpha1.RevertSpec {
	out := v1alpha1.RevertSpec{}
	for _, layer := range []*v1alpha1.RevertSpec{gitSync, rollout} {
		if layer != nil {
			overlay(&out, layer.DeepCopy())
		}
	}
	if out.Mode == "" {
		out.Mode = v1alpha1.RevertPush
	}
	if out.On == nil {
		out.On = DefaultOn()
	}
	if out.Author == nil {
		out.Author = &v1alpha1.GitIdentity{Name: DefaultName, Email: DefaultEmail}
	}
	if out.Committer == nil {
		out.Committer = out.Author.DeepCopy()
	}
	if out.Budget == nil {
		out.Budget = &v1alpha1.RevertBudget{}
	}
	if out.Budget.PerRollout == nil {
		out.Budget.PerRollout = ptr.To(DefaultPerRollout)
	}
	if out.Budget.PerRepository == nil {
		out.Budget.PerRepository = ptr.To(DefaultPerRepository)
	}
	return out
}

func overlay(out, layer *v1alpha1.RevertSpec) {
	set(&out.Mode, layer.Mode)
	set(&out.Branch, layer.Branch)
	set(&out.Message, layer.Message)
	set(&out.Owner, layer.Owner)
	set(&out.SecretRef, layer.SecretRef)
	set(&out.Author, layer.Author)
	set(&out.Committer, layer.Committer)
	set(&out.Signing, layer.Signing)
	set(&out.MaxAge, layer.MaxAge)
	if layer.On != nil {
		out.On = layer.On
	}
	if layer.Budget == nil {
		return
	}
	if out.Budget == nil {
		out.Budget = &v1alpha1.RevertBudget{}
	}
	set(&out.Budget.PerRollout, layer.Budget.PerRollout)
	set(&out.Budget.PerRepository, layer.Budget.PerRepository)
}

// set takes over a value that says something.
func set[T comparable](out *T, value T) {
	var nothing T
	if value != nothing {
		*out = value
	}
}
