package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/forecast"
	"github.com/pushback-dev/pushback/gitsync"
)

func newPlanCommand() *cobra.Command {
	var output outputFlag
	var replicas int32
	var readyDelay time.Duration
	cmd := &cobra.Command{
		Use:   "plan FILE...",
		Short: "Tell what a Rollout will do: pods, true shares, measurements and the worst case",
		Long: `plan reads Rollouts and their AnalysisTemplates from files or folders (ours or
Argo's, plain or kustomize) and tells, without a cluster, what an update of each will
do: the pods and the true share of the traffic at each step, when each metric is
measured, and how much traffic a bad version gets until that metric notices.

It asks the same core that runs in a cluster, with a clock and pods of its own. A pause
that waits for a person counts as no time.`,
		Example: `  pushback plan deploy/
  pushback plan rollout.yaml analysis.yaml --replicas 3 --ready-delay 20s
  pushback plan deploy/ -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := readManifests(args)
			if err != nil {
				return err
			}
			forecasts, err := forecastAll(objects, replicas, readyDelay)
			if err != nil {
				return err
			}
			if output.structured() {
				text, err := output.encode(forecasts)
				if err != nil {
					return err
				}
				fmt.Fprint(cmd.OutOrStdout(), text)
				return nil
			}
			for i, f := range forecasts {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := printForecast(cmd.OutOrStdout(), f); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().Int32Var(&replicas, "replicas", 0, "pods to count with (default spec.replicas)")
	cmd.Flags().DurationVar(&readyDelay, "ready-delay", 5*time.Second, "how long a pod takes to become ready")
	output.register(cmd, formatJSON, formatYAML)
	return cmd
}

// forecastAll forecasts each Rollout of the objects, in their order.
func forecastAll(objects []gitsync.Object, replicas int32, readyDelay time.Duration) ([]forecast.Forecast, error) {
	var out []forecast.Forecast
	for _, o := range objects {
		if !isOurs(o, v1alpha1.RolloutKind) {
			continue
		}
		rollout := v1alpha1.Rollout{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &rollout); err != nil {
			return nil, o.Errorf("", "%v", err)
		}
		f, err := forecast.Compute(forecast.Input{
			Name: rollout.Name, Spec: rollout.Spec, Object: o.Object, Lookup: templatesOf(objects, rollout.Namespace),
			Replicas: replicas, ReadyDelay: readyDelay,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(o), err)
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, errNoRollout
	}
	return out, nil
}

func isOurs(o gitsync.Object, kind string) bool {
	return o.GetKind() == kind && o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group
}

// templatesOf looks templates up among the objects.
func templatesOf(objects []gitsync.Object, namespace string) analysis.Lookup {
	return func(ref v1alpha1.AnalysisTemplateRef) (analysis.Template, error) {
		kind := v1alpha1.AnalysisTemplateKind
		if ref.ClusterScope {
			kind = v1alpha1.ClusterAnalysisTemplateKind
		}
		for _, o := range objects {
			if !isOurs(o, kind) || o.GetName() != ref.TemplateName || !ref.ClusterScope && o.GetNamespace() != namespace {
				continue
			}
			data, err := json.Marshal(o.Object)
			if err != nil {
				return analysis.Template{}, err
			}
			var template v1alpha1.AnalysisTemplate // the cluster's kind has the same spec
			if err := json.Unmarshal(data, &template); err != nil {
				return analysis.Template{}, err
			}
			return analysis.Template{Name: ref.TemplateName, ClusterScope: ref.ClusterScope, Spec: template.Spec}, nil
		}
		return analysis.Template{}, fmt.Errorf("%s %q is not in these files: name the file that declares it as well", kind, ref.TemplateName)
	}
}

func printForecast(out io.Writer, f forecast.Forecast) error {
	how := "by pod counts alone"
	if f.Routed {
		how = "by weight"
	}
	if f.Strategy == "blueGreen" {
		how = "all at once"
	}
	fmt.Fprintf(out, "Rollout %s: %s, traffic moves %s, %d pods\n\n", f.Rollout, f.Strategy, how, f.Replicas)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tWHAT\tFROM\tLASTS\tASKED\tSHARE\tNEW PODS\tOLD PODS")
	for _, s := range f.Steps {
		lasts := short(s.Lasts)
		if s.Waits {
			lasts = "until promoted"
		}
		fmt.Fprintf(w, "%d\t%s\t+%s\t%s\t%s\t%s\t%d\t%d\n", s.Index, s.Text, short(s.From), lasts,
			forecast.Percent(s.Asked), forecast.Percent(s.Share), s.NewPods, s.OldPods)
	}
	fmt.Fprintf(w, "\tpromoted\t+%s\n", short(f.PromotedAt))
	if err := w.Flush(); err != nil {
		return err
	}
	if len(f.Metrics) > 0 {
		fmt.Fprintln(out)
		fmt.Fprintln(w, "MEASURED\tMETRIC\tFIRST\tEVERY\tTIMES\tIF ONLY THIS ONE NOTICES A BAD VERSION")
		for _, m := range f.Metrics {
			every := "-"
			if m.Interval > 0 {
				every = short(m.Interval)
			}
			fmt.Fprintf(w, "%s\t%s\t+%s\t%s\t%d\t%s\n", m.Run, m.Metric, short(m.First), every, m.Measured, ifBad(m))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nIf nothing notices: %s\n", met(f.Unnoticed))
	for _, note := range f.Notes {
		fmt.Fprintln(out, "!", note)
	}
	return nil
}

func ifBad(m forecast.Metric) string {
	switch {
	case m.DryRun:
		return "it is a dry run: nothing happens"
	case !m.IfBad.Noticed:
		return "it is promoted all the same"
	}
	return fmt.Sprintf("traffic back at +%s; %s", short(m.IfBad.At), met(m.IfBad.Exposure))
}

// met is how much traffic met the new version.
func met(e forecast.Exposure) string {
	return fmt.Sprintf("at most %s, in all %s of all traffic", forecast.Percent(e.Most), short(e.Traffic))
}

// short is a time for people: 0s, 7.5s, 1m20s, 2h.
func short(s forecast.Seconds) string {
	d := s.Duration().Round(100 * time.Millisecond)
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
