package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// workloadView is what spec.workloadRef names.
type workloadView struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	ScaleDown string `json:"scaleDown"`
	// Missing is true when there is no such object.
	Missing bool `json:"missing,omitempty"`
	// Replicas and Available are its own pods, apart from the Rollout's; absent for a
	// PodTemplate, and when it may not be read.
	Replicas  *int32 `json:"replicas,omitempty"`
	Available *int32 `json:"available,omitempty"`
	// GetsBack is the size that was noted when it was scaled down.
	GetsBack *int32 `json:"getsBack,omitempty"`
}

// readWorkload reads the workload of a Rollout; nil when it names none. Who may
// not read it is shown its name alone.
func readWorkload(ctx context.Context, c client.Reader, rollout *v1alpha1.Rollout) (*workloadView, error) {
	ref := rollout.Spec.WorkloadRef
	if ref == nil {
		return nil, nil
	}
	out := &workloadView{Kind: ref.Kind, Name: ref.Name, ScaleDown: cmp.Or(ref.ScaleDown, v1alpha1.ScaleDownNever)}
	key := types.NamespacedName{Namespace: rollout.Namespace, Name: ref.Name}
	var object client.Object
	deployment, set := &appsv1.Deployment{}, &appsv1.ReplicaSet{}
	switch ref.Kind {
	case "Deployment":
		object = deployment
	case "ReplicaSet":
		object = set
	default:
		return out, nil
	}
	err := c.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		out.Missing = true
		return out, nil
	case apierrors.IsForbidden(err):
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, key, explained(err))
	}
	out.Replicas, out.Available = deployment.Spec.Replicas, &deployment.Status.AvailableReplicas
	if object == client.Object(set) {
		out.Replicas, out.Available = set.Spec.Replicas, &set.Status.AvailableReplicas
	}
	var hold v1alpha1.WorkloadHold
	if json.Unmarshal([]byte(object.GetAnnotations()[v1alpha1.WorkloadAnnotation]), &hold) == nil && hold.Rollout == rollout.Name {
		out.GetsBack = &hold.Replicas
	}
	return out, nil
}

// renderWorkload draws a workload as one line.
func renderWorkload(out *strings.Builder, w *workloadView) {
	if w == nil {
		return
	}
	fmt.Fprintf(out, "workload %s %s  scaleDown %s", w.Kind, w.Name, w.ScaleDown)
	switch {
	case w.Missing:
		out.WriteString("  it does not exist")
	case w.Replicas != nil && w.Available != nil:
		fmt.Fprintf(out, "  pods %d of %d available", *w.Available, *w.Replicas)
	}
	if w.GetsBack != nil {
		fmt.Fprintf(out, ", gets back %d", *w.GetsBack)
	}
	out.WriteString("\n")
}

// declaredByWorkload is the template of a Rollout with a workloadRef that is held:
// the one that Git declares. Only the controller reads others.
func declaredByWorkload(rollout *v1alpha1.Rollout) (string, error) {
	var source v1alpha1.Source
	if json.Unmarshal([]byte(rollout.Annotations[v1alpha1.SourceAnnotation]), &source) == nil && len(source.Template) > 0 {
		return source.Hash, nil
	}
	if !apimeta.IsStatusConditionTrue(rollout.Status.Conditions, v1alpha1.HeldCondition) {
		return "", nil
	}
	ref := rollout.Spec.WorkloadRef
	return "", fmt.Errorf("the template of %s %s is held, and Git doesn't say which one it is: name it with --template (status.rejected lists them)", ref.Kind, ref.Name)
}
