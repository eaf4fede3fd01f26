package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newGetCommand() *cobra.Command {
	var watch, all bool
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "get [ROLLOUT]",
		Short: "Show a rollout with its steps, weights, pods, measurements and commits; or list all",
		Example: "  pushback get            # list the rollouts of the namespace\n" +
			"  pushback get -A         # of all namespaces\n" +
			"  pushback get shop -w    # one, whole, as it changes\n" +
			"  pushback get shop -o json",
		Args: oneRollout(0),
	}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = reach.complete
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it as it changes")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the rollouts of all namespaces")
	output.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		show := func() (string, error) {
			if len(args) == 0 {
				return renderList(cmd.Context(), c, namespace, all, output.json())
			}
			return renderOne(cmd.Context(), c, types.NamespacedName{Namespace: namespace, Name: args[0]}, styleFor(out), output.json())
		}
		if watch {
			return watchText(cmd.Context(), out, show)
		}
		text, err := show()
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, text)
		return err
	}
	return cmd
}

// watchText prints a text again whenever it differs: on a terminal in place, else after a blank line.
func watchText(ctx context.Context, out io.Writer, show func() (string, error)) error {
	last := ""
	for {
		text, err := show()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if text != last {
			lead := "\n"
			if isTerminal(out) {
				lead = "\x1b[H\x1b[2J"
			}
			if last == "" && !isTerminal(out) {
				lead = ""
			}
			if _, err := io.WriteString(out, lead+text); err != nil {
				return err
			}
			last = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func renderList(ctx context.Context, c client.Reader, namespace string, all, asJSON bool) (string, error) {
	var list v1alpha1.RolloutList
	options := []client.ListOption{client.InNamespace(namespace)}
	if all {
		options = nil
	}
	if err := c.List(ctx, &list, options...); err != nil {
		return "", fmt.Errorf("listing Rollouts: %w", explained(err))
	}
	views := []view{}
	for i := range list.Items {
		one, err := observeView(ctx, c, &list.Items[i])
		if err != nil {
			return "", err
		}
		views = append(views, one)
	}
	if asJSON {
		return toJSON(views)
	}
	if len(views) == 0 {
		return noRollouts(namespace, all), nil
	}
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	if all {
		fmt.Fprint(table, "NAMESPACE\t")
	}
	fmt.Fprintln(table, "NAME\tPHASE\tSTEP\tWEIGHT\tPODS\tCOMMIT\tMESSAGE")
	for _, v := range views {
		if all {
			fmt.Fprint(table, v.Namespace, "\t")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\n", v.Name, v.Phase, orDash(v.Step),
			weightText(v.Weights), v.Available, v.Desired, commitText(v.Current), orDash(v.Message))
	}
	err := table.Flush()
	return out.String(), err
}

func noRollouts(namespace string, all bool) string {
	if all {
		return "no rollouts\n"
	}
	return fmt.Sprintf("no rollouts in the namespace %q; -A lists those of all namespaces\n", namespace)
}

func weightText(weights *v1alpha1.TrafficWeights) string {
	if weights == nil {
		return "-"
	}
	return fmt.Sprint(weights.Canary.Weight)
}

func commitText(version *v1alpha1.GitVersion) string {
	if version == nil {
		return "-"
	}
	return orDash(version.ShortCommit)
}

func renderOne(ctx context.Context, c client.Reader, key types.NamespacedName, s style, asJSON bool) (string, error) {
	rollout, err := readRollout(ctx, c, key)
	if err != nil {
		return "", err
	}
	v, err := observeView(ctx, c, rollout)
	if err != nil {
		return "", err
	}
	if asJSON {
		return toJSON(v)
	}
	return renderView(v, s), nil
}

func toJSON(value any) (string, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	return string(data) + "\n", err
}

// style is how a view is drawn: with marks and colours on a terminal, plain elsewhere.
type style struct{ rich bool }

func styleFor(out io.Writer) style {
	return style{rich: isTerminal(out) && os.Getenv("NO_COLOR") == ""}
}

func (s style) mark(state string) string {
	if !s.rich {
		return map[string]string{"done": "[x]", "current": "[>]", "todo": "[ ]"}[state]
	}
	return map[string]string{"done": "\x1b[32m✔\x1b[0m", "current": "\x1b[36m▶\x1b[0m", "todo": "·"}[state]
}

func (s style) phase(phase string) string {
	colours := map[string]string{"Healthy": "32", "Successful": "32", "Degraded": "31", "Failed": "31", "Error": "31", "Paused": "33", "Inconclusive": "33", "Blocked": "33"}
	colour, ok := colours[phase]
	if !s.rich || !ok {
		return phase
	}
	return "\x1b[" + colour + "m" + phase + "\x1b[0m"
}

// renderView draws a view.
func renderView(v view, s style) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s  %s", v.Namespace, v.Name, s.phase(string(v.Phase)))
	if v.Step != "" {
		fmt.Fprintf(&out, "  step %s  attempt %d", v.Step, v.Attempt)
	}
	out.WriteString("\n")
	if v.Message != "" {
		fmt.Fprintf(&out, "  %s\n", v.Message)
	}
	if v.Weights != nil {
		fmt.Fprintf(&out, "weights  stable %d  canary %d%s\n", v.Weights.Stable.Weight, v.Weights.Canary.Weight, verifiedText(v.Weights.Verified))
	}
	fmt.Fprintf(&out, "pods     %d of %d available\n", v.Available, v.Desired)
	for _, side := range []struct {
		name    string
		version *v1alpha1.GitVersion
	}{{"stable", v.Stable}, {"current", v.Current}} {
		if side.version != nil {
			fmt.Fprintf(&out, "%-8s %s  %s  %q\n", side.name, side.version.Hash, orDash(side.version.Revision), side.version.Subject)
		}
	}
	renderSteps(&out, v, s)
	renderVersions(&out, v)
	renderRuns(&out, v, s)
	return out.String()
}

func verifiedText(verified *bool) string {
	switch {
	case verified == nil:
		return ""
	case *verified:
		return "  (verified)"
	}
	return "  (not verified yet)"
}

func renderSteps(out *strings.Builder, v view, s style) {
	if len(v.Steps) == 0 {
		return
	}
	out.WriteString("\nSTEPS\n")
	for i, step := range v.Steps {
		fmt.Fprintf(out, "  %s %d %s\n", s.mark(step.State), i+1, step.Text)
	}
}

func renderVersions(out *strings.Builder, v view) {
	if len(v.Versions) == 0 {
		return
	}
	out.WriteString("\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "REVISION\tHASH\tROLE\tPODS\tAVAILABLE\tCOMMIT")
	for _, version := range v.Versions {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", orDash(version.Revision), version.Hash, version.Role, version.Pods, version.Available, orDash(version.Commit))
	}
	_ = table.Flush() // a strings.Builder takes everything
}

func renderRuns(out *strings.Builder, v view, s style) {
	if len(v.Runs) > 0 {
		out.WriteString("\nANALYSIS\n")
	}
	for _, run := range v.Runs {
		out.WriteString(row(run.Name, s.phase(string(run.Phase)), run.Message))
		for _, metric := range run.Metrics {
			out.WriteString("  " + row(metric.Name, s.phase(string(metric.Phase)), strings.Join(metric.Values, "  ")))
		}
	}
	if len(v.Reverts) > 0 {
		out.WriteString("\nREVERTS\n")
	}
	for _, revert := range v.Reverts {
		out.WriteString(row(revert.Name, s.phase(string(revert.Phase)), orDash(revert.Commit), revert.Message))
	}
}

// row is one indented line; cells that are empty take no room.
func row(cells ...string) string {
	kept := slices.DeleteFunc(cells, func(cell string) bool { return cell == "" })
	return "  " + strings.Join(kept, "  ") + "\n"
}
