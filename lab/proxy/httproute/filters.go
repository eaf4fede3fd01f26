package httproute

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// compileFilters knows the two header modifiers, and leaves mirrors to the rule.
// Every other filter is an error: skipping one would serve requests as if it had
// been applied.
func compileFilters(filters []gatewayv1.HTTPRouteFilter, mirrors bool) (table.Edits, error) {
	var edits table.Edits
	for i, f := range filters {
		switch {
		case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			edits.Request = appendEdit(edits.Request, f.RequestHeaderModifier)
		case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			edits.Response = appendEdit(edits.Response, f.ResponseHeaderModifier)
		case f.Type == gatewayv1.HTTPRouteFilterRequestMirror && f.RequestMirror != nil && mirrors:
		default:
			return table.Edits{}, fmt.Errorf("filters[%d]: type %s is not supported by this gateway", i, f.Type)
		}
	}
	return edits, nil
}

func appendEdit(edit table.HeaderEdit, f *gatewayv1.HTTPHeaderFilter) table.HeaderEdit {
	edit.Set = append(edit.Set, headers(f.Set)...)
	edit.Add = append(edit.Add, headers(f.Add)...)
	edit.Remove = append(edit.Remove, f.Remove...)
	return edit
}

func headers(declared []gatewayv1.HTTPHeader) []table.Header {
	var list []table.Header
	for _, h := range declared {
		list = append(list, table.Header{Name: string(h.Name), Value: h.Value})
	}
	return list
}

// mirrors compiles the RequestMirror filters of a rule. One whose backend can't be
// found is dropped, as the Gateway API has it, and told as unresolved.
func (c *compiler) mirrors(rule int, refuse func(string, ...any)) []table.Mirror {
	var list []table.Mirror
	for i, f := range c.route.Spec.Rules[rule].Filters {
		if f.RequestMirror == nil {
			continue
		}
		part, of, err := portion(f.RequestMirror)
		if err != nil {
			refuse("filters[%d].requestMirror.%s", i, err)
			continue
		}
		ref := gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: f.RequestMirror.BackendRef}}
		endpoints, problem := c.resolve(&ref)
		if problem != nil {
			problem.Rule = rule
			problem.Message = fmt.Sprintf("rules[%d].filters[%d].requestMirror: %s", rule, i, problem.Message)
			c.done.Unresolved = append(c.done.Unresolved, *problem)
			continue
		}
		list = append(list, table.Mirror{Part: part, Of: of, Backend: table.Backend{Name: string(ref.Name), Endpoints: endpoints}})
	}
	return list
}

// portion is how many of how many requests are copied; all of them by default.
func portion(f *gatewayv1.HTTPRequestMirrorFilter) (part, of int64, err error) {
	part, of = 100, 100
	switch {
	case f.Percent != nil && f.Fraction != nil:
		return 0, 0, fmt.Errorf("percent and fraction: set one of them")
	case f.Percent != nil:
		part = int64(*f.Percent)
	case f.Fraction != nil:
		part = int64(f.Fraction.Numerator)
		if f.Fraction.Denominator != nil {
			of = int64(*f.Fraction.Denominator)
		}
	}
	if part < 0 || of <= 0 || part > of {
		return 0, 0, fmt.Errorf("%d of %d is no part", part, of)
	}
	return part, of, nil
}
