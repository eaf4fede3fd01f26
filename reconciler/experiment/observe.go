package experiment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/experiment/plan"
	"github.com/pushback-dev/pushback/reconciler/templates"
	"github.com/pushback-dev/pushback/templatehash"
	"github.com/pushback-dev/pushback/validation"
)

// observed is the input of a decision with the objects that it was read from.
type observed struct {
	in         plan.In
	experiment *v1alpha1.Experiment
	sets       map[string]*appsv1.ReplicaSet // by template name
	services   map[string]*corev1.Service
	runs       map[string]*v1alpha1.AnalysisRun // by analysis name
	templates  templates.Set
}

func (r *Reconciler) observe(ctx context.Context, experiment *v1alpha1.Experiment) (*observed, error) {
	seen := &observed{
		experiment: experiment,
		sets:       map[string]*appsv1.ReplicaSet{}, services: map[string]*corev1.Service{}, runs: map[string]*v1alpha1.AnalysisRun{},
		templates: templates.Set{},
		in: plan.In{
			Now: r.Now(), Name: experiment.Name, Generation: experiment.Generation, Deleting: !experiment.DeletionTimestamp.IsZero(),
			Routed: routed(experiment),
			Spec:   experiment.Spec, Status: experiment.Status, Hashes: map[string]string{},
			Sets: map[string]plan.Set{}, Services: map[string]bool{}, Runs: map[string]plan.Run{},
		},
	}
	for _, p := range validation.Experiment(experiment.Spec) {
		seen.in.Invalid = append(seen.in.Invalid, p.String())
	}
	steps := []func(context.Context, *observed) error{r.observeHashes, r.observeSets, r.observeServices, r.observeRuns}
	if unfinished(experiment) {
		steps = append(steps, r.observeAbsent, r.observeAnalyses, r.observeDryRun)
	}
	for _, step := range steps {
		if err := step(ctx, seen); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// unfinished says that something may still be made: it goes on, or it could not begin
// and may be corrected.
func unfinished(experiment *v1alpha1.Experiment) bool {
	return experiment.DeletionTimestamp.IsZero() && (!experiment.Status.Phase.Completed() || len(experiment.Status.TemplateStatuses) == 0)
}

// routed says that its Rollout may send traffic to its pods. Without a Rollout nobody
// would ever say that it doesn't any more.
func routed(experiment *v1alpha1.Experiment) bool {
	owner := metav1.GetControllerOf(experiment)
	return experiment.Annotations[v1alpha1.RoutedAnnotation] != "" && owner != nil && owner.Kind == v1alpha1.RolloutKind
}

func (r *Reconciler) observeHashes(_ context.Context, seen *observed) error {
	own := map[string]string{}
	for _, t := range seen.in.Spec.Templates {
		if t.Template == nil {
			continue // validation has said so
		}
		hash, err := templatehash.Hash(templatehash.Version, t.Template.Raw)
		if err != nil {
			continue // so it has
		}
		own[t.Name] = hash
		seen.in.Hashes[t.Name] = plan.Hash(seen.in.Name, t.Name, hash)
	}
	var err error
	seen.in.SpecHash, err = plan.SpecHash(seen.in.Spec, own)
	return err
}

func (r *Reconciler) owned(seen *observed) []client.ListOption {
	return []client.ListOption{client.InNamespace(seen.experiment.Namespace), client.MatchingFields{ownerIndex: string(seen.experiment.UID)}}
}

func (r *Reconciler) observeSets(ctx context.Context, seen *observed) error {
	var list appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &list, r.owned(seen)...); err != nil {
		return fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for i := range list.Items {
		seen.addSet(&list.Items[i])
	}
	return nil
}

func (seen *observed) addSet(set *appsv1.ReplicaSet) {
	name := set.Annotations[v1alpha1.ExperimentTemplateAnnotation]
	if name == "" {
		return
	}
	seen.sets[name] = set
	out := plan.Set{
		Replicas: set.Status.Replicas, Ready: set.Status.ReadyReplicas, Available: set.Status.AvailableReplicas,
		Observed: set.Status.ObservedGeneration >= set.Generation, Deleting: !set.DeletionTimestamp.IsZero(),
	}
	if set.Spec.Replicas != nil {
		out.Desired = *set.Spec.Replicas
	}
	seen.in.Sets[name] = out
}

func (r *Reconciler) observeServices(ctx context.Context, seen *observed) error {
	var list corev1.ServiceList
	if err := r.Client.List(ctx, &list, r.owned(seen)...); err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	for i := range list.Items {
		service := &list.Items[i]
		if name := service.Annotations[v1alpha1.ExperimentTemplateAnnotation]; name != "" {
			seen.services[name], seen.in.Services[name] = service, true
		}
	}
	return nil
}

func (r *Reconciler) observeRuns(ctx context.Context, seen *observed) error {
	var list v1alpha1.AnalysisRunList
	if err := r.Client.List(ctx, &list, r.owned(seen)...); err != nil {
		return fmt.Errorf("listing AnalysisRuns: %w", err)
	}
	byName := map[string]*v1alpha1.AnalysisRun{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	for _, a := range seen.in.Spec.Analyses {
		if run, ok := byName[plan.RunName(seen.in.Name, a.Name)]; ok {
			seen.addRun(a.Name, run)
		}
	}
	return nil
}

func (seen *observed) addRun(name string, run *v1alpha1.AnalysisRun) {
	seen.runs[name] = run
	out := plan.Run{Phase: run.Status.Phase, Message: run.Status.Message, Terminating: run.Spec.Terminate, Measured: len(run.Status.MetricResults) > 0}
	some := false
	for _, result := range run.Status.MetricResults {
		switch {
		case result.DryRun:
		case result.Count == 0:
			out.Measured = false
		default:
			some = true
		}
	}
	if out.Phase.Completed() && out.Phase != v1alpha1.AnalysisPhaseSuccessful {
		if detail := analysis.Detail(run.Status); detail != "" {
			out.Message = detail
		}
	}
	if run.Spec.Terminate && out.Phase == v1alpha1.AnalysisPhaseSuccessful && !some {
		// Successful by name only: what was not measured is no success (law 10).
		out.Phase, out.Message = v1alpha1.AnalysisPhaseInconclusive, "it was ended before it had measured anything"
	}
	seen.in.Runs[name] = out
}

// observeAbsent reads what the cache lacks and the Experiment is still to have: the
// cache may be behind, or the name be somebody else's.
func (r *Reconciler) observeAbsent(ctx context.Context, seen *observed) error {
	name := seen.in.Name
	for _, t := range seen.in.Spec.Templates {
		if _, known := seen.sets[t.Name]; !known {
			set := &appsv1.ReplicaSet{}
			if found, err := r.look(ctx, seen, "ReplicaSet", plan.SetName(name, t.Name), set); err != nil {
				return err
			} else if found {
				seen.addSet(set)
			}
		}
		if _, known := seen.services[t.Name]; !known && t.Service != nil {
			service := &corev1.Service{}
			if found, err := r.look(ctx, seen, "Service", plan.ServiceName(name, t), service); err != nil {
				return err
			} else if found {
				seen.services[t.Name], seen.in.Services[t.Name] = service, true
			}
		}
	}
	for _, a := range seen.in.Spec.Analyses {
		if _, known := seen.runs[a.Name]; known {
			continue
		}
		run := &v1alpha1.AnalysisRun{}
		if found, err := r.look(ctx, seen, "AnalysisRun", plan.RunName(name, a.Name), run); err != nil {
			return err
		} else if found {
			seen.addRun(a.Name, run)
		}
	}
	return nil
}

// look reads an object by the name that is to be ours; found if it is. One of
// somebody else stands in the way.
func (r *Reconciler) look(ctx context.Context, seen *observed, kind, name string, into client.Object) (found bool, err error) {
	key := types.NamespacedName{Namespace: seen.experiment.Namespace, Name: name}
	err = r.Live.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading %s %s: %w", kind, key, err)
	case metav1.IsControlledBy(into, seen.experiment):
		return true, nil
	}
	owner := "nobody"
	if controller := metav1.GetControllerOf(into); controller != nil {
		owner = fmt.Sprintf("%s %s (uid %s)", controller.Kind, controller.Name, controller.UID)
	}
	seen.in.Missing = append(seen.in.Missing, fmt.Sprintf("the name of %s %s, which belongs to %s: delete it, or rename the Experiment", kind, key, owner))
	return false, nil
}

// observeDryRun asks the API server whether it would take the ReplicaSets before the
// first of them is made, unknown fields refused.
func (r *Reconciler) observeDryRun(ctx context.Context, seen *observed) error {
	if len(seen.in.Invalid)+len(seen.in.Missing) > 0 || len(seen.in.Status.TemplateStatuses) > 0 {
		return nil
	}
	for i, t := range seen.in.Spec.Templates {
		if _, exists := seen.sets[t.Name]; exists {
			continue
		}
		field := fmt.Sprintf("spec.templates[%d].template", i)
		set, err := renderSet(seen, t, 0)
		if err != nil {
			seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf("%s: %v", field, err))
			continue
		}
		err = r.strict().Create(ctx, set, client.DryRunAll, client.FieldOwner(v1alpha1.FieldManagerRollout))
		switch {
		case err == nil:
		case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf("%s: %v", field, err))
		case apierrors.IsAlreadyExists(err):
			return &staleError{what: "ReplicaSet " + set.GetName()}
		case ctx.Err() != nil:
			return err
		default: // a quota, a policy, a webhook in trouble: it may change without us
			seen.in.Missing = append(seen.in.Missing, "the API server does not take the ReplicaSet: "+err.Error())
		}
	}
	return nil
}

// addProblem sorts an error of an analysis into what can't be used and what is missing.
func (seen *observed) addProblem(field string, err error) {
	var missing *templates.MissingError
	if errors.As(err, &missing) {
		seen.in.Missing = append(seen.in.Missing, missing.Error())
		return
	}
	seen.in.Invalid = append(seen.in.Invalid, field+": "+err.Error())
}
