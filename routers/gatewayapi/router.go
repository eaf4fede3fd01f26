// Package gatewayapi moves traffic by the backend weights of HTTPRoutes
// (gateway.networking.k8s.io/v1), and carries managed routes out as rules beside
// the weighted ones.
//
// Render, Read and Overlay are pure: they work on unstructured data, so that
// fields that this build doesn't know survive, and the I/O around them is in
// Router. It imports no other router and nothing of the reconciler.
package gatewayapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// Group of the Gateway API.
const Group = "gateway.networking.k8s.io"

// GroupVersionKind of the routes.
var GroupVersionKind = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: Kind}

// Router sets the weights of HTTPRoutes. It needs the verbs get and patch on them.
// It is for one pass, and not for concurrent use.
type Router struct {
	client client.Client
	live   client.Reader
	// seen are the routes as Observe read them, until a write rests on them.
	seen map[types.NamespacedName]*unstructured.Unstructured
}

var _ routers.Router = (*Router)(nil)

// New returns a Router that writes through c and reads through live, which must
// not be a cache: what it reads decides what is scaled down.
func New(c client.Client, live client.Reader) *Router {
	return &Router{client: c, live: live, seen: map[types.NamespacedName]*unstructured.Unstructured{}}
}

// Observe reports the live weights: the largest canary share of any rule of any
// route, Uniform when all agree, and the weakest verification of any route.
// Errors: *routers.NotFoundError, *routers.InvalidError, *routers.ConfigError.
func (r *Router) Observe(ctx context.Context, t routers.Target) (routers.Observed, error) {
	routes, err := routesOf(t)
	if err != nil {
		return routers.Observed{}, err
	}
	var all routers.Observed
	var seen []routers.Observed
	for i, ref := range routes {
		route, err := r.get(ctx, ref.key)
		if err != nil {
			return routers.Observed{}, err
		}
		r.seen[ref.key] = route
		one, err := Read(route.Object, ref.selection)
		if err != nil {
			return routers.Observed{}, err
		}
		if one.Message != "" {
			one.Message = fmt.Sprintf("%s %s: %s", Kind, ref.key.Name, one.Message)
		}
		seen = append(seen, one)
		if i == 0 {
			all = one
			continue
		}
		all = merge(all, one)
	}
	for i, ref := range routes {
		if !routers.SameRoutes(seen[i].Routes, ref.managed(all.Routes)) || !routers.SameExtras(seen[i].Extras, all.Extras) {
			all.RoutesDiffer = true
		}
	}
	return all, nil
}

func merge(a, b routers.Observed) routers.Observed {
	uniform := a.Uniform && b.Uniform && a.Canary == b.Canary
	out := a
	out.RoutesDiffer = a.RoutesDiffer || b.RoutesDiffer
	if len(b.Routes) > len(a.Routes) {
		out.Routes = b.Routes
	}
	if len(b.Extras) > len(a.Extras) {
		out.Extras = b.Extras
	}
	if b.Canary > a.Canary {
		out.Stable, out.Canary = b.Stable, b.Canary
	}
	if worse(b.Verification, a.Verification) {
		out.Verification, out.Message = b.Verification, b.Message
	}
	out.Uniform = uniform
	return out
}

// Apply sets the weights and the managed routes in every route. A write carries
// the uid and resourceVersion of what Observe read, or else of what it reads itself,
// so a conflict (apierrors.IsConflict) means that somebody else wrote the spec; there
// is no write where all is as it should be.
//
// While the canary is to get requests, nothing is written unless all routes can
// be used. A split that gives the canary nothing, neither by weight nor by managed
// route, is written to every route that can be reached, and the error says which
// could not.
func (r *Router) Apply(ctx context.Context, t routers.Target, s routers.Split) error {
	if err := routers.Refuse("gatewayAPI", s, routers.GatewayAPICan...); err != nil {
		return err
	}
	routes, err := routesOf(t)
	if err != nil {
		return err
	}
	var problems []error
	var changes []change
	for _, ref := range routes {
		route, err := r.take(ctx, ref.key)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		here := s
		here.Routes = ref.managed(s.Routes)
		wanted, err := Render(route.Object, ref.selection, here)
		if err != nil {
			problems = append(problems, err)
		}
		if wanted != nil && !reflect.DeepEqual(wanted, route.Object) {
			changes = append(changes, change{live: route, wanted: wanted, managed: len(here.Routes) > 0})
		}
	}
	if len(problems) > 0 && (s.Canary > 0 || len(s.Routes)+len(s.Extras) > 0) {
		return errors.Join(problems...)
	}
	for _, c := range changes {
		if err := r.writeOver(ctx, c); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// Release gives everything to stable and removes the managed routes. A route that is gone, or that no longer
// names both Services, holds nothing of ours.
func (r *Router) Release(ctx context.Context, t routers.Target) error {
	routes, err := routesOf(t)
	if err != nil {
		return err
	}
	var problems []error
	for _, ref := range routes {
		route, err := r.get(ctx, ref.key)
		var gone *routers.NotFoundError
		switch {
		case errors.As(err, &gone):
			continue
		case err != nil:
			problems = append(problems, err)
			continue
		}
		// With all on stable, what can't be rendered is a rule that does not name the canary.
		whole := int32(ref.selection.whole())
		wanted, _ := Render(route.Object, ref.selection, routers.Split{Stable: whole, Max: whole})
		if reflect.DeepEqual(wanted, route.Object) {
			continue
		}
		if err := r.write(ctx, change{live: route, wanted: wanted}); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// Claims names the weights of both Services and the managed rules in the routes,
// and the hash in the Services' selectors.
func (r *Router) Claims(t routers.Target) []routers.Claim {
	claims := routers.ServiceClaims(t)
	routes, err := routesOf(t)
	if err != nil {
		return claims // settings that can't be used name no route; validation refuses them
	}
	for _, ref := range routes {
		claims = append(claims, routers.Claim{
			Group:     Group,
			Kind:      Kind,
			Namespace: ref.key.Namespace,
			Name:      ref.key.Name,
			Fields:    []string{"spec.rules[*].backendRefs[*].weight", "spec.rules[" + mark(t.Rollout.Name) + "*]"},
			Overlay: func(declared, live map[string]any) (map[string]any, error) {
				return Overlay(declared, live, ref.selection)
			},
		})
	}
	return claims
}

// routeRef is one route that the Rollout names.
type routeRef struct {
	key       types.NamespacedName
	selection Selection
	// noHeaders is true when header routes are for other routes.
	noHeaders bool
}

// managed are those of the managed routes that are for this route.
func (r routeRef) managed(all []routers.ManagedRoute) []routers.ManagedRoute {
	if !r.noHeaders {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(route routers.ManagedRoute) bool { return route.Header != nil })
}

func routesOf(t routers.Target) ([]routeRef, error) {
	settings, err := routers.GatewayAPI(t.Routing)
	if err != nil {
		return nil, err
	}
	if settings == nil {
		return nil, &routers.ConfigError{Field: "gatewayAPI", Problem: "it is not set"}
	}
	if settings.Namespace != "" && settings.Namespace != t.Rollout.Namespace {
		return nil, &routers.ConfigError{Field: "gatewayAPI.namespace", Problem: fmt.Sprintf(
			"routes in namespace %q can't be used by a Rollout in namespace %q: move the route, or leave namespace out", settings.Namespace, t.Rollout.Namespace)}
	}
	chosen := slices.ContainsFunc(settings.HTTPRoutes, func(route v1alpha1.GatewayAPIRoute) bool { return route.UseHeaderRoutes })
	var out []routeRef
	for _, route := range settings.HTTPRoutes {
		out = append(out, routeRef{
			noHeaders: chosen && !route.UseHeaderRoutes,
			key:       types.NamespacedName{Namespace: t.Rollout.Namespace, Name: route.Name},
			selection: Selection{
				Rollout:   t.Rollout.Name,
				Namespace: t.Rollout.Namespace,
				Stable:    t.StableService,
				Canary:    t.CanaryService,
				RuleNames: route.RuleNames,
				Max:       routers.Whole(t.Routing),
			},
		})
	}
	return out, nil
}

// take is a route as Observe read it, once; else as it is now.
func (r *Router) take(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if route, ok := r.seen[key]; ok {
		delete(r.seen, key)
		return route, nil
	}
	return r.get(ctx, key)
}

func (r *Router) get(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(GroupVersionKind)
	err := r.live.Get(ctx, key, route)
	switch {
	case err == nil:
		return route, nil
	case meta.IsNoMatchError(err):
		return nil, &routers.NotFoundError{Kind: Kind, Name: key,
			Advice: "the cluster does not serve " + Group + "/v1: install the CRDs of the Gateway API"}
	case apierrors.IsNotFound(err):
		return nil, &routers.NotFoundError{Kind: Kind, Name: key}
	}
	return nil, fmt.Errorf("reading %s %s: %w", Kind, key, err)
}

// statusRaces is how many changes of a route's status a write outlasts.
const statusRaces = 3

// writeOver writes a change, and again where only the status was written meanwhile,
// as gateways do after each change of the weights.
func (r *Router) writeOver(ctx context.Context, c change) error {
	for range statusRaces {
		err := r.write(ctx, c)
		if !apierrors.IsConflict(err) {
			return err
		}
		now, problem := r.get(ctx, client.ObjectKeyFromObject(c.live))
		if problem != nil || !sameSpec(c.live, now) {
			return err
		}
		c.live = now
	}
	return r.write(ctx, c)
}

// sameSpec says that all of two readings that a decision rests on is the same: of
// one object, what has a generation, and the notes of what is ours.
func sameSpec(a, b *unstructured.Unstructured) bool {
	was, is := a.GetAnnotations(), b.GetAnnotations()
	return a.GetUID() == b.GetUID() && a.GetGeneration() > 0 && a.GetGeneration() == b.GetGeneration() &&
		was[RoutesAnnotation] == is[RoutesAnnotation] && was[ExtrasAnnotation] == is[ExtrasAnnotation]
}

// change is a route as it was read, and as it should be.
type change struct {
	live   *unstructured.Unstructured
	wanted map[string]any
	// managed is true when there are managed rules in it.
	managed bool
}

// write sends the rules alone, and the annotation of the managed routes if that
// changes: the list is atomic on the server too.
//
// Managed rules are written strictly: a server that doesn't know the names of
// rules (the standard CRDs before Gateway API 1.4), or how much to mirror (before
// 1.3), would drop these, and nobody could tell the rules again.
func (r *Router) write(ctx context.Context, c change) error {
	spec, _ := c.wanted["spec"].(map[string]any)
	metadata := map[string]any{"uid": c.live.GetUID(), "resourceVersion": c.live.GetResourceVersion()}
	next := &unstructured.Unstructured{Object: c.wanted}
	annotations := map[string]any{}
	for _, key := range []string{RoutesAnnotation, ExtrasAnnotation} {
		text, noted := next.GetAnnotations()[key]
		before, wasNoted := c.live.GetAnnotations()[key]
		switch {
		case noted && text != before:
			annotations[key] = text
		case wasNoted && !noted:
			annotations[key] = nil
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	key := client.ObjectKeyFromObject(c.live)
	body, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"rules": spec["rules"]}})
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", Kind, key, err)
	}
	patched := &unstructured.Unstructured{}
	patched.SetGroupVersionKind(GroupVersionKind)
	patched.SetNamespace(c.live.GetNamespace())
	patched.SetName(c.live.GetName())
	options := []client.PatchOption{client.FieldOwner(v1alpha1.FieldManagerRouter)}
	if c.managed {
		options = append(options, client.FieldValidation(metav1.FieldValidationStrict))
	}
	err = r.client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, body), options...)
	switch {
	case err == nil:
		return nil
	case c.managed && (apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)):
		return &routers.InvalidError{Kind: Kind, Name: key, Field: "spec.rules", Problem: fmt.Sprintf(
			"the API server refuses the rules of the managed routes, which need the CRDs of Gateway API 1.4 or newer: %v", err)}
	}
	return fmt.Errorf("writing the weights of %s %s: %w", Kind, key, err)
}
