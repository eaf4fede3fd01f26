package httproute

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

func compileMatch(m *gatewayv1.HTTPRouteMatch) (table.Match, error) {
	var match table.Match
	var err error
	if m.Path != nil {
		if match.Path, err = compilePath(m.Path); err != nil {
			return match, fmt.Errorf("path: %w", err)
		}
	}
	if m.Method != nil {
		match.Method = string(*m.Method)
	}
	for i, h := range m.Headers {
		kind := gatewayv1.HeaderMatchExact
		if h.Type != nil {
			kind = *h.Type
		}
		value, err := compileValue(string(kind), h.Value)
		if err != nil {
			return match, fmt.Errorf("headers[%d]: %w", i, err)
		}
		match.Headers = appendFirst(match.Headers, string(h.Name), value)
	}
	for i, q := range m.QueryParams {
		kind := gatewayv1.QueryParamMatchExact
		if q.Type != nil {
			kind = *q.Type
		}
		value, err := compileValue(string(kind), q.Value)
		if err != nil {
			return match, fmt.Errorf("queryParams[%d]: %w", i, err)
		}
		match.Query = append(match.Query, table.Named{Name: string(q.Name), Value: value})
	}
	return match, nil
}

func compilePath(p *gatewayv1.HTTPPathMatch) (table.Value, error) {
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if p.Type != nil {
		kind = *p.Type
	}
	if p.Value != nil {
		value = *p.Value
	}
	if kind == gatewayv1.PathMatchPathPrefix {
		return table.Value{Kind: table.Prefix, Value: value}, nil
	}
	return compileValue(string(kind), value)
}

func compileValue(kind, value string) (table.Value, error) {
	switch kind {
	case "Exact":
		return table.Value{Kind: table.Exact, Value: value}, nil
	case "RegularExpression":
		return table.NewRegexp(value)
	default:
		return table.Value{}, fmt.Errorf("type %q is not supported by this gateway", kind)
	}
}
