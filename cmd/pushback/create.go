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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/templates"
)

func newCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Start an analysis run of its own, without a rollout",
		Example: "  pushback create analysisrun --from success-rate -a service=shop",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCreateRunCommand())
	return cmd
}

// creation is what is asked for by flags.
type creation struct {
	from, fromFile     string
	cluster            bool
	name, generateName string
	args               []string
	wait               time.Duration
	output             outputFlag
}

func newCreateRunCommand() *cobra.Command {
	var c creation
	cmd := &cobra.Command{
		Use: "analysisrun", Aliases: []string{"ar"}, Short: "Start an analysis run from a template",
		Long: `Makes an AnalysisRun of an AnalysisTemplate of the cluster (--from), of a
ClusterAnalysisTemplate (--from with --cluster), or of a file (--from-file), with the
templates that it names in turn. What can't be measured (an argument without a value, a
condition that can't be read) is refused before anything is made.

With --wait it waits for the verdict: exit code 0 is Successful, 1 anything else.`,
		Example: `  pushback create analysisrun --from success-rate -a service=shop -a hash=1f0c2ab39d
  pushback create analysisrun --from slo --cluster --name before-the-sale --wait 10m
  pushback create analysisrun --from-file deploy/analysis.yaml -a service=shop`,
		Args: cobra.NoArgs,
	}
	reach := addClusterFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.from, "from", "", "AnalysisTemplate to make the run of")
	flags.StringVar(&c.fromFile, "from-file", "", "file or folder that declares the template (the first one that no other names)")
	flags.BoolVar(&c.cluster, "cluster", false, "--from names a ClusterAnalysisTemplate")
	flags.BoolVar(&c.cluster, "global", false, "the same as --cluster, as Argo calls it")
	flags.StringVar(&c.name, "name", "", "name of the run (default the template's with a suffix)")
	flags.StringVar(&c.generateName, "generate-name", "", "prefix of the run's name")
	flags.StringArrayVarP(&c.args, "argument", "a", nil, "argument as NAME=VALUE; may be given more than once")
	flags.DurationVar(&c.wait, "wait", 0, "how long to wait for the verdict (default not at all)")
	cmd.MarkFlagsMutuallyExclusive("from", "from-file")
	cmd.MarkFlagsOneRequired("from", "from-file")
	cmd.MarkFlagsMutuallyExclusive("name", "generate-name")
	c.output.register(cmd, formatJSON, formatYAML, formatName)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		kube, namespace, err := reach.client()
		if err != nil {
			return err
		}
		return c.run(cmd.Context(), cmd.OutOrStdout(), kube, namespace)
	}
	return cmd
}

func (c creation) run(ctx context.Context, out io.Writer, kube client.Client, namespace string) error {
	run, err := c.make(ctx, kube, namespace)
	if err != nil {
		return err
	}
	if err := kube.Create(ctx, run, client.FieldOwner("pushback-cli")); err != nil {
		return fmt.Errorf("creating the AnalysisRun: %w", explained(err))
	}
	if c.wait > 0 {
		if err := await(ctx, kube, run, c.wait); err != nil {
			return err
		}
	}
	if err := c.say(out, run); err != nil {
		return err
	}
	if c.wait > 0 && run.Status.Phase != v1alpha1.AnalysisPhaseSuccessful {
		return fmt.Errorf("AnalysisRun %s is %s", run.Name, run.Status.Phase)
	}
	return nil
}

// make is the run that is asked for, found to be usable.
func (c creation) make(ctx context.Context, kube client.Reader, namespace string) (*v1alpha1.AnalysisRun, error) {
	given, err := arguments(c.args)
	if err != nil {
		return nil, err
	}
	ref := v1alpha1.AnalysisTemplateRef{TemplateName: c.from, ClusterScope: c.cluster}
	var lookup analysis.Lookup
	if c.fromFile != "" {
		ref, lookup, err = fromFile(c.fromFile)
	} else {
		set := templates.Set{}
		err = set.Read(ctx, kube, namespace, []v1alpha1.AnalysisTemplateRef{ref})
		lookup = set.Lookup("--from")
	}
	if err != nil {
		return nil, explained(err)
	}
	flat, err := analysis.Flatten([]v1alpha1.AnalysisTemplateRef{ref}, lookup)
	if err != nil {
		return nil, err
	}
	spec, err := analysis.Merge(flat, given)
	if err != nil {
		return nil, err
	}
	if _, err := analysis.Prepare(spec); err != nil {
		return nil, err
	}
	run := &v1alpha1.AnalysisRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.name, GenerateName: c.generateName}, Spec: spec}
	if run.Name == "" && run.GenerateName == "" {
		run.GenerateName = ref.TemplateName + "-"
	}
	return run, nil
}

func arguments(pairs []string) ([]v1alpha1.Argument, error) {
	var out []v1alpha1.Argument
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--argument %q is not NAME=VALUE", pair)
		}
		out = append(out, v1alpha1.Argument{Name: name, Value: &value})
	}
	return out, nil
}

// fromFile finds the template that no other one of the file names.
func fromFile(path string) (v1alpha1.AnalysisTemplateRef, analysis.Lookup, error) {
	objects, err := readManifests([]string{path})
	if err != nil {
		return v1alpha1.AnalysisTemplateRef{}, nil, err
	}
	named := map[string]bool{}
	var found []v1alpha1.AnalysisTemplateRef
	namespace := ""
	for _, o := range objects {
		cluster := isOurs(o, v1alpha1.ClusterAnalysisTemplateKind)
		if !cluster && !isOurs(o, v1alpha1.AnalysisTemplateKind) {
			continue
		}
		found = append(found, v1alpha1.AnalysisTemplateRef{TemplateName: o.GetName(), ClusterScope: cluster})
		if !cluster {
			namespace = o.GetNamespace()
		}
		data, err := json.Marshal(o.Object)
		if err != nil {
			return v1alpha1.AnalysisTemplateRef{}, nil, err
		}
		var template v1alpha1.AnalysisTemplate
		if err := json.Unmarshal(data, &template); err != nil {
			return v1alpha1.AnalysisTemplateRef{}, nil, err
		}
		for _, ref := range template.Spec.Templates {
			named[fmt.Sprint(ref)] = true
		}
	}
	for _, ref := range found {
		if !named[fmt.Sprint(ref)] {
			return ref, templatesOf(objects, namespace), nil
		}
	}
	return v1alpha1.AnalysisTemplateRef{}, nil, fmt.Errorf("%s: there is no AnalysisTemplate in it", path)
}

// await waits for the verdict of a run.
func await(ctx context.Context, kube client.Reader, run *v1alpha1.AnalysisRun, timeout time.Duration) error {
	key := types.NamespacedName{Namespace: run.Namespace, Name: run.Name}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, key, run)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return false, fmt.Errorf("reading AnalysisRun %s: %w", key, explained(err))
		}
		return err == nil && run.Status.Phase.Completed(), nil // else the API server may be back soon
	})
	if wait.Interrupted(err) && !errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("AnalysisRun %s has no verdict after %s: it goes on", key.Name, timeout)
	}
	return err
}

func (c creation) say(out io.Writer, run *v1alpha1.AnalysisRun) error {
	text := fmt.Sprintf("AnalysisRun %s is started with %d metrics\n", run.Name, len(run.Spec.Metrics))
	switch {
	case c.output.structured():
		var err error
		if text, err = c.output.encode(run); err != nil {
			return err
		}
	case c.output.name():
		text = "analysisrun.pushback.dev/" + run.Name + "\n"
	case run.Status.Phase.Completed():
		text = fmt.Sprintf("AnalysisRun %s: %s\n", run.Name, joined(string(run.Status.Phase), outcomeOf(run.Status)))
	}
	_, err := io.WriteString(out, text)
	return err
}

// outcomeOf names metric, value and limit of what condemned a run; else its message.
func outcomeOf(status v1alpha1.AnalysisRunStatus) string {
	if detail := analysis.Detail(status); detail != "" {
		return detail
	}
	return status.Message
}
