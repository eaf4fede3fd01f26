package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newPromoteCommand() *cobra.Command {
	full := false
	cmd := addVerb("promote", "Go on to the next step, or to the end",
		"Ends the pause or the analysis of the current step. With --full all remaining steps are skipped; the new version still has to be available before it gets traffic.",
		"  pushback promote shop\n  pushback promote shop --full",
		func() verb { return promoteVerb(full) })
	cmd.Flags().BoolVar(&full, "full", false, "skip all remaining steps and analyses")
	return cmd
}

func promoteVerb(full bool) verb {
	if full {
		return verb{annotation: v1alpha1.PromoteFullAnnotation, next: func(*v1alpha1.Rollout) string {
			return "The remaining steps are skipped; all traffic goes to the new version as soon as it is available"
		}}
	}
	return verb{annotation: v1alpha1.PromoteAnnotation, next: func(rollout *v1alpha1.Rollout) string {
		return fmt.Sprintf("It is at step %s now", orDash(rollout.Status.Step))
	}}
}
