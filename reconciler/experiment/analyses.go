package experiment

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

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
		if err := r.readTemplates(ctx, seen, []v1alpha1.AnalysisTemplateRef{ref}); err != nil {
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

// readTemplates reads the references and, once each, what they refer to.
func (r *Reconciler) readTemplates(ctx context.Context, seen *observed, refs []v1alpha1.AnalysisTemplateRef) error {
	for _, ref := range refs {
		if _, known := seen.templates[ref]; known {
			continue
		}
		spec, err := r.readTemplate(ctx, seen.experiment.Namespace, ref)
		if apierrors.IsNotFound(err) {
			continue // lookup says so
		}
		if err != nil {
			return fmt.Errorf("reading analysis template %s: %w", ref.TemplateName, err)
		}
		seen.templates[ref] = analysis.Template{Name: ref.TemplateName, ClusterScope: ref.ClusterScope, Spec: spec}
		if err := r.readTemplates(ctx, seen, spec.Templates); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) readTemplate(ctx context.Context, namespace string, ref v1alpha1.AnalysisTemplateRef) (v1alpha1.AnalysisTemplateSpec, error) {
	if ref.ClusterScope {
		template := &v1alpha1.ClusterAnalysisTemplate{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: ref.TemplateName}, template)
		return template.Spec, err
	}
	template := &v1alpha1.AnalysisTemplate{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.TemplateName}, template)
	return template.Spec, err
}

func (seen *observed) lookup(ref v1alpha1.AnalysisTemplateRef) (analysis.Template, error) {
	if found, ok := seen.templates[ref]; ok {
		return found, nil
	}
	kind := v1alpha1.AnalysisTemplateKind
	if ref.ClusterScope {
		kind = v1alpha1.ClusterAnalysisTemplateKind
	}
	return analysis.Template{}, &missingTemplate{text: fmt.Sprintf("%s %s does not exist: create it, or correct the Experiment's analyses", kind, ref.TemplateName)}
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
	return analysis.MakeExperimentRunSpec(a, seen.in.Spec, analysis.ExperimentSource{Values: values, Object: object}, seen.lookup)
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
