package experiment

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/persist"
	"github.com/pushback-dev/pushback/reconciler/experiment/plan"
)

// execute carries a plan out in the order of its fields. Each write carries what was
// read; the first that fails ends the pass, and the next one decides anew.
func (r *Reconciler) execute(ctx context.Context, seen *observed, decided plan.Plan) error {
	steps := []func(context.Context, *observed, plan.Plan) error{
		r.executeSets, r.executeServices, r.executeStatus, r.executeRuns, r.executeDrops,
	}
	for _, step := range steps {
		if err := step(ctx, seen, decided); err != nil {
			return err
		}
	}
	for _, event := range decided.Events {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(seen.experiment, nil, kind, event.Reason, "Experiment", "%s", event.Message)
	}
	return nil
}

// strict makes the API server refuse unknown and duplicate fields of a template.
func (r *Reconciler) strict() client.Client {
	return client.WithFieldValidation(r.Client, "Strict")
}

func (seen *observed) template(name string) (v1alpha1.TemplateSpec, error) {
	for _, t := range seen.in.Spec.Templates {
		if t.Name == name {
			return t, nil
		}
	}
	return v1alpha1.TemplateSpec{}, &staleError{what: "template " + name}
}

func (r *Reconciler) executeSets(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Sets {
		if !want.Create {
			if err := r.resize(ctx, seen, want); err != nil {
				return err
			}
			continue
		}
		t, err := seen.template(want.Template)
		if err != nil {
			return err
		}
		set, err := renderSet(seen, t, want.Replicas)
		if err != nil {
			return fmt.Errorf("template %s: %w", want.Template, err)
		}
		if err := r.create(ctx, r.strict(), "ReplicaSet", set); err != nil {
			return err
		}
	}
	return nil
}

// create makes an object. One that is there was not seen: the next pass reads it.
func (r *Reconciler) create(ctx context.Context, c client.Client, kind string, object client.Object) error {
	err := c.Create(ctx, object, client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsAlreadyExists(err) {
		return &staleError{what: kind + " " + object.GetName()}
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", kind, object.GetName(), err)
	}
	return nil
}

func (r *Reconciler) resize(ctx context.Context, seen *observed, want plan.SetWant) error {
	live, ok := seen.sets[want.Template]
	if !ok {
		return &staleError{what: "the ReplicaSet of template " + want.Template}
	}
	next := live.DeepCopy()
	next.Spec.Replicas = &want.Replicas
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManagerRollout)); err != nil {
		return fmt.Errorf("scaling ReplicaSet %s: %w", live.Name, err)
	}
	return nil
}

func (r *Reconciler) executeServices(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, name := range decided.Services {
		t, err := seen.template(name)
		if err != nil {
			return err
		}
		service, err := renderService(seen, t)
		if err != nil {
			return fmt.Errorf("template %s: %w", name, err)
		}
		if err := r.create(ctx, r.Client, "Service", service); err != nil {
			return err
		}
	}
	return nil
}

// executeStatus persists the status, over the Experiment that was read.
func (r *Reconciler) executeStatus(ctx context.Context, seen *observed, decided plan.Plan) error {
	if equality.Semantic.DeepEqual(seen.experiment.Status, decided.Status) {
		return nil
	}
	next := seen.experiment.DeepCopy()
	next.Status = *decided.Status.DeepCopy()
	if err := persist.Status(ctx, r.Client, seen.experiment, next, v1alpha1.FieldManagerRollout); err != nil {
		return fmt.Errorf("persisting the status: %w", err)
	}
	return nil
}

func (r *Reconciler) executeRuns(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Runs {
		run, err := renderRun(seen, want)
		if err != nil {
			return err
		}
		if err := r.create(ctx, r.Client, "AnalysisRun", run); err != nil {
			return err
		}
	}
	for _, name := range decided.Terminate {
		if err := r.terminate(ctx, seen.runs[name]); err != nil {
			return err
		}
	}
	return nil
}

// terminate carries the uid and not the resourceVersion, on purpose: terminate only
// ever becomes true, and the status that changes with each measurement must not keep
// it from doing so.
func (r *Reconciler) terminate(ctx context.Context, live *v1alpha1.AnalysisRun) error {
	if live == nil || live.Spec.Terminate {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": live.UID}, "spec": map[string]any{"terminate": true},
	})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsInvalid(err) { // what the API server says of another uid
		return &staleError{what: "AnalysisRun " + live.Name}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("ending AnalysisRun %s: %w", live.Name, err)
	}
	return nil
}

func (r *Reconciler) executeDrops(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, name := range decided.DropServices {
		live, ok := seen.services[name]
		if !ok {
			continue
		}
		uid, version := live.UID, live.ResourceVersion
		err := r.Client.Delete(ctx, live.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Service %s: %w", live.Name, err)
		}
	}
	return nil
}
