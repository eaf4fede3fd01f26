package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newAbortCommand() *cobra.Command {
	keepGit := false
	cmd := addVerb("abort", "Move all traffic back to the stable version and reject the new one",
		"Moves all traffic back, rejects the version, and has it reverted in Git. With --keep-git nothing is written to Git.\n"+
			"A version that could not be measured has no traffic and would start again by itself: abort rejects it, too.",
		"  pushback abort shop\n  pushback abort shop --keep-git",
		func() verb { return abortVerb(keepGit) })
	cmd.Flags().BoolVar(&keepGit, "keep-git", false, "write no revert to Git")
	return cmd
}

func abortVerb(keepGit bool) verb {
	v := verb{annotation: v1alpha1.AbortAnnotation, next: aborted}
	if keepGit {
		v.also = func(token string) map[string]string {
			return map[string]string{v1alpha1.AbortKeepGitAnnotation: token}
		}
	}
	return v
}

// aborted says what becomes of Git, as the controller decided it in the same
// status write.
func aborted(rollout *v1alpha1.Rollout) string {
	for _, rejected := range rollout.Status.Rejected {
		if rejected.Hash == rollout.Status.CurrentPodHash && rejected.Revert == v1alpha1.RevertPhaseNone {
			return fmt.Sprintf("All traffic goes back to the stable version; Git is left as it is: %s", orDash(rejected.RevertReason))
		}
	}
	return "All traffic goes back to the stable version, and a revert commit follows"
}
