package validation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// maxBackendWeight is the largest weight of a backend in the Gateway API.
const maxBackendWeight = 1_000_000

// ManagedRoutes returns what is wrong with the steps setHeaderRoute and
// setMirrorRoute, with managedRoutes and with maxTrafficWeight of a canary
// strategy; each problem names its field.
func ManagedRoutes(canary v1alpha1.CanaryStrategy) []Problem {
	var c collector
	c.managedNames(canary.TrafficRouting)
	c.maxWeight(canary)
	for i, step := range canary.Steps {
		field := stepField(i)
		if s := step.SetHeaderRoute; s != nil {
			c.managedStep(field+".setHeaderRoute", canary.TrafficRouting, s.Name, routers.HeaderRoutes)
			c.headerMatches(field+".setHeaderRoute.match", s.Match)
		}
		if s := step.SetMirrorRoute; s != nil {
			c.managedStep(field+".setMirrorRoute", canary.TrafficRouting, s.Name, routers.MirrorRoutes)
			if p := s.Percentage; p != nil && (*p < 0 || *p > 100) {
				c.add(field+".setMirrorRoute.percentage", "it is %d and must be 0 to 100", *p)
			}
			for j, match := range s.Match {
				c.requestMatch(fmt.Sprintf("%s.setMirrorRoute.match[%d]", field, j), match)
			}
		}
	}
	return c.list()
}

const routingField = canaryField + ".trafficRouting"

func (c *collector) managedNames(tr *v1alpha1.RolloutTrafficRouting) {
	if tr == nil {
		return
	}
	seen := map[string]bool{}
	for i, route := range tr.ManagedRoutes {
		field := fmt.Sprintf("%s.managedRoutes[%d].name", routingField, i)
		switch {
		case route.Name == "":
			c.add(field, "name the managed route")
		case seen[route.Name]:
			c.add(field, "managed route %q is there twice", route.Name)
		}
		seen[route.Name] = true
	}
}

// maxWeight: a weight is a share of it.
func (c *collector) maxWeight(canary v1alpha1.CanaryStrategy) {
	tr := canary.TrafficRouting
	if tr == nil || tr.MaxTrafficWeight == nil {
		return
	}
	most := *tr.MaxTrafficWeight
	switch {
	case most < 1 || most > maxBackendWeight:
		c.add(routingField+".maxTrafficWeight", "it is %d and must be 1 to %d", most, maxBackendWeight)
		return
	case most != routers.MaxWeight && !routers.Supports(tr, routers.AnyMaxWeight):
		c.add(routingField+".maxTrafficWeight", "no router of trafficRouting has weights other than of %d: leave it out", routers.MaxWeight)
	}
	for i, step := range canary.Steps {
		if w := step.SetWeight; w != nil && *w > most {
			c.add(stepField(i)+".setWeight", "it is %d and maxTrafficWeight is %d: no share is more than the whole", *w, most)
		}
	}
}

// managedStep: the name of a step is that of a managed route, and some router can
// do it.
func (c *collector) managedStep(field string, tr *v1alpha1.RolloutTrafficRouting, name string, needs routers.Capability) {
	switch {
	case tr == nil:
		c.add(field, "it has a meaning with trafficRouting only: without a router nobody looks at requests")
		return
	case !routers.Supports(tr, needs):
		c.add(field, "no router of trafficRouting can carry it out: leave it out, or use one that can, such as gatewayAPI")
	}
	if !slices.ContainsFunc(tr.ManagedRoutes, func(m v1alpha1.MangedRoutes) bool { return m.Name == name }) {
		c.add(field+".name", "%q is not in trafficRouting.managedRoutes, whose order is the precedence of managed routes: add it there", name)
	}
}

func (c *collector) headerMatches(field string, matches []v1alpha1.HeaderRoutingMatch) {
	seen := map[string]bool{}
	for i, match := range matches {
		at := fmt.Sprintf("%s[%d]", field, i)
		c.headerName(at+".headerName", match.HeaderName, seen)
		if match.HeaderValue == nil {
			c.add(at+".headerValue", "it is missing: give it exact, prefix or regex")
			continue
		}
		c.stringMatch(at+".headerValue", *match.HeaderValue)
	}
}

func (c *collector) requestMatch(field string, match v1alpha1.RouteMatch) {
	if match.Method != nil {
		c.stringMatch(field+".method", *match.Method)
		if text := match.Method.Exact; text == "" || !slices.Contains(methods, text) {
			c.add(field+".method", "it must be exactly one of %s: routers don't compare methods otherwise", strings.Join(methods, ", "))
		}
	}
	if match.Path != nil {
		c.stringMatch(field+".path", *match.Path)
		for kind, path := range map[string]string{"exact": match.Path.Exact, "prefix": match.Path.Prefix} {
			if path != "" && path[0] != '/' {
				c.add(field+".path."+kind, "%q must begin with /", path)
			}
		}
	}
	seen := map[string]bool{}
	for name, value := range match.Headers {
		c.headerName(field+".headers["+name+"]", name, seen)
		c.stringMatch(field+".headers["+name+"]", value)
	}
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// headerToken is a header's name by RFC 9110, as the Gateway API has it.
var headerToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+\\-.^_\x60|~]{1,256}$")

// headerName: a name is there once, however it is written.
func (c *collector) headerName(field, name string, seen map[string]bool) {
	switch lower := strings.ToLower(name); {
	case !headerToken.MatchString(name):
		c.add(field, "%q is no name of a header", name)
	case seen[lower]:
		c.add(field, "header %q is compared twice: make one regular expression of both", name)
	default:
		seen[lower] = true
	}
}

// stringMatch has exactly one kind. What a regular expression means, and so
// whether it is one, is for the data plane to say.
func (c *collector) stringMatch(field string, m v1alpha1.StringMatch) {
	set := 0
	for _, text := range []string{m.Exact, m.Prefix, m.Regex} {
		if text != "" {
			set++
		}
	}
	if set != 1 {
		c.add(field, "set exactly one of exact, prefix and regex, with a value")
	}
}
