package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// cleanTimeout bounds deleting all of it: pods have their grace, and namespaces
// are slow.
const cleanTimeout = 5 * time.Minute

// Made describes what the World made on an existing cluster.
func (w *World) Made() string {
	text := w.describe(w.made)
	if len(w.crds) > 0 {
		text += ", CustomResourceDefinitions " + strings.Join(w.crds, " ")
	}
	return text
}

func (w *World) describe(objects []client.Object) string {
	var parts []string
	for _, object := range objects {
		kind := "object"
		if gvk, err := apiutil.GVKForObject(object, w.Client.Scheme()); err == nil {
			kind = gvk.Kind
		}
		parts = append(parts, kind+" "+object.GetName())
	}
	return strings.Join(parts, ", ")
}

// clean deletes what the World made on an existing cluster, or says what it leaves.
func (w *World) clean() error {
	if len(w.made)+len(w.crds) == 0 {
		return nil
	}
	if w.existing.Keep {
		fmt.Fprintf(w.progress, "\nleft on the cluster (--keep): %s\nThe next run of the demo deletes it.\n", w.Made())
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	fmt.Fprintf(w.progress, "\ndeleting what the demo made: %s\n", w.Made())
	if err := w.remove(ctx, w.made); err != nil {
		return fmt.Errorf("cleaning up: %w; what is left has the label %s", err, demoMark)
	}
	left, err := w.removeCRDs(ctx)
	if err != nil {
		return fmt.Errorf("cleaning up: %w; what is left has the label %s", err, demoMark)
	}
	if len(left) == 0 {
		left = []string{"nothing of the demo"}
	}
	fmt.Fprintf(w.progress, "left on the cluster: %s; what was there before is as it was\n", strings.Join(left, ", "))
	return nil
}

// remove deletes the objects, the last first, and waits until they are gone.
func (w *World) remove(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		if kind, err := apiutil.GVKForObject(object, w.Client.Scheme()); err == nil && kind.Kind == "Namespace" {
			if err := w.letGo(ctx, object.GetName()); err != nil {
				return err
			}
		}
	}
	for _, object := range slices.Backward(objects) {
		uid := object.GetUID() // another object of the name is not ours
		err := w.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %s: %w", w.describe([]client.Object{object}), err)
		}
	}
	for _, object := range objects {
		if err := w.awaitGone(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// letGo takes the finalizers off the Rollouts of a namespace that goes as a whole:
// no controller is left that would give their traffic back, and nobody to get it.
func (w *World) letGo(ctx context.Context, namespace string) error {
	var rollouts v1alpha1.RolloutList
	if err := w.Client.List(ctx, &rollouts, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil // the kind is not served any more
		}
		return fmt.Errorf("listing the Rollouts in %s: %w", namespace, err)
	}
	for i := range rollouts.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := w.Client.Patch(ctx, &rollouts.Items[i], patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("letting Rollout %s/%s go: %w", namespace, rollouts.Items[i].Name, err)
		}
	}
	return nil
}

func (w *World) awaitGone(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, w.Client.Scheme())
	if err != nil {
		return err
	}
	there := newObject()
	there.SetGroupVersionKind(kind)
	err = wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(object), there)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && there.GetUID() != object.GetUID(), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of %s: %w", w.describe([]client.Object{object}), err)
	}
	return nil
}

// removeCRDs deletes the CRDs that the World installed, but for those that
// somebody else has objects of by now; it says which those are.
func (w *World) removeCRDs(ctx context.Context) (left []string, err error) {
	for _, name := range w.crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, crd); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return left, err
		}
		used, err := w.inUse(ctx, crd)
		if err != nil {
			return left, err
		}
		if used {
			left = append(left, fmt.Sprintf("CustomResourceDefinition %s, because there are objects of it", name))
			continue
		}
		if err := w.remove(ctx, []client.Object{crd}); err != nil {
			return left, err
		}
	}
	return left, nil
}

func (w *World) inUse(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.ListKind})
		if err := w.Client.List(ctx, list, client.Limit(1)); err != nil {
			return false, fmt.Errorf("looking for objects of %s: %w", crd.Name, err)
		}
		return len(list.Items) > 0, nil
	}
	return false, nil
}
