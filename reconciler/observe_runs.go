package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/templates"
)

// inStrategy is where a Rollout names templates.
const inStrategy = "the Rollout's strategy"

// observeTemplates reads the templates and tries every analysis of the spec, so
// that an argument that is missing is said before anything is scaled. While the
// Rollout is at rest nothing hangs on them.
func (r *Reconciler) observeTemplates(ctx context.Context, seen *observed) error {
	seen.templates = templates.Set{}
	uses := append(analysesOf(seen.rollout.Spec.Strategy.Canary), analysesOfBlueGreen(seen.rollout.Spec.Strategy.BlueGreen)...)
	atRest := seen.rollout.Status.Phase == v1alpha1.RolloutPhaseHealthy && seen.rollout.Status.StableRS == seen.in.Template.Hash
	experiments := experimentUses(seen.rollout.Spec.Strategy.Canary)
	if len(uses)+len(experiments) == 0 || atRest {
		return nil
	}
	for _, use := range uses {
		if err := seen.templates.Read(ctx, r.Client, seen.rollout.Namespace, use.analysis.Templates); err != nil {
			return err
		}
	}
	for _, step := range experiments {
		if err := seen.templates.Read(ctx, r.Client, seen.rollout.Namespace, refsOf(step)); err != nil {
			return err
		}
	}
	tried := map[string]error{}
	for _, use := range uses {
		// Any two hashes do: what is tried is whether the analysis can be made.
		_, tried[use.field] = makeRunSpec(seen, use.analysis, "stable", "latest")
	}
	for field, step := range experiments {
		tried[field] = tryExperiment(seen, step)
		if tried[field] == nil {
			tried[field] = r.tryWeights(ctx, seen, *step)
		}
	}
	addProblems(seen, tried)
	return nil
}

// addProblems sorts what is wrong with fields into what can't be used and what is
// missing, each said once.
func addProblems(seen *observed, tried map[string]error) {
	said := map[string]struct{}{}
	for _, field := range slices.Sorted(maps.Keys(tried)) {
		err := tried[field]
		if err == nil {
			continue
		}
		text := field + ": " + err.Error()
		var missing *templates.MissingError
		if errors.As(err, &missing) {
			text = missing.Error()
		}
		if _, twice := said[text]; twice {
			continue
		}
		said[text] = struct{}{}
		if missing != nil {
			seen.in.Missing = append(seen.in.Missing, text)
		} else {
			seen.in.Invalid = append(seen.in.Invalid, text)
		}
	}
}

// use is one analysis of a spec.
type use struct {
	field    string
	analysis v1alpha1.RolloutAnalysis
}

func analysesOf(canary *v1alpha1.CanaryStrategy) []use {
	if canary == nil {
		return nil
	}
	var out []use
	if canary.Analysis != nil {
		out = append(out, use{field: "spec.strategy.canary.analysis", analysis: canary.Analysis.RolloutAnalysis})
	}
	for i, step := range canary.Steps {
		if step.Analysis != nil {
			out = append(out, use{field: fmt.Sprintf("spec.strategy.canary.steps[%d].analysis", i), analysis: *step.Analysis})
		}
	}
	return out
}

func makeRunSpec(seen *observed, of v1alpha1.RolloutAnalysis, stable, latest string) (v1alpha1.AnalysisRunSpec, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(seen.rollout)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, fmt.Errorf("reading the Rollout's fields: %w", err)
	}
	source := analysis.ArgumentSource{StableHash: stable, LatestHash: latest, Object: object}
	return analysis.MakeRunSpec(of, source, seen.templates.Lookup(inStrategy))
}

// renderRun makes the AnalysisRun: a copy of the merged templates, so that later
// edits of theirs don't reach it.
func renderRun(seen *observed, want plan.RunWant) (*v1alpha1.AnalysisRun, error) {
	stable := want.StableHash
	if stable == "" {
		stable = want.LatestHash // a first version has no other to compare with
	}
	spec, err := makeRunSpec(seen, want.Analysis, stable, want.LatestHash)
	if err != nil {
		return nil, fmt.Errorf("making AnalysisRun %s: %w", want.Name, err)
	}
	run := &v1alpha1.AnalysisRun{Spec: spec}
	run.Namespace = seen.rollout.Namespace
	run.Name = want.Name
	run.Labels = map[string]string{}
	if more := want.Analysis.AnalysisRunMetadata; more != nil {
		for key, value := range more.Labels {
			run.Labels[key] = value
		}
		run.Annotations = more.Annotations
	}
	run.Labels[v1alpha1.RolloutNameLabel] = seen.rollout.Name
	run.Labels[v1alpha1.RolloutTypeLabel] = string(want.Kind)
	run.Labels[v1alpha1.TemplateHashLabel] = want.Hash
	run.Labels[v1alpha1.AttemptLabel] = strconv.FormatInt(want.Attempt, 10)
	run.Labels[v1alpha1.StepIndexLabel] = strconv.FormatInt(int64(want.Step), 10)
	run.OwnerReferences = append(run.OwnerReferences, ownerReference(seen.rollout))
	return run, nil
}

func (r *Reconciler) observeRuns(ctx context.Context, seen *observed) error {
	var list v1alpha1.AnalysisRunList
	if err := r.Client.List(ctx, &list, client.InNamespace(seen.rollout.Namespace),
		client.MatchingFields{ownerIndex: string(seen.rollout.UID)}); err != nil {
		return fmt.Errorf("listing AnalysisRuns: %w", err)
	}
	seen.runs = map[string]*v1alpha1.AnalysisRun{}
	for i := range list.Items {
		run := &list.Items[i]
		seen.runs[run.Name] = run
		seen.in.Runs = append(seen.in.Runs, observeRun(run))
	}
	return nil
}

func observeRun(run *v1alpha1.AnalysisRun) plan.Run {
	out := plan.Run{
		Name: run.Name, Kind: plan.RunKind(run.Labels[v1alpha1.RolloutTypeLabel]),
		Hash: run.Labels[v1alpha1.TemplateHashLabel], Attempt: parseRevision(run.Labels[v1alpha1.AttemptLabel]),
		Step: int32(parseRevision(run.Labels[v1alpha1.StepIndexLabel])), Phase: run.Status.Phase,
		Message: run.Status.Message, Terminating: run.Spec.Terminate, Created: run.CreationTimestamp.Time,
	}
	if out.Phase == "" {
		out.Phase = v1alpha1.AnalysisPhasePending
	}
	if run.Status.CompletedAt != nil {
		at := run.Status.CompletedAt.Time
		out.Completed = &at
	}
	observeProbe(run, &out)
	if out.Kind.OfStage() && endedUnmeasured(run) {
		// It says nothing of the version, so it opens no gate: a person is asked.
		out.Phase, out.Terminating = v1alpha1.AnalysisPhaseInconclusive, false
		out.Message = "it was ended before it had measured anything"
		return out
	}
	if out.Phase.Completed() && out.Phase != v1alpha1.AnalysisPhaseSuccessful {
		out.Detail = analysis.Detail(run.Status)
		out.Measurements = analysis.Lines(run.Status)
	}
	return out
}

// endedUnmeasured says that a run was ended on demand before any of its metrics
// had been measured: Successful by name only.
func endedUnmeasured(run *v1alpha1.AnalysisRun) bool {
	if !run.Spec.Terminate || run.Status.Phase != v1alpha1.AnalysisPhaseSuccessful {
		return false
	}
	for _, result := range run.Status.MetricResults {
		if result.Count > 0 && !result.DryRun {
			return false
		}
	}
	return true
}
