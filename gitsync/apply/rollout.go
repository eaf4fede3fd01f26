package apply

import (
	"context"
	"fmt"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// applyRollout applies a Rollout after everything that it names, with its size
// settled and the commit that declares its template noted. The files that the
// template came from are kept first, so that no version is ever rolled out that
// Git can't be brought back to.
func (r *run) applyRollout(ctx context.Context, o *object, of digest) (outcome, error) {
	version, err := r.versionOf(o)
	if err != nil {
		return outcome{}, fmt.Errorf("the pod template: %w", err)
	}
	hash := version.hash
	if err := r.waitsFor(o, version.template); err != nil {
		return outcome{}, err
	}
	live, err := r.mine(ctx, o)
	if err != nil {
		return outcome{}, err
	}
	declared, claimed, err := overlayReplicas(o.declared, live, r.scaled[types.NamespacedName{Namespace: o.declared.GetNamespace(), Name: o.declared.GetName()}])
	if err != nil {
		return outcome{}, err
	}
	if version.elsewhere(r.skipped) {
		// What it was declared as last stands until somebody writes to the workload:
		// its pods are not to be replaced because Git says nothing of them.
		if _, source := liveSource(live); source != "" {
			declared = withAnnotation(declared, v1alpha1.SourceAnnotation, source)
		}
	}
	if hash == "" || version.elsewhere(r.skipped) {
		return r.write(ctx, declared, live, claimed)
	}
	if before, _ := liveSource(live); before.Hash != hash {
		if err := r.tryTemplate(ctx, o.declared, version); err != nil {
			return outcome{}, err
		}
	}
	source, err := sourceOf(r.in, o, live, version)
	if err != nil {
		return outcome{}, err
	}
	declared = withAnnotation(declared, v1alpha1.SourceAnnotation, source)
	if live != nil {
		if err := r.keepSource(ctx, r.in, o, live, version); err != nil {
			return outcome{}, err
		}
		if r.in.Memory.holds(o.id(), live, of) {
			return outcome{Unchanged, live}, nil
		}
	}
	written, err := r.write(ctx, declared, live, claimed)
	if err != nil || live != nil || written.object == nil {
		return written, err
	}
	return written, r.keepSource(ctx, r.in, o, written.object, version)
}

func withAnnotation(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	out := u.DeepCopy()
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	out.SetAnnotations(annotations)
	return out
}

// waitsFor is an error when something that the Rollout names could not be applied.
func (r *run) waitsFor(o *object, template map[string]any) error {
	if len(r.failed) == 0 {
		return nil
	}
	rollout, err := asRollout(o.declared)
	if err != nil {
		return err
	}
	named := refs{}
	named.namedByRollout(rollout)
	named.namedByTemplate(rollout.Namespace, template)
	var waits []string
	for id := range named {
		if r.failed[id] {
			waits = append(waits, id.String())
		}
	}
	if len(waits) == 0 {
		return nil
	}
	sort.Strings(waits)
	return fmt.Errorf("%w: it names %s, which failed", ErrNamedFailed, strings.Join(waits, ", "))
}

// tryTemplate asks the API server whether pods can be made from a new template:
// a strict dry run of its ReplicaSet, which names unknown fields.
func (r *run) tryTemplate(ctx context.Context, declared *unstructured.Unstructured, v version) error {
	if v.selector == nil {
		return nil
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": map[string]any{"namespace": declared.GetNamespace(), "name": SourceName(declared.GetName(), v.hash)},
		"spec":     map[string]any{"replicas": int64(0), "selector": v.selector, "template": v.template},
	}}
	err := r.Own.Create(ctx, set, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict), client.FieldOwner(v1alpha1.FieldManagerGitSync))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("no pods can be made from %s: %w", v.place(), err)
	}
	return nil
}
