package httproute

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

var (
	monday  = metav1.NewTime(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	tuesday = metav1.NewTime(monday.Add(24 * time.Hour))
)

func parentRef(name string) gatewayv1.ParentReference {
	return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
}

func TestAttached(t *testing.T) {
	mesh := gatewayv1.ParentReference{Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")), Name: "lab"}
	spelled := gatewayv1.ParentReference{Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")), Name: "lab"}
	route := &gatewayv1.HTTPRoute{}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{parentRef("other"), mesh, spelled}
	tests := map[string]struct {
		gateway string
		want    []gatewayv1.ParentReference
	}{
		"by name":     {"lab", []gatewayv1.ParentReference{spelled}},
		"any gateway": {"", []gatewayv1.ParentReference{parentRef("other"), spelled}},
		"none":        {"third", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Attached(route, tc.gateway)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParentsSayWhatIsServed(t *testing.T) {
	type condition struct {
		Status  metav1.ConditionStatus
		Reason  string
		Message string // a part of it
	}
	good := condition{"True", "Accepted", "serves"}
	resolved := condition{"True", "ResolvedRefs", "resolve"}
	tests := map[string]struct {
		rules              string
		accepted, resolved condition
		partial            *condition
	}{
		"all well": {"- backendRefs: [{name: stable, port: 80}]", good, resolved, nil},
		"C85 unresolved": {"- backendRefs: [{name: stable, port: 80}, {name: none, port: 80}]", good,
			condition{"False", "BackendNotFound", "rules[0].backendRefs[1]: there is no Service shop/none"}, nil},
		"refused": {"- retry: {attempts: 2}", condition{"False", "UnsupportedValue", "rules[0].retry"}, resolved, nil},
		"partly refused": {"- retry: {attempts: 2}\n- backendRefs: [{name: stable, port: 80}]", good, resolved,
			&condition{"True", "UnsupportedValue", "Dropped Rule: rules[0].retry"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			route := routeOf(t, tc.rules)
			parents := Parents(route, []gatewayv1.ParentReference{parentRef("lab")}, Compile(route, shop()), monday)
			if len(parents) != 1 || parents[0].ControllerName != "pushback.dev/lab-gateway" || parents[0].ParentRef.Name != "lab" {
				t.Fatalf("parents: %+v", parents)
			}
			check := func(kind string, want *condition) {
				got := meta.FindStatusCondition(parents[0].Conditions, kind)
				switch {
				case want == nil && got != nil:
					t.Errorf("%s is there: %+v", kind, got)
				case want == nil:
				case got == nil:
					t.Errorf("no condition %s", kind)
				case got.Status != want.Status || got.Reason != want.Reason || !strings.Contains(got.Message, want.Message):
					t.Errorf("%s: %+v, want %+v", kind, got, want)
				case got.ObservedGeneration != 4 || !got.LastTransitionTime.Equal(&monday):
					t.Errorf("%s: generation %d at %s", kind, got.ObservedGeneration, got.LastTransitionTime)
				}
			}
			check("Accepted", &tc.accepted)
			check("ResolvedRefs", &tc.resolved)
			check("PartiallyInvalid", tc.partial)
		})
	}
}

func TestParentsKeepWhatDidNotChange(t *testing.T) {
	route := routeOf(t, "- backendRefs: [{name: stable, port: 80}]")
	foreign := gatewayv1.RouteParentStatus{ParentRef: parentRef("lab"), ControllerName: "example.com/other",
		Conditions: []metav1.Condition{{Type: "Accepted", Status: "False", Reason: "Busy", ObservedGeneration: 1}}}
	gone := gatewayv1.RouteParentStatus{ParentRef: parentRef("gone"), ControllerName: ControllerName}
	route.Status.Parents = []gatewayv1.RouteParentStatus{foreign, gone}
	attached := []gatewayv1.ParentReference{parentRef("lab"), parentRef("lab2")}

	first := Parents(route, attached, Compile(route, shop()), monday)
	if len(first) != 3 {
		t.Fatalf("parents: %+v", first)
	}
	if diff := cmp.Diff(foreign, first[0]); diff != "" {
		t.Errorf("another controller's entry changed (-want +got):\n%s", diff)
	}
	route.Status.Parents = first
	if diff := cmp.Diff(first, Parents(route, attached, Compile(route, shop()), tuesday)); diff != "" {
		t.Errorf("the same route a day later (-want +got):\n%s", diff)
	}

	route.Generation = 5
	next := Parents(route, attached, Compile(route, shop()), tuesday)
	got := meta.FindStatusCondition(next[1].Conditions, "Accepted")
	if got.ObservedGeneration != 5 || !got.LastTransitionTime.Equal(&monday) {
		t.Errorf("a new generation that is served as well: %+v", got)
	}
	if old := meta.FindStatusCondition(first[1].Conditions, "Accepted"); old.ObservedGeneration != 4 {
		t.Error("Parents changed its input")
	}
}
