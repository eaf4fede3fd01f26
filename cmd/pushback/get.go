package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func newGetCommand() *cobra.Command {
	var watch, all bool
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "get [ROLLOUT]",
		Short: "Show a rollout as a tree of versions, pods, runs, measurements and commits",
		Long: "Shows one Rollout: its phase, weights, steps, and for each version its pods with their readiness and restarts,\n" +
			"its analysis runs with their last measurements, and the commit that declared it. Without a name it lists, as 'list' does.\n" +
			"On a terminal lines are cut to its width; -o wide shows them whole.",
		Example: "  pushback get shop       # one, whole\n" +
			"  pushback get shop -w    # as it changes\n" +
			"  pushback get shop -o json\n" +
			"  pushback get -A         # list the rollouts of all namespaces",
		Args: oneRollout(0),
	}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = reach.complete
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it as it changes")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the rollouts of all namespaces")
	output.registerAll(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		read := readList(c, namespace, all, output)
		if len(args) == 1 {
			read = readOne(c, types.NamespacedName{Namespace: namespace, Name: args[0]}, output)
		}
		return show(cmd.Context(), cmd.OutOrStdout(), output, watch, read)
	}
	return cmd
}

// drawing draws what was read. A style without a time draws no ages, which change
// by themselves.
type drawing func(style) (string, error)

// reading reads what is to be drawn.
type reading func(context.Context) (drawing, error)

// show draws once, or goes on whenever what it reads has changed: on a terminal in
// place, else after a separator.
func show(ctx context.Context, out io.Writer, output outputFlag, watch bool, read reading) error {
	s, last := styleFor(out, output.wide()), ""
	for {
		draw, err := read(ctx)
		if ctx.Err() != nil && watch {
			return nil
		}
		if err != nil {
			return err
		}
		s.now = time.Time{}
		content, err := draw(s)
		if err != nil {
			return err
		}
		s.now = time.Now()
		text, err := draw(s)
		if err != nil {
			return err
		}
		if inPlace := isTerminal(out) && watch && !output.structured(); inPlace || content != last {
			if _, err := io.WriteString(out, lead(inPlace, last == "", output)+text); err != nil {
				return err
			}
			last = content
		}
		if !watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

// lead is what goes before a text: a cleared screen, or what parts it from the one before.
func lead(inPlace, first bool, output outputFlag) string {
	switch {
	case inPlace:
		return "\x1b[H\x1b[2J"
	case first:
		return ""
	}
	return output.separator()
}

// readOne reads one Rollout with all that belongs to it.
func readOne(c client.Reader, key types.NamespacedName, output outputFlag) reading {
	return func(ctx context.Context) (drawing, error) {
		rollout, all, err := readWhole(ctx, c, key)
		if err != nil {
			return nil, err
		}
		v := viewOf(rollout, all)
		return func(s style) (string, error) {
			switch {
			case output.structured():
				return output.encode(v)
			case output.name():
				return rolloutName(v.Name) + "\n", nil
			}
			return s.fit(renderView(v, s)), nil
		}, nil
	}
}
