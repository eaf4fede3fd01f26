package main

import (
	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newAbortCommand() *cobra.Command {
	keepGit := false
	cmd := addVerb("abort", "Move all traffic back to the stable version and reject the new one",
		"Moves all traffic back, rejects the version, and has it reverted in Git. With --keep-git nothing is written to Git.",
		"  pushback abort shop\n  pushback abort shop --keep-git",
		func() verb {
			v := verb{annotation: v1alpha1.AbortAnnotation, next: func(rollout *v1alpha1.Rollout) string {
				if keepGit {
					return "All traffic goes back to the stable version; Git is left as it is"
				}
				return "All traffic goes back to the stable version, and a revert commit follows"
			}}
			if keepGit {
				v.also = func(token string) map[string]string {
					return map[string]string{v1alpha1.AbortKeepGitAnnotation: token}
				}
			}
			return v
		})
	cmd.Flags().BoolVar(&keepGit, "keep-git", false, "write no revert to Git")
	return cmd
}
