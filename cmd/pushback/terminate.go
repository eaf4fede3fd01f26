package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func newTerminateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "terminate",
		Short:   "End an analysis run or an experiment early",
		Long:    "Ends what measures, with what was measured until then as its verdict. To take a version back use 'abort'.",
		Example: "  pushback terminate analysisrun shop-1f0c2ab39d-1-0\n  pushback terminate experiment shop-1f0c2ab39d-1-2",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newTerminateKind("analysisrun", []string{"ar", "analysisruns"}, "AnalysisRun", func() endable { return &endableRun{} }, func() client.ObjectList { return &v1alpha1.AnalysisRunList{} }),
		newTerminateKind("experiment", []string{"exp", "experiments"}, "Experiment", func() endable { return &endableExperiment{} }, func() client.ObjectList { return &v1alpha1.ExperimentList{} }),
	)
	return cmd
}

// endable is what has a verdict and can be ended before it.
type endable interface {
	object() client.Object
	end()
	verdict() (v1alpha1.AnalysisPhase, string)
}

type endableRun struct{ v1alpha1.AnalysisRun }

func (e *endableRun) object() client.Object { return &e.AnalysisRun }
func (e *endableRun) end()                  { e.Spec.Terminate = true }
func (e *endableRun) verdict() (v1alpha1.AnalysisPhase, string) {
	return e.Status.Phase, e.Status.Message
}

type endableExperiment struct{ v1alpha1.Experiment }

func (e *endableExperiment) object() client.Object { return &e.Experiment }
func (e *endableExperiment) end()                  { e.Spec.Terminate = true }
func (e *endableExperiment) verdict() (v1alpha1.AnalysisPhase, string) {
	return e.Status.Phase, e.Status.Message
}

func newTerminateKind(use string, aliases []string, kind string, one func() endable, many func() client.ObjectList) *cobra.Command {
	var timeout time.Duration
	var output outputFlag
	cmd := &cobra.Command{
		Use: use + " NAME", Aliases: aliases, Short: "End one " + kind,
		Long:    "Sets spec.terminate and waits for the verdict. One that has ended is refused.",
		Example: "  pushback terminate " + use + " shop-1f0c2ab39d-1-0",
		Args:    cobra.ExactArgs(1),
	}
	reach := addClusterFlags(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return reach.completeNames(cmd.Context(), many())
	}
	cmd.Flags().DurationVar(&timeout, "wait", 15*time.Second, "how long to wait for its end")
	output.register(cmd, formatJSON, formatYAML, formatName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, namespace, err := reach.client()
		if err != nil {
			return err
		}
		t := termination{kind: kind, resource: use, key: types.NamespacedName{Namespace: namespace, Name: args[0]}}
		return t.run(cmd.Context(), cmd.OutOrStdout(), c, one(), timeout, output)
	}
	return cmd
}

// termination is the end of one object.
type termination struct {
	kind, resource string
	key            types.NamespacedName
}

// ended is what became of it, for programs.
type ended struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Kind      string                 `json:"kind"`
	Phase     v1alpha1.AnalysisPhase `json:"phase"`
	Message   string                 `json:"message,omitempty"`
}

// run asks for the end and waits for the verdict.
func (t termination) run(ctx context.Context, out io.Writer, c client.Client, e endable, timeout time.Duration, output outputFlag) error {
	if err := t.read(ctx, c, e); err != nil {
		return err
	}
	if phase, message := e.verdict(); phase.Completed() {
		return fmt.Errorf("%s %s has ended already: %s", t.kind, t.key.Name, joined(string(phase), message))
	}
	before, ok := e.object().DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%s %s: not an object", t.kind, t.key.Name)
	}
	e.end()
	if err := c.Patch(ctx, e.object(), client.MergeFrom(before), client.FieldOwner("pushback-cli")); err != nil {
		return fmt.Errorf("setting spec.terminate of %s %s: %w", t.kind, t.key.Name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		err := t.read(ctx, c, e)
		phase, _ := e.verdict()
		return phase.Completed(), err
	})
	if wait.Interrupted(err) && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("the end of %s %s was asked for, and it did not come within %s: is the controller running?", t.kind, t.key.Name, timeout)
	}
	if err != nil {
		return err
	}
	return t.say(out, e, output)
}

func (t termination) read(ctx context.Context, c client.Reader, e endable) error {
	err := c.Get(ctx, t.key, e.object())
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s %q in the namespace %q: %w", t.kind, t.key.Name, t.key.Namespace, err)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", t.kind, t.key, explained(err))
	}
	return nil
}

func (t termination) say(out io.Writer, e endable, output outputFlag) error {
	phase, message := e.verdict()
	text := fmt.Sprintf("%s: terminate. It ended %s, by what was measured until now; its rollout goes on by that\n", t.key.Name, joined(string(phase), message))
	switch {
	case output.structured():
		var err error
		if text, err = output.encode(ended{Namespace: t.key.Namespace, Name: t.key.Name, Kind: t.kind, Phase: phase, Message: message}); err != nil {
			return err
		}
	case output.name():
		text = t.resource + ".pushback.dev/" + t.key.Name + "\n"
	}
	return written(io.WriteString(out, text))
}
