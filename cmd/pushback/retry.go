package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newRetryCommand() *cobra.Command {
	return addVerb("retry", "Try a rejected or unmeasured version again, from the first step",
		"Lifts the hold on the version that Git declares and starts a new attempt at the first step with no traffic. If it fails again it is reverted once more.",
		"  pushback retry shop",
		func() verb {
			return verb{annotation: v1alpha1.RetryAnnotation, next: func(rollout *v1alpha1.Rollout) string {
				return fmt.Sprintf("Attempt %d starts at the first step with no traffic", rollout.Status.Attempt)
			}}
		})
}
