package httproute

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// compileRules compiles the YAML of spec.rules in the namespace "shop".
func compileRules(t *testing.T, rules string, objects Objects) Compiled {
	t.Helper()
	return Compile(routeOf(t, rules), objects)
}

func routeOf(t *testing.T, rules string) *gatewayv1.HTTPRoute {
	t.Helper()
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 4}}
	if err := yaml.UnmarshalStrict([]byte(rules), &route.Spec.Rules); err != nil {
		t.Fatal(err)
	}
	return route
}

func service(name string, ports ...corev1.ServicePort) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{Ports: ports},
	}
}

func slice(service, portName string, port int32, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
		Endpoints:   endpoints,
	}
}

func ready(address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
}

func shop() Objects {
	unready := ready("10.0.0.9")
	unready.Conditions.Ready = new(false)
	unknown := ready("10.0.0.3")
	unknown.Conditions.Ready = nil
	ipv6 := slice("stable", "http", 8080, ready("fd00::1"))
	ipv6.AddressType = discoveryv1.AddressTypeIPv6
	elsewhere := slice("stable", "http", 8080, ready("10.9.9.9"))
	elsewhere.Namespace = "other"
	return Objects{
		Services: []corev1.Service{
			service("stable", corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "admin", Port: 81}),
			service("canary", corev1.ServicePort{Name: "http", Port: 80}),
			service("empty", corev1.ServicePort{Port: 80}),
			service("grpc", corev1.ServicePort{Port: 80, AppProtocol: new("kubernetes.io/h2c")}),
			service("udp", corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolUDP}),
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "external"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "foreign"}},
		},
		Slices: []discoveryv1.EndpointSlice{
			slice("stable", "http", 8080, ready("10.0.0.2"), ready("10.0.0.1"), unready, unknown),
			slice("stable", "http", 8080, ready("10.0.0.1")), // twice for a moment
			slice("stable", "admin", 9090, ready("10.0.0.1")),
			slice("canary", "http", 8080, ready("10.0.0.4")),
			ipv6, elsewhere,
		},
	}
}

func TestCompileBackends(t *testing.T) {
	tests := map[string]struct {
		ref        string
		want       table.Backend
		reason     gatewayv1.RouteConditionReason // of the unresolved backend
		complaint  string
		refusedFor string
	}{
		"ready endpoints, sorted, once": {
			ref:  "{name: stable, port: 80, weight: 75}",
			want: table.Backend{Name: "stable", Weight: 75, Endpoints: []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}},
		},
		"the port by the slice's port name": {
			ref:  "{name: stable, port: 81}",
			want: table.Backend{Name: "stable", Weight: 1, Endpoints: []string{"10.0.0.1:9090"}},
		},
		"weight 0 is 0": {
			ref:  "{name: canary, port: 80, weight: 0}",
			want: table.Backend{Name: "canary", Weight: 0, Endpoints: []string{"10.0.0.4:8080"}},
		},
		"kind and group spelled out": {
			ref:  `{group: "", kind: Service, namespace: shop, name: canary, port: 80}`,
			want: table.Backend{Name: "canary", Weight: 1, Endpoints: []string{"10.0.0.4:8080"}},
		},
		"nobody ready is not invalid": {
			ref:  "{name: empty, port: 80}",
			want: table.Backend{Name: "empty", Weight: 1},
		},
		"C85 no such Service": {
			ref: "{name: none, port: 80, weight: 25}", want: table.Backend{Name: "none", Weight: 25},
			reason: gatewayv1.RouteReasonBackendNotFound, complaint: "no Service shop/none",
		},
		"C85 wrong port": {
			ref: "{name: canary, port: 81}", want: table.Backend{Name: "canary", Weight: 1},
			reason: gatewayv1.RouteReasonBackendNotFound, complaint: "canary has no TCP port 81",
		},
		"udp port": {
			ref: "{name: udp, port: 80}", want: table.Backend{Name: "udp", Weight: 1},
			reason: gatewayv1.RouteReasonBackendNotFound, complaint: "no TCP port 80",
		},
		"no port": {
			ref: "{name: canary}", want: table.Backend{Name: "canary", Weight: 1},
			reason: gatewayv1.RouteReasonBackendNotFound, complaint: "names no port",
		},
		"another namespace": {
			ref: "{name: foreign, namespace: other, port: 80}", want: table.Backend{Name: "foreign", Weight: 1},
			reason: gatewayv1.RouteReasonRefNotPermitted, complaint: "other/foreign",
		},
		"another kind": {
			ref: "{kind: Bucket, group: storage.example, name: canary, port: 80}", want: table.Backend{Name: "canary", Weight: 1},
			reason: gatewayv1.RouteReasonInvalidKind, complaint: "only a Service",
		},
		"h2c": {
			ref: "{name: grpc, port: 80}", want: table.Backend{Name: "grpc", Weight: 1},
			reason: gatewayv1.RouteReasonUnsupportedProtocol, complaint: "kubernetes.io/h2c",
		},
		"ExternalName": {
			ref: "{name: external, port: 80}", want: table.Backend{Name: "external", Weight: 1},
			reason: gatewayv1.RouteReasonUnsupportedProtocol, complaint: "ExternalName",
		},
		"filters": {
			ref: `{name: canary, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: "1"}], add: [{name: w, value: "2"}], remove: [z]}}]}`,
			want: table.Backend{Name: "canary", Weight: 1, Endpoints: []string{"10.0.0.4:8080"}, Edits: table.Edits{Request: table.HeaderEdit{
				Set: []table.Header{{Name: "x", Value: "1"}}, Add: []table.Header{{Name: "w", Value: "2"}}, Remove: []string{"z"}}}},
		},
		"a filter that is not supported": {
			ref:        `{name: canary, port: 80, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: stable, port: 80}}}]}`,
			want:       table.Backend{Name: "canary", Weight: 1, Endpoints: []string{"10.0.0.4:8080"}},
			refusedFor: "rules[0].backendRefs[0].filters[0]: type RequestMirror",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := compileRules(t, "- backendRefs: ["+tc.ref+"]", shop())
			rule := got.Table.Rules()[0]
			backend := rule.Backends[0]
			if !strings.Contains(backend.Invalid, tc.complaint) || (backend.Invalid == "") != (tc.complaint == "") {
				t.Errorf("invalid: %q, want %q", backend.Invalid, tc.complaint)
			}
			if diff := cmp.Diff(tc.want, backend, cmpopts.IgnoreFields(table.Backend{}, "Invalid"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("backend (-want +got):\n%s", diff)
			}
			if reason := firstReason(got.Unresolved); reason != string(tc.reason) {
				t.Errorf("reason %q, want %q", reason, tc.reason)
			}
			if !strings.Contains(rule.Refused, tc.refusedFor) || (rule.Refused == "") != (tc.refusedFor == "") {
				t.Errorf("refused: %q, want %q", rule.Refused, tc.refusedFor)
			}
		})
	}
}

func TestCompileMirrors(t *testing.T) {
	tests := map[string]struct {
		filters    string
		want       []table.Mirror
		unresolved gatewayv1.RouteConditionReason
		refused    string
	}{
		"all by default": {filters: "{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}}}",
			want: []table.Mirror{{Part: 100, Of: 100, Backend: table.Backend{Name: "canary", Endpoints: []string{"10.0.0.4:8080"}}}}},
		"percent": {filters: "{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}, percent: 0}}",
			want: []table.Mirror{{Part: 0, Of: 100, Backend: table.Backend{Name: "canary", Endpoints: []string{"10.0.0.4:8080"}}}}},
		"fraction, and another": {filters: "{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}, fraction: {numerator: 1, denominator: 3}}}, {type: RequestMirror, requestMirror: {backendRef: {name: empty, port: 80}, fraction: {numerator: 5}}}",
			want: []table.Mirror{{Part: 1, Of: 3, Backend: table.Backend{Name: "canary", Endpoints: []string{"10.0.0.4:8080"}}}, {Part: 5, Of: 100, Backend: table.Backend{Name: "empty"}}}},
		"no such Service": {filters: "{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}", unresolved: gatewayv1.RouteReasonBackendNotFound},
		"both":            {filters: "{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}, percent: 1, fraction: {numerator: 1}}}", refused: "rules[0].filters[0].requestMirror.percent and fraction"},
		"more than all":   {filters: "{type: RequestMirror, requestMirror: {backendRef: {name: canary, port: 80}, fraction: {numerator: 4, denominator: 3}}}", refused: "4 of 3"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := compileRules(t, "- {backendRefs: [{name: stable, port: 80}], filters: ["+tc.filters+"]}", shop())
			rule := got.Table.Rules()[0]
			if diff := cmp.Diff(tc.want, rule.Mirrors, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("mirrors (-want +got):\n%s", diff)
			}
			if reason := firstReason(got.Unresolved); reason != string(tc.unresolved) {
				t.Errorf("reason %q, want %q", reason, tc.unresolved)
			}
			if !strings.Contains(rule.Refused, tc.refused) || (rule.Refused == "") != (tc.refused == "") {
				t.Errorf("refused %q, want %q", rule.Refused, tc.refused)
			}
		})
	}
}

func firstReason(problems []Problem) string {
	if len(problems) == 0 {
		return ""
	}
	return problems[0].Reason
}

// One bad reference must not cost the others their share.
func TestC85_OneInvalidBackendLeavesTheOthers(t *testing.T) {
	got := compileRules(t, "- backendRefs: [{name: stable, port: 80, weight: 75}, {name: none, port: 80, weight: 25}]", shop())
	rule := got.Table.Rules()[0]
	if rule.Refused != "" || rule.Backends[0].Invalid != "" || rule.Backends[1].Invalid == "" {
		t.Errorf("rule: %+v", rule)
	}
	if len(got.Unresolved) != 1 || len(got.Refused) != 0 {
		t.Errorf("problems: %+v", got)
	}
}

func TestCompileRules(t *testing.T) {
	tests := map[string]struct {
		rule    string
		want    table.Rule
		refused string
	}{
		"nothing said": {
			rule: "{}",
			want: table.Rule{Name: "rules[0]"},
		},
		"matches": {
			rule: `{name: api, matches: [
				{path: {type: Exact, value: /a}, method: POST, headers: [{name: x, value: "1"}, {name: X, value: "2"}], queryParams: [{name: q, value: "3"}]},
				{path: {value: /b}}, {headers: [{name: w, value: "4"}]}]}`,
			want: table.Rule{Name: "api", Matches: []table.Match{
				{Path: table.Value{Kind: table.Exact, Value: "/a"}, Method: "POST",
					Headers: []table.Named{{Name: "x", Value: table.Value{Kind: table.Exact, Value: "1"}}},
					Query:   []table.Named{{Name: "q", Value: table.Value{Kind: table.Exact, Value: "3"}}}},
				{Path: table.Value{Kind: table.Prefix, Value: "/b"}},
				{Headers: []table.Named{{Name: "w", Value: table.Value{Kind: table.Exact, Value: "4"}}}},
			}},
		},
		"response headers": {
			rule: `{filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [server]}}]}`,
			want: table.Rule{Name: "rules[0]", Edits: table.Edits{Response: table.HeaderEdit{Remove: []string{"server"}}}},
		},
		"the tighter timeout": {
			rule: "{timeouts: {request: 2s, backendRequest: 500ms}}",
			want: table.Rule{Name: "rules[0]", Timeout: 500 * time.Millisecond},
		},
		"no backend timeout": {
			rule: "{timeouts: {request: 2s, backendRequest: 0s}}",
			want: table.Rule{Name: "rules[0]", Timeout: 2 * time.Second},
		},
		"redirect": {
			rule:    "{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}",
			refused: "rules[0].filters[0]: type RequestRedirect",
		},
		"extension": {
			rule:    "{filters: [{type: ExtensionRef, extensionRef: {group: a.example, kind: B, name: c}}]}",
			refused: "rules[0].filters[0]: type ExtensionRef",
		},
		"retry":       {rule: "{retry: {attempts: 2}}", refused: "rules[0].retry"},
		"persistence": {rule: "{sessionPersistence: {sessionName: s}}", refused: "rules[0].sessionPersistence"},
		"broken path": {rule: `{matches: [{path: {type: RegularExpression, value: "("}}]}`, refused: `rules[0].matches[0].path: the regular expression "("`},
		"odd type":    {rule: `{matches: [{headers: [{name: x, type: Fuzzy, value: "1"}]}]}`, refused: `headers[0]: type "Fuzzy"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := compileRules(t, "["+strings.ReplaceAll(tc.rule, "\t", "")+"]", Objects{})
			rule := got.Table.Rules()[0]
			if tc.refused != "" {
				if !strings.Contains(rule.Refused, tc.refused) {
					t.Errorf("refused %q, want %q", rule.Refused, tc.refused)
				}
				if firstReason(got.Refused) != "UnsupportedValue" {
					t.Errorf("problems: %+v", got.Refused)
				}
				return
			}
			if diff := cmp.Diff(tc.want, rule, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(table.Value{})); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

// A rule whose only match can't be read must not swallow the whole host.
func TestUnreadableMatchCoversNothing(t *testing.T) {
	got := compileRules(t, `
- matches: [{path: {type: RegularExpression, value: "("}}]
- backendRefs: [{name: stable, port: 80}]
`, shop())
	i, ok := got.Table.Find(table.Request{Method: "GET", Path: "/x"})
	if !ok || i != 1 {
		t.Errorf("found rule %d, %v; want 1", i, ok)
	}
}

func TestIPv6Endpoints(t *testing.T) {
	objects := shop()
	objects.Services[0].Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	got := compileRules(t, "- backendRefs: [{name: stable, port: 80}]", objects)
	if diff := cmp.Diff([]string{"[fd00::1]:8080"}, got.Table.Rules()[0].Backends[0].Endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}
