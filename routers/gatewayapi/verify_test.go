package gatewayapi

import (
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/routers"
)

func TestC85_Verification(t *testing.T) {
	route := func(parents string) string {
		return "metadata: {generation: 7}\nspec: {parentRefs: [{name: public}]}\nstatus: {parents: [" + parents + "]}"
	}
	parent := func(accepted, resolved string) string {
		return "{parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: public}, controllerName: example.com/gateway, conditions: [" +
			"{type: Accepted, " + accepted + "}, {type: ResolvedRefs, " + resolved + "}]}"
	}
	const good = "status: 'True', observedGeneration: 7"
	cases := map[string]struct {
		route string
		want  routers.Verification
		says  string
	}{
		"taken up":           {route(parent(good, good)), routers.Verified, ""},
		"nothing reported":   {route(""), routers.VerificationUnknown, "Gateway public: does not report"},
		"older generation":   {route(parent("status: 'True', observedGeneration: 6", good)), routers.VerificationPending, "generation 6, the route is at 7"},
		"older resolved":     {route(parent(good, "status: 'True', observedGeneration: 6")), routers.VerificationPending, "ResolvedRefs"},
		"backend missing":    {route(parent(good, "status: 'False', observedGeneration: 7, reason: BackendNotFound, message: no web-canary")), routers.VerificationPending, "BackendNotFound, no web-canary"},
		"not accepted":       {route(parent("status: 'False', observedGeneration: 7, reason: NoMatchingParent", good)), routers.VerificationPending, "Accepted is False: NoMatchingParent"},
		"no generation":      {route(parent("status: 'True'", "status: 'True'")), routers.VerificationUnknown, "does not say"},
		"bad, no generation": {route(parent("status: 'True'", "status: 'False', reason: InvalidKind")), routers.VerificationPending, "InvalidKind"},
		"no conditions":      {route("{parentRef: {name: public}, conditions: []}"), routers.VerificationUnknown, "does not report"},
		"a parent of the past": {route("{parentRef: {name: old}, conditions: [{type: Accepted, status: 'False'}]}, " + parent(good, good)),
			routers.Verified, ""},
		"no parents": {"metadata: {generation: 1}", routers.VerificationUnknown, "no parentRefs"},
		"one of two gateways behind": {
			"metadata: {generation: 2}\nspec: {parentRefs: [{name: a, sectionName: http}, {name: b, namespace: infra, port: 80}]}\nstatus: {parents: [" +
				"{parentRef: {name: a, sectionName: http}, conditions: [{type: Accepted, status: 'True', observedGeneration: 2}, {type: ResolvedRefs, status: 'True', observedGeneration: 2}]}," +
				"{parentRef: {name: b, namespace: infra, port: 80}, conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}",
			routers.VerificationPending, "Gateway infra/b, port 80: Accepted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, message := verification(parse(t, tc.route))
			if got != tc.want || !strings.Contains(message, tc.says) || (tc.says == "") != (message == "") {
				t.Errorf("got %s %q, want %s %q", got, message, tc.want, tc.says)
			}
		})
	}
}
