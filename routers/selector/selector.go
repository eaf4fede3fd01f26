// Package selector puts the template hash of a version into the selector of a
// Service, and takes it out. It is shared by all routers' Rollouts and imports
// no router.
package selector

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

var serviceKind = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// Apply gives the Service the selector of a version; an empty hash takes the
// hash out. The rest of the selector stays. It reads through live, which must not
// be a cache, makes no write when the selector is right, and a write carries the
// uid and resourceVersion of what was read (apierrors.IsConflict when somebody
// else wrote). It needs the verbs get and patch on Services.
//
// Errors: *routers.NotFoundError; *routers.InvalidError for a Service without a
// selector, whose endpoints are somebody's by hand.
func Apply(ctx context.Context, c client.Client, live client.Reader, name types.NamespacedName, hash string) error {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(serviceKind)
	if err := live.Get(ctx, name, service); apierrors.IsNotFound(err) {
		return &routers.NotFoundError{Kind: serviceKind.Kind, Name: name}
	} else if err != nil {
		return fmt.Errorf("reading Service %s: %w", name, err)
	}
	selector, _, err := unstructured.NestedStringMap(service.Object, "spec", "selector")
	if err != nil {
		return fmt.Errorf("reading Service %s: %w", name, err)
	}
	if selector[v1alpha1.TemplateHashLabel] == hash {
		return nil
	}
	if len(selector) == 0 {
		return &routers.InvalidError{Kind: serviceKind.Kind, Name: name, Field: "spec.selector",
			Problem: "it is empty: give it labels of the Rollout's pod template"}
	}
	body, err := patch(service, hash)
	if err != nil {
		return fmt.Errorf("writing Service %s: %w", name, err)
	}
	patched := &unstructured.Unstructured{}
	patched.SetGroupVersionKind(serviceKind)
	patched.SetNamespace(name.Namespace)
	patched.SetName(name.Name)
	err = c.Patch(ctx, patched, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManagerRouter))
	if err != nil {
		return fmt.Errorf("writing the selector of Service %s: %w", name, err)
	}
	return nil
}

// patch is a JSON merge patch: null removes the key.
func patch(service *unstructured.Unstructured, hash string) ([]byte, error) {
	var value any
	if hash != "" {
		value = hash
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": service.GetUID(), "resourceVersion": service.GetResourceVersion()},
		"spec":     map[string]any{"selector": map[string]any{v1alpha1.TemplateHashLabel: value}},
	})
}
