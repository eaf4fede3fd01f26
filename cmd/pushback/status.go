package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	exitDegraded = 1
	exitTimeout  = 2
)

func newStatusCommand() *cobra.Command {
	var watch bool
	var timeout time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "status ROLLOUT",
		Short: "Wait for the outcome of a rollout",
		Long: "Prints each change of phase, step or message until the Rollout is Healthy or Degraded.\n" +
			"Exit code 0: Healthy (or, with --watch=false, anything but Degraded). 1: Degraded. 2: the timeout passed.",
		Example: "  pushback status shop\n  pushback status shop --timeout 10m\n  pushback status shop --watch=false -o json",
		Args:    cobra.ExactArgs(1),
	}
	reach := addClusterFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "wait until it is Healthy or Degraded")
	cmd.Flags().DurationVarP(&timeout, "timeout", "t", 0, "give up after this long; 0 waits for ever")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json: one object a change")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output); err != nil {
			return err
		}
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
		return watchStatus(ctx, cmd.OutOrStdout(), c, key, watch, output == "json")
	}
	return cmd
}

func checkOutput(output string) error {
	if output != "" && output != "json" {
		return fmt.Errorf("--output %q is not known: use json, or leave it out for text", output)
	}
	return nil
}

// statusLine is what status prints.
type statusLine struct {
	Phase   v1alpha1.RolloutPhase `json:"phase"`
	Step    string                `json:"step,omitempty"`
	Weight  int32                 `json:"weight"`
	Message string                `json:"message,omitempty"`
}

func lineOf(rollout *v1alpha1.Rollout) statusLine {
	line := statusLine{Phase: rollout.Status.Phase, Step: rollout.Status.Step, Message: rollout.Status.Message}
	if weights := rollout.Status.Canary.Weights; weights != nil {
		line.Weight = weights.Canary.Weight
	}
	if rollout.Status.ObservedGeneration != rollout.Generation {
		line = statusLine{Phase: v1alpha1.RolloutPhaseProgressing, Message: "waiting for the controller to see the latest spec"}
	}
	return line
}

// statusPoll is how often the Rollout is read.
const statusPoll = 500 * time.Millisecond

func watchStatus(ctx context.Context, out io.Writer, c client.Reader, key types.NamespacedName, watch, asJSON bool) error {
	var last statusLine
	for {
		rollout, err := readRollout(ctx, c, key)
		if errors.Is(err, context.DeadlineExceeded) {
			return &exitError{code: exitTimeout, text: fmt.Sprintf("%s is still %s", key.Name, last.Phase)}
		}
		if err != nil {
			return err
		}
		line := lineOf(rollout)
		if line != last {
			if err := printStatus(out, line, asJSON); err != nil {
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
			return &exitError{code: exitTimeout, text: fmt.Sprintf("%s is still %s", key.Name, last.Phase)}
		case <-time.After(statusPoll):
		}
	}
}

func printStatus(out io.Writer, line statusLine, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(line)
	}
	_, err := fmt.Fprintf(out, "%-11s  step %-6s  weight %3d  %s\n", line.Phase, orDash(line.Step), line.Weight, line.Message)
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
