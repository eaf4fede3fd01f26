package apply

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// claims are the fields that belong to Pushback, by the object that holds them.
type claims map[ref][]claim

// claim is one that a router makes for a target.
type claim struct {
	routers.Claim
	target routers.Target
}

// asRollout decodes a Rollout that was checked before.
func asRollout(u *unstructured.Unstructured) (*v1alpha1.Rollout, error) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	rollout := &v1alpha1.Rollout{}
	if err := json.Unmarshal(text, rollout); err != nil {
		return nil, fmt.Errorf("%s can't be decoded: %w", describe(u), err)
	}
	return rollout, nil
}

func describe(u *unstructured.Unstructured) string { return refOf(u).String() }

// targetOf is what a router is told of a Rollout; false when nothing of it is routed.
func targetOf(r *v1alpha1.Rollout) (routers.Target, bool) {
	name := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
	if bg := r.Spec.Strategy.BlueGreen; bg != nil {
		return routers.Target{Rollout: name, StableService: bg.ActiveService, CanaryService: bg.PreviewService}, true
	}
	canary := r.Spec.Strategy.Canary
	if canary == nil {
		return routers.Target{}, false
	}
	target := routers.Target{
		Rollout:       name,
		StableService: canary.StableService, CanaryService: canary.CanaryService,
		Routing: canary.TrafficRouting,
	}
	if both := canary.PingPong; both != nil { // their roles alternate; what is claimed goes by name
		target.StableService, target.CanaryService = both.PingService, both.PongService
	}
	return target, true
}

// claimsOf collects the claims of the Rollouts of the tree and of those that
// live in its namespaces: what Git takes out of a Rollout is still the router's
// until the live Rollout has changed.
func (a *Applier) claimsOf(declared []*v1alpha1.Rollout, live []v1alpha1.Rollout) claims {
	out := claims{}
	seen := map[string]bool{}
	add := func(target routers.Target) {
		for _, made := range a.Claims(target) {
			r := ref{Group: made.Group, Kind: made.Kind, Namespace: made.Namespace, Name: made.Name}
			routing, _ := json.Marshal(target.Routing) // two selections of rules of one route are two claims
			key := fmt.Sprint(r, target.StableService, target.CanaryService, made.Fields, string(routing))
			if seen[key] {
				continue
			}
			seen[key] = true
			out[r] = append(out[r], claim{made, target})
		}
	}
	for i := range live {
		if target, routed := targetOf(&live[i]); routed {
			add(target)
		}
		if through := live[i].Status.Routed; through != nil { // not given back yet
			add(routers.Target{
				Rollout:       types.NamespacedName{Namespace: live[i].Namespace, Name: live[i].Name},
				StableService: through.StableService, CanaryService: through.CanaryService, Routing: through.TrafficRouting,
			})
		}
	}
	for _, r := range declared {
		if target, routed := targetOf(r); routed {
			add(target)
		}
	}
	return out
}

// overlay carries the claimed values of the live object over into the declared
// one. It returns the claimed fields too.
func (c claims) overlay(r ref, declared, live *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	var fields []string
	content := declared.Object
	for _, claim := range c[r] {
		var current map[string]any
		if live != nil {
			current = live.Object
		}
		next, err := claim.Overlay(content, current)
		if err != nil {
			return nil, nil, err
		}
		content, fields = next, append(fields, claim.Fields...)
	}
	return &unstructured.Unstructured{Object: content}, fields, nil
}

// replicasField is claimed in a Rollout whose size Git leaves to others.
const replicasField = "spec.replicas"

// firstReplicas is the size of a Rollout for which neither Git nor a scaler has
// said one yet.
const firstReplicas = 1

// overlayReplicas settles spec.replicas. When Git says nothing, or a scaler
// targets the Rollout, the live value is carried over as long as nobody else owns
// it; once somebody does it is left out. A new Rollout starts with what Git says.
func overlayReplicas(declared, live *unstructured.Unstructured, scaled bool) (*unstructured.Unstructured, []string, error) {
	_, stated, _ := unstructured.NestedFieldNoCopy(declared.Object, "spec", "replicas")
	if stated && !scaled {
		return declared, nil, nil
	}
	out := declared.DeepCopy()
	if live == nil {
		if !stated {
			return out, nil, unstructured.SetNestedField(out.Object, int64(firstReplicas), "spec", "replicas")
		}
		return out, nil, nil
	}
	unstructured.RemoveNestedField(out.Object, "spec", "replicas")
	foreign, err := ownedByAnother(live, replicasField)
	if err != nil {
		return nil, nil, err
	}
	value, found, err := unstructured.NestedFieldCopy(live.Object, "spec", "replicas")
	if err != nil || !found || foreign {
		return out, []string{replicasField}, err
	}
	return out, []string{replicasField}, unstructured.SetNestedField(out.Object, value, "spec", "replicas")
}

// scaled are the Rollouts, by namespace and name, that a scaler targets: one of
// the tree, or a HorizontalPodAutoscaler of the cluster (KEDA makes such ones).
func (a *Applier) scaled(ctx context.Context, objects []*object, namespaces []string) (map[types.NamespacedName]bool, error) {
	out := map[types.NamespacedName]bool{}
	for _, o := range objects {
		if o.declared.GetKind() != "HorizontalPodAutoscaler" && o.declared.GetKind() != "ScaledObject" {
			continue
		}
		target, _, _ := unstructured.NestedStringMap(o.declared.Object, "spec", "scaleTargetRef")
		if isRolloutRef(target["apiVersion"], target["kind"]) {
			out[types.NamespacedName{Namespace: o.declared.GetNamespace(), Name: target["name"]}] = true
		}
	}
	for _, ns := range namespaces {
		var list autoscalingv2.HorizontalPodAutoscalerList
		if err := a.Own.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
		}
		for _, scaler := range list.Items {
			target := scaler.Spec.ScaleTargetRef
			if isRolloutRef(target.APIVersion, target.Kind) {
				out[types.NamespacedName{Namespace: ns, Name: target.Name}] = true
			}
		}
	}
	return out, nil
}

func isRolloutRef(apiVersion, kind string) bool {
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind() == schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.RolloutKind}
}

// liveRollouts lists the Rollouts of some namespaces.
func (a *Applier) liveRollouts(ctx context.Context, namespaces []string) ([]v1alpha1.Rollout, error) {
	var out []v1alpha1.Rollout
	for _, ns := range namespaces {
		var list v1alpha1.RolloutList
		if err := a.Own.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("listing Rollouts: %w", err)
		}
		out = append(out, list.Items...)
	}
	return out, nil
}
