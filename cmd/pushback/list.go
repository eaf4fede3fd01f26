package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newListCommand() *cobra.Command {
	var watch, all bool
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List rollouts, one line each",
		Long: "Lists the Rollouts of a namespace, or with -A of all, with phase, step, weight of the new version, pods and commit.\n" +
			"-o wide adds the stable commit, the attempt, the template and the age.",
		Example: "  pushback list\n  pushback list -A -o wide\n  pushback list -w",
		Args:    cobra.NoArgs,
	}
	reach := addClusterFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on listing as they change")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the rollouts of all namespaces")
	output.registerAll(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		return show(cmd.Context(), cmd.OutOrStdout(), output, watch, readList(c, namespace, all, output))
	}
	return cmd
}

// readList reads the Rollouts of a namespace or of all. What belongs to them is
// read for programs only.
func readList(c client.Reader, namespace string, all bool, output outputFlag) reading {
	where := scope{namespace: namespace}
	if all {
		where.namespace = ""
	}
	return func(ctx context.Context) (drawing, error) {
		var list v1alpha1.RolloutList
		if err := c.List(ctx, &list, client.InNamespace(where.namespace)); err != nil {
			return nil, fmt.Errorf("listing Rollouts: %w", explained(err))
		}
		var owned belongings
		if output.structured() {
			var err error
			if owned, err = readBelongings(ctx, c, where); err != nil {
				return nil, err
			}
		}
		views := []view{}
		for i := range list.Items {
			views = append(views, viewOf(&list.Items[i], owned))
		}
		return func(s style) (string, error) {
			switch {
			case output.structured():
				return output.encode(views)
			case output.name():
				return renderNames(views), nil
			case len(views) == 0:
				return noRollouts(namespace, all), nil
			}
			return s.fit(renderList(views, all, s)), nil
		}, nil
	}
}

func renderNames(views []view) string {
	var out strings.Builder
	for _, v := range views {
		out.WriteString(rolloutName(v.Name) + "\n")
	}
	return out.String()
}

func renderList(views []view, all bool, s style) string {
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	row := func(namespace string, cells ...string) {
		if all {
			cells = append([]string{namespace}, cells...)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	head := []string{"NAME", "PHASE", "STEP", "WEIGHT", "PODS", "COMMIT"}
	if s.wide {
		head = append(head, "STABLE", "ATTEMPT", "TEMPLATE", "AGE")
	}
	row("NAMESPACE", append(head, "MESSAGE")...)
	for _, v := range views {
		cells := []string{v.Name, string(v.Phase), orDash(v.Step), weightText(v.Weights), fmt.Sprintf("%d/%d", v.Available, v.Desired), commitText(v.Current)}
		if s.wide {
			cells = append(cells, commitText(v.Stable), fmt.Sprint(v.Attempt), templateText(v.Current), s.age(v.Created))
		}
		row(v.Namespace, append(cells, orDash(v.Message))...)
	}
	_ = table.Flush() // a bytes.Buffer takes everything
	return out.String()
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

func templateText(version *v1alpha1.GitVersion) string {
	if version == nil {
		return "-"
	}
	return orDash(version.Hash)
}
