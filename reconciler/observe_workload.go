package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// workloadKinds are the kinds that spec.workloadRef may name.
var workloadKinds = map[string]schema.GroupVersionKind{
	"Deployment":  {Group: "apps", Version: "v1", Kind: "Deployment"},
	"ReplicaSet":  {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	"PodTemplate": {Version: "v1", Kind: "PodTemplate"},
}

// templatePath is where a workload holds its template.
func templatePath(kind string) []string {
	if kind == "PodTemplate" {
		return []string{"template"}
	}
	return []string{"spec", "template"}
}

func workloadKey(kind, name string) string { return kind + "/" + name }

// observeWorkloads reads the workload that the spec names, and takes the template
// from it, and the selector where the spec has none; then what this Rollout has
// scaled down before and names no more.
func (r *Reconciler) observeWorkloads(ctx context.Context, seen *observed) error {
	seen.in.Finalizer = controllerutil.ContainsFinalizer(seen.rollout, v1alpha1.WorkloadFinalizer)
	seen.workloads = map[string]*unstructured.Unstructured{}
	if ref := seen.rollout.Spec.WorkloadRef; ref != nil {
		if gvk, known := workloadKinds[ref.Kind]; known && ref.Name != "" && seen.rollout.Spec.Template == nil {
			if err := r.observeWorkload(ctx, seen, gvk, ref.Name); err != nil {
				return err
			}
		}
	}
	if !seen.in.Finalizer {
		return nil // it has scaled down nothing
	}
	return r.observeLeft(ctx, seen)
}

// observeWorkload reads the workload from the API server, as the Rollout itself:
// an old template would be taken for a newer one.
func (r *Reconciler) observeWorkload(ctx context.Context, seen *observed, gvk schema.GroupVersionKind, name string) error {
	live, err := r.workload(ctx, seen.rollout.Namespace, gvk, name)
	if err != nil {
		return err
	}
	var selector *metav1.LabelSelector
	switch {
	case live == nil:
		seen.in.Missing = append(seen.in.Missing, fmt.Sprintf(
			"%s %s/%s does not exist: create it, or correct spec.workloadRef; until then nothing is changed", gvk.Kind, seen.rollout.Namespace, name))
	case live.GetDeletionTimestamp() != nil:
		seen.in.Missing = append(seen.in.Missing, fmt.Sprintf(
			"%s %s/%s is being deleted: create it again, or correct spec.workloadRef; until then nothing is changed", gvk.Kind, seen.rollout.Namespace, name))
	default:
		if owner := metav1.GetControllerOf(live); owner != nil {
			seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf(
				"spec.workloadRef: %s %s belongs to %s %s, which changes it: name that one, or one that stands by itself", gvk.Kind, name, owner.Kind, owner.Name))
		}
		if selector, err = selectorOf(live); err != nil {
			return err
		}
	}
	if err := r.observeRivals(ctx, seen); err != nil {
		return err
	}
	if err := r.resolve(ctx, seen, gvk.Kind, live, selector); err != nil {
		return err
	}
	if gvk.Kind == "PodTemplate" && live != nil {
		seen.in.Workloads = append(seen.in.Workloads, plan.Workload{
			Kind: gvk.Kind, Name: name, Current: true, Gone: live.GetDeletionTimestamp() != nil, Generation: live.GetGeneration(),
		})
		return nil
	}
	return r.addWorkload(ctx, seen, gvk.Kind, name, live, true)
}

// workload reads one; nil when there is none.
func (r *Reconciler) workload(ctx context.Context, namespace string, gvk schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	key := types.NamespacedName{Namespace: namespace, Name: name}
	err := r.Live.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, key, err)
	}
	return live, nil
}

func selectorOf(live *unstructured.Unstructured) (*metav1.LabelSelector, error) {
	found, ok, err := unstructured.NestedMap(live.Object, "spec", "selector")
	if err != nil || !ok {
		return nil, err
	}
	selector := &metav1.LabelSelector{}
	return selector, runtime.DefaultUnstructuredConverter.FromUnstructured(found, selector)
}

// observeRivals refuses a workload that an older Rollout takes its template from:
// both would make the same pods.
func (r *Reconciler) observeRivals(ctx context.Context, seen *observed) error {
	own := seen.rollout
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(own.Namespace)); err != nil {
		return fmt.Errorf("listing Rollouts: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		ref := other.Spec.WorkloadRef
		if other.UID == own.UID || ref == nil || ref.Kind != own.Spec.WorkloadRef.Kind || ref.Name != own.Spec.WorkloadRef.Name {
			continue
		}
		if other.CreationTimestamp.Before(&own.CreationTimestamp) || other.CreationTimestamp.Equal(&own.CreationTimestamp) && other.Name < own.Name {
			seen.in.Invalid = append(seen.in.Invalid, fmt.Sprintf(
				"spec.workloadRef: Rollout %s names %s %s too: one of the two must go, for both would make the same pods", other.Name, ref.Kind, ref.Name))
		}
	}
	return nil
}

// resolve puts the template and the selector into the Rollout as it is seen. The
// template is the one that Git declares, unless somebody has edited the live one
// since; then, and where Git doesn't declare it, it is the live one. While the
// workload is missing, the version that is current goes on.
func (r *Reconciler) resolve(ctx context.Context, seen *observed, kind string, live *unstructured.Unstructured, selector *metav1.LabelSelector) error {
	seen.rollout = seen.rollout.DeepCopy()
	spec := &seen.rollout.Spec
	var template []byte
	if live != nil && live.GetDeletionTimestamp() == nil {
		raw, by, err := templateOf(live, templatePath(kind), declaredTemplate(seen.rollout))
		if err != nil {
			return fmt.Errorf("reading the template of %s %s: %w", kind, live.GetName(), err)
		}
		template, seen.in.ModifiedBy = raw, by
	} else {
		template = declaredTemplate(seen.rollout)
	}
	if template == nil || selector == nil {
		standIn, err := r.standIn(ctx, seen)
		if err != nil {
			return err
		}
		if standIn != nil && selector == nil {
			selector = standIn.selector
		}
		if standIn != nil && template == nil {
			template, seen.fixedHash = standIn.template, seen.rollout.Status.CurrentPodHash
		}
	}
	if template != nil {
		spec.Template = &runtime.RawExtension{Raw: template}
	}
	if spec.Selector == nil {
		spec.Selector = selector
	}
	seen.in.Spec = *spec
	return nil
}

// declaredTemplate is the template as Git declares it; nil when it doesn't.
func declaredTemplate(rollout *v1alpha1.Rollout) []byte {
	var source v1alpha1.Source
	if json.Unmarshal([]byte(rollout.Annotations[v1alpha1.SourceAnnotation]), &source) != nil || len(source.Template) == 0 {
		return nil // observeSource has said what is wrong
	}
	return source.Template
}

// addWorkload adds what is known of a workload with pods.
func (r *Reconciler) addWorkload(ctx context.Context, seen *observed, kind, name string, live *unstructured.Unstructured, current bool) error {
	out := plan.Workload{Kind: kind, Name: name, Current: current, Gone: live == nil || live.GetDeletionTimestamp() != nil}
	if live != nil {
		number := func(fields ...string) int64 {
			n, _, _ := unstructured.NestedInt64(live.Object, fields...) // of the server's own making
			return n
		}
		seen.workloads[workloadKey(kind, name)] = live
		out.Generation = live.GetGeneration()
		out.Desired, out.Available = int32(number("spec", "replicas")), int32(number("status", "availableReplicas"))
		out.Observed = number("status", "observedGeneration") >= out.Generation
		if hold, ok := holdOf(live); ok && hold.Rollout == seen.rollout.Name {
			out.Hold = &plan.WorkloadHold{Original: hold.Replicas, Set: hold.Set}
		}
	}
	mode := ""
	if ref := seen.rollout.Spec.WorkloadRef; ref != nil && current {
		mode = ref.ScaleDown
	}
	if mode != "" && mode != v1alpha1.ScaleDownNever && !out.Gone {
		var err error
		if out.Scaler, err = r.scalerOf(ctx, seen.rollout.Namespace, kind, name); err != nil {
			return err
		}
	}
	seen.in.Workloads = append(seen.in.Workloads, out)
	return nil
}

// holdOf is what is noted on a workload. A note that can't be read was written by
// somebody else, and says nothing.
func holdOf(live *unstructured.Unstructured) (v1alpha1.WorkloadHold, bool) {
	var hold v1alpha1.WorkloadHold
	text, found := live.GetAnnotations()[v1alpha1.WorkloadAnnotation]
	return hold, found && json.Unmarshal([]byte(text), &hold) == nil
}

// scalerOf names the autoscaler that sizes a workload; empty when none does.
func (r *Reconciler) scalerOf(ctx context.Context, namespace, kind, name string) (string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscalerList"})
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
	}
	for i := range list.Items {
		target, _, _ := unstructured.NestedStringMap(list.Items[i].Object, "spec", "scaleTargetRef")
		if target["kind"] == kind && target["name"] == name && schema.FromAPIVersionAndKind(target["apiVersion"], kind).Group == workloadKinds[kind].Group {
			return "HorizontalPodAutoscaler " + list.Items[i].GetName(), nil
		}
	}
	return "", nil
}

// observeLeft reads what this Rollout has scaled down, and names no more.
func (r *Reconciler) observeLeft(ctx context.Context, seen *observed) error {
	held, err := heldWorkloads(ctx, r.workloadReader(), seen.rollout)
	if err != nil {
		return err
	}
	for _, meta := range held {
		kind := meta.GroupVersionKind().Kind
		if ref := seen.rollout.Spec.WorkloadRef; ref != nil && ref.Kind == kind && ref.Name == meta.Name {
			continue
		}
		live, err := r.workload(ctx, meta.Namespace, workloadKinds[kind], meta.Name)
		if err != nil {
			return err
		}
		if err := r.addWorkload(ctx, seen, kind, meta.Name, live, false); err != nil {
			return err
		}
	}
	return nil
}

// heldWorkloads lists the metadata of the workloads that carry a Rollout's note.
func heldWorkloads(ctx context.Context, from client.Reader, rollout *v1alpha1.Rollout) ([]metav1.PartialObjectMetadata, error) {
	var out []metav1.PartialObjectMetadata
	for _, kind := range []string{"Deployment", "ReplicaSet"} {
		list := &metav1.PartialObjectMetadataList{}
		gvk := workloadKinds[kind]
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind + "List"))
		if err := from.List(ctx, list, client.InNamespace(rollout.Namespace), client.MatchingLabels{v1alpha1.RolloutNameLabel: rollout.Name}); err != nil {
			return nil, fmt.Errorf("listing the workloads that were scaled down: %w", err)
		}
		for _, item := range list.Items {
			if _, held := item.Annotations[v1alpha1.WorkloadAnnotation]; held {
				item.SetGroupVersionKind(gvk)
				out = append(out, item)
			}
		}
	}
	return out, nil
}
