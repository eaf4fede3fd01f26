package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// observeExperiments reads the Experiments of the Rollout's steps and, of those of the
// current attempt, their runs: whether a provider answers again is theirs to say.
func (r *Reconciler) observeExperiments(ctx context.Context, seen *observed) error {
	var list v1alpha1.ExperimentList
	if err := r.Client.List(ctx, &list, client.InNamespace(seen.rollout.Namespace),
		client.MatchingFields{ownerIndex: string(seen.rollout.UID)}); err != nil {
		return fmt.Errorf("listing Experiments: %w", err)
	}
	seen.experiments = map[string]*v1alpha1.Experiment{}
	for i := range list.Items {
		e := &list.Items[i]
		out := observeExperiment(e)
		seen.experiments[e.Name] = e
		if err := r.observeDestinations(ctx, seen, e, &out); err != nil {
			return err
		}
		seen.in.Experiments = append(seen.in.Experiments, out)
		if out.Attempt != seen.in.Status.Attempt {
			continue
		}
		if err := r.observeExperimentRuns(ctx, seen, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) observeExperimentRuns(ctx context.Context, seen *observed, e *v1alpha1.Experiment) error {
	var list v1alpha1.AnalysisRunList
	if err := r.Client.List(ctx, &list, client.InNamespace(e.Namespace), client.MatchingFields{ownerIndex: string(e.UID)}); err != nil {
		return fmt.Errorf("listing the AnalysisRuns of Experiment %s: %w", e.Name, err)
	}
	for i := range list.Items {
		run := &list.Items[i]
		seen.runs[run.Name] = run
		out := observeRun(run)
		out.Kind = plan.RunExperiment
		seen.in.Runs = append(seen.in.Runs, out)
	}
	return nil
}

func observeExperiment(e *v1alpha1.Experiment) plan.Experiment {
	out := plan.Experiment{
		Name: e.Name, Hash: e.Labels[v1alpha1.TemplateHashLabel], Attempt: parseRevision(e.Labels[v1alpha1.AttemptLabel]),
		Step: int32(parseRevision(e.Labels[v1alpha1.StepIndexLabel])), Phase: e.Status.Phase, Message: e.Status.Message,
		Terminating: e.Spec.Terminate, Created: e.CreationTimestamp.Time, Routed: e.Annotations[v1alpha1.RoutedAnnotation] != "",
	}
	if e.Status.CompletedAt != nil {
		at := e.Status.CompletedAt.Time
		out.Completed = &at
	}
	if out.Phase == "" {
		out.Phase = v1alpha1.AnalysisPhasePending
	}
	for _, t := range e.Status.TemplateStatuses {
		out.Pods += t.Replicas
	}
	if out.Phase == v1alpha1.AnalysisPhaseFailed || out.Phase == v1alpha1.AnalysisPhaseError {
		for _, run := range e.Status.AnalysisRuns {
			if run.Phase == out.Phase && out.Condemned == "" {
				out.Condemned = run.AnalysisRun
			}
		}
	}
	return out
}

// experimentUses are the steps of a canary that run an Experiment, by their field.
func experimentUses(canary *v1alpha1.CanaryStrategy) map[string]*v1alpha1.RolloutExperimentStep {
	out := map[string]*v1alpha1.RolloutExperimentStep{}
	if canary == nil {
		return out
	}
	for i, step := range canary.Steps {
		if step.Experiment != nil {
			out[fmt.Sprintf("spec.strategy.canary.steps[%d].experiment", i)] = step.Experiment
		}
	}
	return out
}

// refsOf are the templates that the analyses of an Experiment's step name.
func refsOf(step *v1alpha1.RolloutExperimentStep) []v1alpha1.AnalysisTemplateRef {
	var out []v1alpha1.AnalysisTemplateRef
	for _, a := range step.Analyses {
		out = append(out, v1alpha1.AnalysisTemplateRef{TemplateName: a.TemplateName, ClusterScope: a.ClusterScope})
	}
	return out
}

// tryExperiment makes the runs of an Experiment's step as they will be made, so that an
// argument that is missing is said before anything is scaled.
func tryExperiment(seen *observed, step *v1alpha1.RolloutExperimentStep) error {
	// Any values do: what is tried is whether the runs can be made.
	spec, err := makeExperimentSpec(seen, plan.ExperimentWant{Spec: *step, StableHash: "stable", LatestHash: "latest"}, nil)
	if err != nil {
		return err
	}
	values := map[string]string{analysis.ExperimentAvailableAt: "now"}
	if length, err := analysis.ParseDuration(step.Duration); err == nil && length > 0 {
		values[analysis.ExperimentFinishedAt] = "then"
	}
	for _, t := range step.Templates {
		values[analysis.TemplateHashValue(t.Name)], values[analysis.ReplicaSetValue(t.Name)] = "hash", "set"
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(renderExperiment(seen, plan.ExperimentWant{Name: seen.in.Name}, spec))
	if err != nil {
		return fmt.Errorf("reading the Experiment's fields: %w", err)
	}
	var metrics []v1alpha1.Metric
	for _, a := range spec.Analyses {
		run, err := analysis.MakeExperimentRunSpec(a, spec, analysis.ExperimentSource{Values: values, Object: object}, seen.templates.Lookup(inStrategy))
		if err != nil {
			return fmt.Errorf("analyses %s: %w", a.Name, err)
		}
		metrics = append(metrics, run.Metrics...)
	}
	if unmatched := analysis.UnmatchedPatterns(spec, metrics); len(unmatched) > 0 {
		return &analysis.InvalidError{Problems: unmatched}
	}
	return nil
}

// makeExperimentSpec makes the spec of a step's Experiment. templates are the pod
// templates of the versions by hash; nil leaves them out.
func makeExperimentSpec(seen *observed, want plan.ExperimentWant, templates map[string]map[string]any) (v1alpha1.ExperimentSpec, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(seen.rollout)
	if err != nil {
		return v1alpha1.ExperimentSpec{}, fmt.Errorf("reading the Rollout's fields: %w", err)
	}
	source := analysis.ArgumentSource{StableHash: want.StableHash, LatestHash: want.LatestHash, Object: object}
	spec := v1alpha1.ExperimentSpec{
		Duration: want.Spec.Duration, DryRun: want.Spec.DryRun, ScaleDownDelaySeconds: want.Spec.ScaleDownDelaySeconds,
		ProgressDeadlineSeconds: seen.rollout.Spec.ProgressDeadlineSeconds,
		AnalysisRunMetadata:     runMetadata(seen, want),
	}
	for _, a := range want.Spec.Analyses {
		args, err := analysis.ResolveArgs(a.Args, source)
		if err != nil {
			return spec, fmt.Errorf("analyses %s: %w", a.Name, err)
		}
		spec.Analyses = append(spec.Analyses, v1alpha1.ExperimentAnalysisTemplateRef{
			Name: a.Name, TemplateName: a.TemplateName, ClusterScope: a.ClusterScope, Args: args, RequiredForCompletion: a.RequiredForCompletion,
		})
	}
	for _, t := range want.Spec.Templates {
		next := v1alpha1.TemplateSpec{Name: t.Name, Replicas: t.Replicas, MinReadySeconds: seen.rollout.Spec.MinReadySeconds, Selector: t.Selector, Service: t.Service}
		if weightOf(t) > 0 && next.Service == nil {
			next.Service = &v1alpha1.TemplateService{}
		}
		if templates != nil {
			raw, err := experimentTemplate(templates[versionOf(t, want)], t)
			if err != nil {
				return spec, fmt.Errorf("template %s: %w", t.Name, err)
			}
			next.Template = raw
		}
		spec.Templates = append(spec.Templates, next)
	}
	return spec, nil
}

// versionOf is the hash of the version that a template of an Experiment is of.
func versionOf(t v1alpha1.RolloutExperimentTemplate, want plan.ExperimentWant) string {
	if t.SpecRef == v1alpha1.SpecRefStable {
		return want.StableHash
	}
	return want.LatestHash
}

// runMetadata is the declared one with the labels by which a Rollout's runs are found.
func runMetadata(seen *observed, want plan.ExperimentWant) *v1alpha1.AnalysisRunMetadata {
	out := want.Spec.AnalysisRunMetadata.DeepCopy()
	if out == nil {
		out = &v1alpha1.AnalysisRunMetadata{}
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	for key, value := range experimentLabels(seen, want) {
		out.Labels[key] = value
	}
	out.Labels[v1alpha1.RolloutTypeLabel] = string(plan.RunExperiment)
	return out
}

// experimentTemplate is a version's pod template with the metadata of the Experiment.
func experimentTemplate(template map[string]any, t v1alpha1.RolloutExperimentTemplate) (*runtime.RawExtension, error) {
	template = runtime.DeepCopyJSON(template)
	if t.Metadata != nil {
		if _, err := dressTemplate(template, *t.Metadata); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	return &runtime.RawExtension{Raw: text}, nil
}

// rolloutOfRun is the Rollout of a run that belongs to an Experiment of one of its steps.
func rolloutOfRun(ctx context.Context, object client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != v1alpha1.ExperimentKind {
		return nil
	}
	return rolloutOfRevert(ctx, object)
}
