package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const (
	groupRollout = "rollout"
	groupBefore  = "before"
	groupLab     = "lab"
	programName  = "pushback"
	pluginPrefix = "kubectl-"
)

// newRootCommand builds the whole command tree. invokedAs is how the program was
// called; as kubectl-pushback, help and examples say "kubectl pushback".
func newRootCommand(invokedAs string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   programName,
		Short: "Look at and steer progressive deliveries that follow Git",
		Long: `pushback looks at and steers rollouts that Pushback runs from Git commits,
and has the small servers that the demo and the tests are made of.`,
		Version:       version,
		SilenceErrors: true, // main prints them
		SilenceUsage:  true, // a failed request is not a wrong usage
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddGroup(&cobra.Group{ID: groupRollout, Title: "Rollouts:"}, &cobra.Group{ID: groupBefore, Title: "Before a rollout, on files:"}, &cobra.Group{ID: groupLab, Title: "Lab servers and tools:"})
	addTo(cmd, groupRollout,
		newGetCommand(),
		newListCommand(),
		newStatusCommand(),
		newHistoryCommand(),
		newPromoteCommand(),
		newPauseCommand(),
		newResumeCommand(),
		newAbortCommand(),
		newRetryCommand(),
		newRestartCommand(),
		newUndoCommand(),
		newTerminateCommand(),
		newCreateCommand(),
	)
	addTo(cmd, groupBefore, newPlanCommand(), newLintCommand())
	addTo(cmd, groupLab,
		newAppCommand(),
		newProxyCommand(),
		newLoadCommand(),
		newPrometheusCommand(),
		newQueryCommand(),
	)
	nameAfter(cmd, invokedAs)
	return cmd
}

// addTo adds commands under a heading of the help.
func addTo(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
	}
	root.AddCommand(commands...)
}

// nameAfter makes help and examples say what the user typed.
func nameAfter(root *cobra.Command, invokedAs string) {
	base := strings.TrimSuffix(filepath.Base(invokedAs), ".exe")
	if !strings.HasPrefix(base, pluginPrefix) {
		return
	}
	name := strings.ReplaceAll(base, "-", " ")
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	renameExamples(root, name)
}

func renameExamples(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll("\n"+cmd.Example, "\n  "+programName+" ", "\n  "+name+" ")[1:]
	for _, c := range cmd.Commands() {
		renameExamples(c, name)
	}
}
