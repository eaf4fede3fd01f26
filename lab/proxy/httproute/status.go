package httproute

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ControllerName is how the gateway signs its entries in status.parents.
const ControllerName gatewayv1.GatewayController = "pushback.dev/lab-gateway"

// Attached are the parentRefs of the route that mean this gateway: Gateways of
// the given name, or all Gateways when the name is empty. The gateway has one
// listener, so that a sectionName or port of a parentRef means it too.
func Attached(route *gatewayv1.HTTPRoute, gateway string) []gatewayv1.ParentReference {
	var attached []gatewayv1.ParentReference
	for _, ref := range route.Spec.ParentRefs {
		if ref.Group != nil && *ref.Group != gatewayv1.GroupName || ref.Kind != nil && *ref.Kind != "Gateway" {
			continue
		}
		if gateway == "" || string(ref.Name) == gateway {
			attached = append(attached, ref)
		}
	}
	return attached
}

// Parents computes status.parents: one entry of ours for each attached parentRef,
// none for those that are gone, and those of other controllers as they were.
// Its conditions carry the route's generation as observedGeneration, so it may be
// written only when the data plane serves that generation. An entry that says the
// same already is kept as it is, times included; now dates the changes.
func Parents(route *gatewayv1.HTTPRoute, attached []gatewayv1.ParentReference, compiled Compiled, now metav1.Time) []gatewayv1.RouteParentStatus {
	parents := []gatewayv1.RouteParentStatus{} // the API refuses null
	for _, entry := range route.Status.Parents {
		if entry.ControllerName != ControllerName {
			parents = append(parents, entry)
		}
	}
	for _, ref := range attached {
		entry := gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: ControllerName}
		if at := slices.IndexFunc(route.Status.Parents, func(p gatewayv1.RouteParentStatus) bool {
			return p.ControllerName == ControllerName && equality.Semantic.DeepEqual(p.ParentRef, ref)
		}); at >= 0 {
			entry.Conditions = slices.Clone(route.Status.Parents[at].Conditions)
		}
		for _, condition := range conditions(compiled) {
			condition.ObservedGeneration = route.Generation
			condition.LastTransitionTime = now
			meta.SetStatusCondition(&entry.Conditions, condition)
		}
		if !partly(compiled) {
			meta.RemoveStatusCondition(&entry.Conditions, string(gatewayv1.RouteConditionPartiallyInvalid))
		}
		parents = append(parents, entry)
	}
	return parents
}

// partly says that some rules are refused and others are served.
func partly(c Compiled) bool { return len(c.Refused) > 0 && len(c.Refused) < c.RuleCount }

func conditions(c Compiled) []metav1.Condition {
	accepted := metav1.Condition{
		Type: string(gatewayv1.RouteConditionAccepted), Status: metav1.ConditionTrue,
		Reason: string(gatewayv1.RouteReasonAccepted), Message: "The gateway serves the route.",
	}
	resolved := metav1.Condition{
		Type: string(gatewayv1.RouteConditionResolvedRefs), Status: metav1.ConditionTrue,
		Reason: string(gatewayv1.RouteReasonResolvedRefs), Message: "All backends resolve.",
	}
	if len(c.Unresolved) > 0 {
		resolved.Status, resolved.Reason = metav1.ConditionFalse, c.Unresolved[0].Reason
		resolved.Message = messages(c.Unresolved)
	}
	list := []metav1.Condition{accepted, resolved}
	switch {
	case partly(c):
		list = append(list, metav1.Condition{
			Type: string(gatewayv1.RouteConditionPartiallyInvalid), Status: metav1.ConditionTrue,
			Reason: c.Refused[0].Reason,
			// The Gateway API asks for these first two words.
			Message: "Dropped Rule: " + messages(c.Refused) + ". Its requests are answered with 500.",
		})
	case len(c.Refused) > 0:
		list[0].Status, list[0].Reason = metav1.ConditionFalse, c.Refused[0].Reason
		list[0].Message = messages(c.Refused) + ". All requests are answered with 500."
	}
	return list
}

func messages(problems []Problem) string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Message)
	}
	return strings.Join(list, "; ")
}
