package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// executeExperiments creates, ends and deletes the Experiments of steps.
func (r *Reconciler) executeExperiments(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Experiments {
		if err := r.createExperiment(ctx, seen, want); err != nil {
			return err
		}
	}
	for _, name := range decided.EndExperiments {
		if err := r.endExperiment(ctx, seen.experiments[name]); err != nil {
			return fmt.Errorf("ending Experiment %s: %w", name, err)
		}
	}
	for _, name := range decided.FreeExperiments {
		if err := r.freeExperiment(ctx, seen.experiments[name]); err != nil {
			return fmt.Errorf("letting the pods of Experiment %s go: %w", name, err)
		}
	}
	for _, name := range decided.PruneExperiments {
		live, ok := seen.experiments[name]
		if !ok {
			continue
		}
		if err := r.Client.Delete(ctx, live.DeepCopy(), preconditions(live), client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Experiment %s: %w", name, err)
		}
	}
	return nil
}

func (r *Reconciler) createExperiment(ctx context.Context, seen *observed, want plan.ExperimentWant) error {
	templates := map[string]map[string]any{}
	for _, t := range want.Spec.Templates {
		hash := versionOf(t, want)
		if _, read := templates[hash]; read {
			continue
		}
		template, err := r.readTemplateOf(ctx, seen, hash)
		if err != nil {
			return fmt.Errorf("reading version %s for Experiment %s: %w", hash, want.Name, err)
		}
		templates[hash] = template
	}
	spec, err := makeExperimentSpec(seen, want, templates)
	if err != nil {
		return fmt.Errorf("making Experiment %s: %w", want.Name, err)
	}
	err = r.Client.Create(ctx, renderExperiment(seen, want, spec), client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsAlreadyExists(err) {
		return r.experimentTaken(ctx, seen, want.Name)
	}
	if err != nil {
		return fmt.Errorf("creating Experiment %s: %w", want.Name, err)
	}
	return nil
}

func renderExperiment(seen *observed, want plan.ExperimentWant, spec v1alpha1.ExperimentSpec) *v1alpha1.Experiment {
	e := &v1alpha1.Experiment{Spec: spec}
	e.Namespace, e.Name = seen.rollout.Namespace, want.Name
	e.Labels = experimentLabels(seen, want)
	if from := seen.rollout.Annotations[v1alpha1.TranslatedFromAnnotation]; from != "" {
		e.Annotations = map[string]string{v1alpha1.TranslatedFromAnnotation: from}
	}
	if weights := weightsOf(want.Spec); weights != "" && seen.router != nil {
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[v1alpha1.RoutedAnnotation] = weights
	}
	e.OwnerReferences = append(e.OwnerReferences, ownerReference(seen.rollout))
	return e
}

// experimentTaken tells a cache that is behind from a name that somebody else has.
func (r *Reconciler) experimentTaken(ctx context.Context, seen *observed, name string) error {
	e := &v1alpha1.Experiment{}
	key := types.NamespacedName{Namespace: seen.rollout.Namespace, Name: name}
	err := r.Live.Get(ctx, key, e)
	switch {
	case apierrors.IsNotFound(err), err == nil && metav1.IsControlledBy(e, seen.rollout):
		return &staleError{what: "Experiment " + name}
	case err != nil:
		return fmt.Errorf("reading Experiment %s: %w", key, err)
	}
	err = fmt.Errorf("the name of Experiment %s is taken by one that isn't this Rollout's: delete it", key)
	r.Events.Eventf(seen.rollout, nil, corev1.EventTypeWarning, v1alpha1.ReasonNameTaken, "Rollout", "%s", err.Error())
	return err
}

func experimentLabels(seen *observed, want plan.ExperimentWant) map[string]string {
	return map[string]string{
		v1alpha1.RolloutNameLabel:  seen.rollout.Name,
		v1alpha1.TemplateHashLabel: want.Hash,
		v1alpha1.AttemptLabel:      strconv.FormatInt(want.Attempt, 10),
		v1alpha1.StepIndexLabel:    strconv.FormatInt(int64(want.Step), 10),
	}
}

// readTemplateOf reads the pod template of a version as it was declared: from the live
// ReplicaSet, with fields that this build doesn't know, and without what Pushback has
// put on it.
func (r *Reconciler) readTemplateOf(ctx context.Context, seen *observed, hash string) (map[string]any, error) {
	known, ok := seen.sets[hash]
	if !ok {
		return nil, &staleError{what: "the ReplicaSet of template " + hash}
	}
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(known), set); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &staleError{what: "ReplicaSet " + known.Name}
		}
		return nil, err
	}
	template, _, err := unstructured.NestedMap(set.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	return undress(template, readEphemeral(set.GetAnnotations()))
}

// undress takes off a ReplicaSet's template what Pushback has put on it: the hash, the
// metadata of the role, and what keeps it off the hosts of another version.
func undress(template map[string]any, role ephemeral) (map[string]any, error) {
	for _, part := range []struct {
		field string
		layer layer
		ours  []string
	}{
		{"labels", role.Labels, []string{v1alpha1.TemplateHashLabel, v1alpha1.ArgoTemplateHashLabel}},
		{"annotations", role.Annotations, nil},
	} {
		own, _, err := unstructured.NestedStringMap(template, "metadata", part.field)
		if err != nil {
			return nil, fmt.Errorf("metadata.%s: %w", part.field, err)
		}
		_, bare := part.layer.turn(own, nil)
		for _, key := range part.ours {
			delete(bare, key)
		}
		if len(bare) == 0 {
			unstructured.RemoveNestedField(template, "metadata", part.field)
			continue
		}
		if err := unstructured.SetNestedStringMap(template, bare, "metadata", part.field); err != nil {
			return nil, fmt.Errorf("metadata.%s: %w", part.field, err)
		}
	}
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	return template, dropAvoidance(template)
}

// dropAvoidance takes the rules of addAvoidance out of a template.
func dropAvoidance(template map[string]any) error {
	path := []string{"spec", "affinity", "podAntiAffinity"}
	anti, found, err := unstructured.NestedMap(template, path...)
	if err != nil || !found {
		return err
	}
	for _, list := range []struct {
		name string
		term func(map[string]any) map[string]any
	}{
		{"requiredDuringSchedulingIgnoredDuringExecution", func(item map[string]any) map[string]any { return item }},
		{"preferredDuringSchedulingIgnoredDuringExecution", func(item map[string]any) map[string]any {
			term, _ := item["podAffinityTerm"].(map[string]any)
			return term
		}},
	} {
		items, _ := anti[list.name].([]any)
		kept := slices.DeleteFunc(items, func(item any) bool {
			object, _ := item.(map[string]any)
			var term corev1.PodAffinityTerm
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.term(object), &term)
			return err == nil && ours(term)
		})
		if len(kept) > 0 {
			anti[list.name] = kept
		} else {
			delete(anti, list.name)
		}
	}
	if len(anti) > 0 {
		return unstructured.SetNestedMap(template, anti, path...)
	}
	unstructured.RemoveNestedField(template, path...)
	if affinity, _, _ := unstructured.NestedMap(template, "spec", "affinity"); len(affinity) == 0 {
		unstructured.RemoveNestedField(template, "spec", "affinity")
	}
	return nil
}

// endExperiment carries the uid and not the resourceVersion, as terminate does for runs.
func (r *Reconciler) endExperiment(ctx context.Context, live *v1alpha1.Experiment) error {
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
		return &staleError{what: "the Experiment of the name " + live.Name}
	}
	return client.IgnoreNotFound(err)
}
