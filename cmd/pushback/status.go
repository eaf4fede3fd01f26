package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// Exit codes of status, by phase.
const (
	exitDegraded    = 1
	exitTimeout     = 2
	exitInterrupted = 130 // as shells have it
)

func newStatusCommand() *cobra.Command {
	var watch bool
	var timeout time.Duration
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "status ROLLOUT",
		Short: "Wait for the outcome of a rollout",
		Long: "Prints each change of phase, step or message until the Rollout is Healthy or Degraded.\n" +
			"Exit code 0: Healthy (or, with --watch=false, anything but Degraded). 1: Degraded, or it could not be read.\n" +
			"2: the timeout passed while it was Progressing or Paused. 130: interrupted.",
		Example: "  pushback status shop\n  pushback status shop --timeout 10m\n  pushback status shop --watch=false -o json",
		Args:    oneRollout(1),
	}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = reach.complete
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "wait until it is Healthy or Degraded")
	cmd.Flags().DurationVarP(&timeout, "timeout", "t", 0, "give up after this long; 0 waits for ever")
	output.registerAll(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		key := types.NamespacedName{Namespace: namespace, Name: args[0]}
		return watchStatus(ctx, cmd.OutOrStdout(), c, key, watch, output)
	}
	return cmd
}

// statusLine is what status prints.
type statusLine struct {
	Phase   v1alpha1.RolloutPhase `json:"phase"`
	Step    string                `json:"step,omitempty"`
	Weight  int32                 `json:"weight"`
	Message string                `json:"message,omitempty"`
	// Commit and Template that Git declares.
	Commit   string `json:"commit,omitempty"`
	Template string `json:"template,omitempty"`
}

func lineOf(rollout *v1alpha1.Rollout) statusLine {
	line := statusLine{Phase: rollout.Status.Phase, Step: rollout.Status.Step, Message: rollout.Status.Message}
	if weights := rollout.Status.Canary.Weights; weights != nil {
		line.Weight = weights.Canary.Weight
	}
	if rollout.Status.ObservedGeneration != rollout.Generation || rollout.Status.Phase == "" {
		line = statusLine{Phase: v1alpha1.RolloutPhaseProgressing, Message: statusText(rollout)}
	}
	if current := rollout.Status.Git.Current; current != nil {
		line.Commit, line.Template = current.ShortCommit, current.Hash
	}
	return line
}

// statusText is the message for a person, also where the controller has said nothing yet.
func statusText(rollout *v1alpha1.Rollout) string {
	switch {
	case rollout.Status.Phase == "":
		return "the controller has not looked at it yet"
	case rollout.Status.ObservedGeneration != rollout.Generation:
		return "waiting for the controller to see the latest spec"
	case rollout.Status.Message == "":
		return string(rollout.Status.Phase)
	}
	return rollout.Status.Message
}

// statusPoll is how often the Rollout is read.
const statusPoll = 500 * time.Millisecond

func watchStatus(ctx context.Context, out io.Writer, c client.Reader, key types.NamespacedName, watch bool, output outputFlag) error {
	var last statusLine
	if output.name() { // said once: the exit code tells the rest
		if _, err := fmt.Fprintln(out, rolloutName(key.Name)); err != nil {
			return err
		}
		out = io.Discard
	}
	for {
		rollout, err := readRollout(ctx, c, key)
		if err != nil && ctx.Err() != nil {
			return outOfTime(ctx, key.Name, last)
		}
		if err != nil {
			return err
		}
		line := lineOf(rollout)
		if line != last {
			if err := printStatus(out, line, last == statusLine{}, output); err != nil {
				return err
			}
			last = line
		}
		switch {
		case line.Phase == v1alpha1.RolloutPhaseDegraded:
			return &exitError{code: exitDegraded, text: fmt.Sprintf("%s is Degraded: %s", key.Name, line.Message)}
		case line.Phase == v1alpha1.RolloutPhaseHealthy, !watch:
			return nil
		}
		select {
		case <-ctx.Done():
			return outOfTime(ctx, key.Name, last)
		case <-time.After(statusPoll):
		}
	}
}

// outOfTime is the error for a wait that the timeout or Ctrl-C ended.
func outOfTime(ctx context.Context, name string, last statusLine) error {
	what := "still " + string(last.Phase)
	if last.Phase == "" {
		what = "not read yet"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exitError{code: exitTimeout, text: fmt.Sprintf("the timeout passed: %s is %s", name, what)}
	}
	return &exitError{code: exitInterrupted, text: fmt.Sprintf("interrupted: %s is %s", name, what)}
}

// printStatus prints a line; as YAML a document, and as JSON one line.
func printStatus(out io.Writer, line statusLine, first bool, output outputFlag) error {
	if output.json() {
		return json.NewEncoder(out).Encode(line)
	}
	if output.structured() {
		text, err := output.encode(line)
		if !first {
			text = output.separator() + text
		}
		return errors.Join(err, written(io.WriteString(out, text)))
	}
	commit := ""
	if output.wide() {
		commit = fmt.Sprintf("commit %-7s  template %-10s  ", orDash(line.Commit), orDash(line.Template))
	}
	text := fmt.Sprintf("%-11s  step %-6s  weight %3d  %s%s", line.Phase, orDash(line.Step), line.Weight, commit, line.Message)
	_, err := fmt.Fprintln(out, strings.TrimRight(text, " "))
	return err
}

// written is the error of a write.
func written(_ int, err error) error { return err }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
