package experiment

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/experiment/plan"
)

// observeAnalyses reads the templates of the analyses that have no run yet and tries
// each, so that an argument that is missing is said before any pod is started.
func (r *Reconciler) observeAnalyses(ctx context.Context, seen *observed) error {
	if len(seen.in.Invalid) > 0 {
		return nil
	}
	var metrics []v1alpha1.Metric
	all := true
	for i, a := range seen.in.Spec.Analyses {
		if _, made := seen.runs[a.Name]; made {
			all = false
			continue
		}
		ref := v1alpha1.AnalysisTemplateRef{TemplateName: a.TemplateName, ClusterScope: a.ClusterScope}
		if err := seen.templates.Read(ctx, r.Client, seen.experiment.Namespace, []v1alpha1.AnalysisTemplateRef{ref}); err != nil {
			return err
		}
		// Any times do: what is tried is whether the run can be made.
		spec, err := makeRunSpec(seen, a, plan.RunWant{AvailableAt: seen.in.Now, FinishedAt: seen.in.Now})
		if err != nil {
			all = false
			seen.addProblem(fmt.Sprintf("spec.analyses[%d]", i), err)
			continue
		}
		metrics = append(metrics, spec.Metrics...)
	}
	if all && len(seen.in.Spec.Analyses) > 0 {
		for _, p := range analysis.UnmatchedPatterns(seen.in.Spec, metrics) {
			seen.in.Invalid = append(seen.in.Invalid, p.String())
		}
	}
	return nil
}

func makeRunSpec(seen *observed, a v1alpha1.ExperimentAnalysisTemplateRef, want plan.RunWant) (v1alpha1.AnalysisRunSpec, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(seen.experiment)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, fmt.Errorf("reading the Experiment's fields: %w", err)
	}
	values := map[string]string{analysis.ExperimentAvailableAt: want.AvailableAt.UTC().Format(time.RFC3339)}
	if length, err := analysis.ParseDuration(seen.in.Spec.Duration); err == nil && length > 0 {
		values[analysis.ExperimentFinishedAt] = want.FinishedAt.UTC().Format(time.RFC3339)
	}
	for _, t := range seen.in.Spec.Templates {
		values[analysis.TemplateHashValue(t.Name)] = seen.in.Hashes[t.Name]
		values[analysis.ReplicaSetValue(t.Name)] = plan.SetName(seen.in.Name, t.Name)
	}
	return analysis.MakeExperimentRunSpec(a, seen.in.Spec, analysis.ExperimentSource{Values: values, Object: object}, seen.templates.Lookup("the Experiment's analyses"))
}

// renderRun makes the AnalysisRun: a copy of the merged templates, so that later edits
// of theirs don't reach it.
func renderRun(seen *observed, want plan.RunWant) (*v1alpha1.AnalysisRun, error) {
	run := &v1alpha1.AnalysisRun{}
	run.Namespace, run.Name = seen.experiment.Namespace, plan.RunName(seen.in.Name, want.Analysis)
	for _, a := range seen.in.Spec.Analyses {
		if a.Name != want.Analysis {
			continue
		}
		spec, err := makeRunSpec(seen, a, want)
		if err != nil {
			return nil, fmt.Errorf("making AnalysisRun %s: %w", run.Name, err)
		}
		run.Spec = spec
	}
	if more := seen.in.Spec.AnalysisRunMetadata; more != nil {
		run.Labels, run.Annotations = maps.Clone(more.Labels), maps.Clone(more.Annotations)
	}
	run.OwnerReferences = append(run.OwnerReferences, ownerReference(seen.experiment))
	return run, nil
}
