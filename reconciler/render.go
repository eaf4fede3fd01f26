package reconciler

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/templatehash"
)

// renderReplicaSet makes the ReplicaSet of a template as unstructured data: the
// template stays as it was declared, with fields that this build doesn't know.
func renderReplicaSet(rollout *v1alpha1.Rollout, want plan.ReplicaSetWant) (*unstructured.Unstructured, error) {
	var template map[string]any
	if err := json.Unmarshal(rollout.Spec.Template.Raw, &template); err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	delete(template, "status")
	labels := hashLabels(rollout, want.Hash)
	if err := mergeLabels(template, labels); err != nil {
		return nil, err
	}
	role := ephemeral{}
	if want.Metadata != nil {
		var err error
		if role, err = dressTemplate(template, *want.Metadata); err != nil {
			return nil, err
		}
	}
	if err := addAvoidance(template, antiAffinityOf(rollout.Spec.Strategy), want.Avoid); err != nil {
		return nil, err
	}
	selector := rollout.Spec.Selector.DeepCopy()
	selector.MatchLabels = maps.Clone(selector.MatchLabels)
	if selector.MatchLabels == nil {
		selector.MatchLabels = map[string]string{}
	}
	selector.MatchLabels[v1alpha1.TemplateHashLabel] = want.Hash
	selectorMap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector)
	if err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	all, err := templateLabels(rollout)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, labels)
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "ReplicaSet",
		"spec": map[string]any{
			"replicas":        int64(want.Replicas),
			"minReadySeconds": int64(rollout.Spec.MinReadySeconds),
			"selector":        selectorMap,
			"template":        template,
		},
	}}
	set.SetNamespace(rollout.Namespace)
	set.SetName(rollout.Name + "-" + want.Hash)
	set.SetLabels(all)
	annotations := marks(map[string]string{v1alpha1.HashVersionAnnotation: templatehash.Version}, want)
	if err := role.annotate(annotations); err != nil {
		return nil, err
	}
	set.SetAnnotations(annotations)
	set.SetOwnerReferences([]metav1.OwnerReference{ownerReference(rollout)})
	return set, nil
}

func hashLabels(rollout *v1alpha1.Rollout, hash string) map[string]string {
	labels := map[string]string{v1alpha1.TemplateHashLabel: hash}
	if rollout.Annotations[v1alpha1.TranslatedFromAnnotation] != "" {
		labels[v1alpha1.ArgoTemplateHashLabel] = hash // queries written for Argo go on working
	}
	return labels
}

// mergeLabels puts labels into a template's metadata.
func mergeLabels(template map[string]any, labels map[string]string) error {
	for key, value := range labels {
		if err := unstructured.SetNestedField(template, value, "metadata", "labels", key); err != nil {
			return fmt.Errorf("spec.template.metadata.labels: %w", err)
		}
	}
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	return nil
}

// templateLabels are the labels that the template declares.
func templateLabels(rollout *v1alpha1.Rollout) (map[string]string, error) {
	var template struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if rollout.Spec.Template == nil {
		return map[string]string{}, nil
	}
	if err := json.Unmarshal(rollout.Spec.Template.Raw, &template); err != nil {
		return nil, fmt.Errorf("spec.template.metadata.labels: %w", err)
	}
	if template.Metadata.Labels == nil {
		return map[string]string{}, nil
	}
	return template.Metadata.Labels, nil
}

// renderMarks returns live with the wanted size and marks.
func renderMarks(live *appsv1.ReplicaSet, want plan.ReplicaSetWant) *appsv1.ReplicaSet {
	next := live.DeepCopy()
	next.Spec.Replicas = &want.Replicas
	next.Annotations = marks(next.Annotations, want)
	return next
}

func marks(annotations map[string]string, want plan.ReplicaSetWant) map[string]string {
	out := maps.Clone(annotations)
	if out == nil {
		out = map[string]string{}
	}
	out[v1alpha1.RevisionAnnotation] = strconv.FormatInt(want.Revision, 10)
	set := func(key, value string) {
		if value == "" {
			delete(out, key)
			return
		}
		out[key] = value
	}
	set(v1alpha1.RoleAnnotation, want.Role)
	deadline := ""
	if want.ScaleDownAt != nil {
		deadline = want.ScaleDownAt.UTC().Format(time.RFC3339)
	}
	set(v1alpha1.ScaleDownDeadlineAnnotation, deadline)
	return out
}

func ownerReference(rollout *v1alpha1.Rollout) metav1.OwnerReference {
	return *metav1.NewControllerRef(rollout, v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
}

// renderRevert makes the Revert. It has no owner: it outlives its Rollout.
func renderRevert(rollout *v1alpha1.Rollout, want *plan.RevertWant) *v1alpha1.Revert {
	revert := &v1alpha1.Revert{Spec: want.Spec}
	revert.Namespace = rollout.Namespace
	revert.Name = want.Name
	revert.Spec.Rollout = v1alpha1.RevertRollout{Namespace: rollout.Namespace, Name: rollout.Name, UID: string(rollout.UID)}
	revert.Labels = map[string]string{
		v1alpha1.RolloutNameLabel:  rollout.Name,
		v1alpha1.TemplateHashLabel: want.Spec.Rejected,
		v1alpha1.AttemptLabel:      strconv.FormatInt(want.Spec.Attempt, 10),
	}
	return revert
}
