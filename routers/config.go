package routers

import (
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// GatewayAPIPlugin is the name under which Argo's users write the settings of gatewayAPI.
const GatewayAPIPlugin = "argoproj-labs/gatewayAPI"

// ConfigError says that the settings of a router can't be used: a person must act.
type ConfigError struct {
	// Field below trafficRouting, such as "gatewayAPI.httpRoutes[1].name".
	Field string
	// Problem and what to do about it.
	Problem string
}

// Error names the field and the problem.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("strategy.canary.trafficRouting.%s: %s", e.Field, e.Problem)
}

// GatewayAPI returns the settings of the Gateway API router in one form,
// wherever they were written: as gatewayAPI or under plugins, with httpRoute or
// with httpRoutes. In the result HTTPRoute is empty and HTTPRoutes holds every
// route once. It is nil when the Gateway API isn't used. An error is a
// *ConfigError.
func GatewayAPI(tr *v1alpha1.RolloutTrafficRouting) (*v1alpha1.GatewayAPITrafficRouting, error) {
	if tr == nil {
		return nil, nil
	}
	raw, isPlugin := tr.Plugins[GatewayAPIPlugin]
	switch {
	case tr.GatewayAPI != nil && isPlugin:
		return nil, &ConfigError{Field: "gatewayAPI", Problem: "it is set under plugins as well: keep one of them"}
	case tr.GatewayAPI != nil:
		return routesOf("gatewayAPI", *tr.GatewayAPI)
	case !isPlugin:
		return nil, nil
	}
	field := fmt.Sprintf("plugins[%s]", GatewayAPIPlugin)
	var settings v1alpha1.GatewayAPITrafficRouting
	strict, err := kjson.UnmarshalStrict(raw.Raw, &settings)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, &ConfigError{Field: field, Problem: "only httpRoute, httpRoutes (name, ruleNames, useHeaderRoutes) and namespace are built: " + err.Error()}
	}
	return routesOf(field, settings)
}

// routesOf moves httpRoute into httpRoutes.
func routesOf(field string, in v1alpha1.GatewayAPITrafficRouting) (*v1alpha1.GatewayAPITrafficRouting, error) {
	out := v1alpha1.GatewayAPITrafficRouting{Namespace: in.Namespace}
	seen := map[string]string{}
	add := func(at string, route v1alpha1.GatewayAPIRoute) error {
		if route.Name == "" {
			return &ConfigError{Field: at, Problem: "name the HTTPRoute"}
		}
		if first, twice := seen[route.Name]; twice {
			return &ConfigError{Field: at, Problem: fmt.Sprintf("HTTPRoute %q is named by %s already: keep one of them", route.Name, first)}
		}
		seen[route.Name] = at
		out.HTTPRoutes = append(out.HTTPRoutes, route)
		return checkRuleNames(strings.TrimSuffix(at, ".name"), route.RuleNames)
	}
	if in.HTTPRoute != "" {
		if err := add(field+".httpRoute", v1alpha1.GatewayAPIRoute{Name: in.HTTPRoute}); err != nil {
			return nil, err
		}
	}
	for i, route := range in.HTTPRoutes {
		if err := add(fmt.Sprintf("%s.httpRoutes[%d].name", field, i), route); err != nil {
			return nil, err
		}
	}
	if len(out.HTTPRoutes) == 0 {
		return nil, &ConfigError{Field: field, Problem: "set httpRoute or httpRoutes"}
	}
	return &out, nil
}

func checkRuleNames(field string, names []string) error {
	seen := map[string]struct{}{}
	for i, name := range names {
		at := fmt.Sprintf("%s.ruleNames[%d]", field, i)
		if name == "" {
			return &ConfigError{Field: at, Problem: "name the rule"}
		}
		if _, twice := seen[name]; twice {
			return &ConfigError{Field: at, Problem: fmt.Sprintf("rule %q is named twice", name)}
		}
		seen[name] = struct{}{}
	}
	return nil
}
