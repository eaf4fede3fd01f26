package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newResumeCommand() *cobra.Command {
	return addVerb("resume", "Go on after a pause, or after an inconclusive analysis",
		"Ends the pause that 'pause' began, or that an inconclusive analysis made. The pause of a step is ended with 'promote'.\n"+
			"What Git says of spec.paused no verb can undo: change it there.",
		"  pushback resume shop",
		resumeVerb)
}

func resumeVerb() verb { return verb{annotation: v1alpha1.ResumeAnnotation, next: resumed} }

func resumed(rollout *v1alpha1.Rollout) string {
	switch {
	case rollout.Status.Phase == v1alpha1.RolloutPhasePaused:
		return fmt.Sprintf("It goes on at step %s, where it waits: %s", orDash(rollout.Status.Step), rollout.Status.Message)
	case rollout.Status.CurrentPodHash == rollout.Status.StableRS:
		return "The next version that Git declares is taken up"
	}
	return fmt.Sprintf("It goes on at step %s", orDash(rollout.Status.Step))
}
