package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newPauseCommand() *cobra.Command {
	return addVerb("pause", "Hold a rollout where it is",
		"Keeps weights, pods and step as they are until 'resume'. A newer version is not taken up meanwhile, and the progress deadline stands still.\n"+
			"An abort, a person's or that of a failed analysis, still moves the traffic back.",
		"  pushback pause shop",
		pauseVerb)
}

func pauseVerb() verb { return verb{annotation: v1alpha1.PauseAnnotation, next: paused} }

func paused(rollout *v1alpha1.Rollout) string {
	return fmt.Sprintf("It stays as it is (step %s) until resume; an abort still moves the traffic back", orDash(rollout.Status.Step))
}
