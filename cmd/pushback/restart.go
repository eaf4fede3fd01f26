package main

import (
	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newRestartCommand() *cobra.Command {
	return addVerb("restart", "Replace all pods by new ones of the same version",
		"Evicts the pods that were created before now: those of the stable version first, then those of the new one, then the others, at most\n"+
			"maxUnavailable (and one at least) at a time. PodDisruptionBudgets are honoured, and a version that has traffic keeps a pod that serves.\n"+
			"A newer template ends the restart. 'status' waits for its end. In Git, spec.restartAt asks for the same.",
		"  pushback restart shop\n  pushback restart shop && pushback status shop",
		restartVerb)
}

func restartVerb() verb {
	return verb{annotation: v1alpha1.RestartAnnotation, next: func(*v1alpha1.Rollout) string {
		return "Pods that were created before now are evicted, as many at a time as maxUnavailable and PodDisruptionBudgets allow; 'status' waits for the end"
	}}
}
