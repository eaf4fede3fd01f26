// Package httproute turns an HTTPRoute, the Services it names and their
// EndpointSlices into the gateway's routing table, and says in the words of the
// Gateway API what of it could not be honoured.
//
// PURE: it imports no client, no net, no os and no logger; times are arguments.
package httproute

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// Objects are what a route is compiled with: the Services and EndpointSlices of
// its namespace. More than it needs does no harm.
type Objects struct {
	Services []corev1.Service
	Slices   []discoveryv1.EndpointSlice
}

// Compiled is a route as the gateway serves it.
type Compiled struct {
	Table *table.Table
	// Refused are the rules that the gateway can't honour; it answers their
	// requests with 500, and never as if the unknown part were not there.
	Refused []Problem
	// Unresolved are the backends that don't resolve; their share gets 500.
	Unresolved []Problem
	// RuleCount is how many rules the route has.
	RuleCount int
}

// Problem is one thing that the gateway can't honour.
type Problem struct {
	Rule    int    // index into the route's rules
	Reason  string // a reason of the Gateway API
	Message string // names the field and what is wrong with it
}

// Compile never fails: what it can't honour is in the result.
func Compile(route *gatewayv1.HTTPRoute, objects Objects) Compiled {
	c := compiler{route: route, objects: objects}
	rules := make([]table.Rule, 0, len(route.Spec.Rules))
	for i := range route.Spec.Rules {
		rules = append(rules, c.rule(i))
	}
	hostnames := make([]string, 0, len(route.Spec.Hostnames))
	for _, h := range route.Spec.Hostnames {
		hostnames = append(hostnames, string(h))
	}
	c.done.Table = table.New(hostnames, rules)
	c.done.RuleCount = len(rules)
	return c.done
}

type compiler struct {
	route   *gatewayv1.HTTPRoute
	objects Objects
	done    Compiled
}

func (c *compiler) rule(i int) table.Rule {
	spec := &c.route.Spec.Rules[i]
	rule := table.Rule{Name: ruleName(i, spec)}
	var problems []string
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("rules[%d].", i)+fmt.Sprintf(format, args...))
	}
	for j := range spec.Matches {
		match, err := compileMatch(&spec.Matches[j])
		if err != nil {
			refuse("matches[%d].%s", j, err)
			continue
		}
		rule.Matches = append(rule.Matches, match)
	}
	var err error
	if rule.Edits, err = compileFilters(spec.Filters, true); err != nil {
		refuse("%s", err)
	}
	rule.Mirrors = c.mirrors(i, refuse)
	if rule.Timeout, err = compileTimeouts(spec.Timeouts); err != nil {
		refuse("timeouts.%s", err)
	}
	if spec.Retry != nil {
		refuse("retry is not supported by this gateway")
	}
	if spec.SessionPersistence != nil {
		refuse("sessionPersistence is not supported by this gateway")
	}
	for j := range spec.BackendRefs {
		rule.Backends = append(rule.Backends, c.backend(i, j, refuse))
	}
	if len(problems) > 0 {
		rule.Refused = strings.Join(problems, "; ")
		c.done.Refused = append(c.done.Refused, Problem{
			Rule: i, Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: rule.Refused,
		})
		// Without its unreadable matches a rule would cover every request.
		if len(rule.Matches) == 0 && len(spec.Matches) > 0 {
			rule.Matches = []table.Match{nothing}
		}
	}
	return rule
}

// nothing covers no request: no request has an empty path.
var nothing = table.Match{Path: table.Value{Kind: table.Exact, Value: ""}}

func ruleName(i int, spec *gatewayv1.HTTPRouteRule) string {
	if spec.Name != nil {
		return string(*spec.Name)
	}
	return fmt.Sprintf("rules[%d]", i)
}

func compileTimeouts(t *gatewayv1.HTTPRouteTimeouts) (time.Duration, error) {
	if t == nil {
		return 0, nil
	}
	request, err := parseDuration("request", t.Request)
	if err != nil {
		return 0, err
	}
	// The gateway never tries twice, so that one request to a backend is the
	// whole request and the tighter bound holds for both.
	backend, err := parseDuration("backendRequest", t.BackendRequest)
	if err != nil {
		return 0, err
	}
	if request == 0 || backend != 0 && backend < request {
		return backend, nil
	}
	return request, nil
}

func parseDuration(field string, d *gatewayv1.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	v, err := time.ParseDuration(string(*d))
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%s: %q is not a duration such as 1s or 500ms", field, *d)
	}
	return v, nil
}
