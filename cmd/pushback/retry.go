package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/templatehash"
)

func newRetryCommand() *cobra.Command {
	hash := ""
	cmd := addVerb("retry", "Try a rejected or unmeasured version again, from the first step",
		"Lifts the hold on the version that Git declares and starts a new attempt at the first step with no traffic. If it fails again it is reverted once more.\n"+
			"A version that could not be measured starts by itself when its metric provider answers; retry doesn't wait for that.\n"+
			"With --template the hold on an earlier version is lifted, so that it may be pushed again.",
		"  pushback retry shop\n  pushback retry shop --template 1f0c2ab39d",
		func() verb { return retryVerb(hash) })
	cmd.Flags().StringVar(&hash, "template", "", "template hash of the version (default the one that is declared now)")
	return cmd
}

// retryVerb is aimed at a template, or at the declared one if hash is empty.
func retryVerb(hash string) verb {
	v := verb{annotation: v1alpha1.RetryAnnotation, next: retried, target: retryTarget}
	if hash != "" {
		v.target = func(*v1alpha1.Rollout) (string, error) { return hash, nil }
	}
	return v
}

// retryTarget is the declared template, which is not the current version while it
// is held: then the current one is the stable one.
func retryTarget(rollout *v1alpha1.Rollout) (string, error) {
	hash, err := declaredHash(rollout)
	if err != nil {
		return "", err
	}
	for _, rejected := range rollout.Status.Rejected {
		if rejected.Hash == hash && !rejected.Cleared {
			return hash, nil
		}
	}
	return verb{}.hash(rollout)
}

// declaredHash is the hash of the template that is declared; empty when that isn't known.
func declaredHash(rollout *v1alpha1.Rollout) (string, error) {
	switch {
	case rollout.Spec.WorkloadRef != nil:
		return declaredByWorkload(rollout)
	case rollout.Spec.Template == nil:
		return "", nil
	}
	hash, err := templatehash.Hash(templatehash.Version, rollout.Spec.Template.Raw)
	if err != nil {
		return "", fmt.Errorf("the template of %s: %w", rollout.Name, err)
	}
	return hash, nil
}

// retried says whether an attempt has started: not if the version isn't declared.
func retried(rollout *v1alpha1.Rollout) string {
	if rollout.Status.CurrentPodHash == rollout.Status.StableRS {
		return "The hold is lifted; the version starts when Git declares it again"
	}
	return fmt.Sprintf("Attempt %d starts at the first step with no traffic", rollout.Status.Attempt)
}
