package httproute

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// compileFilters knows the two header modifiers. Every other filter is an error:
// skipping one would serve requests as if it had been applied.
func compileFilters(filters []gatewayv1.HTTPRouteFilter) (table.Edits, error) {
	var edits table.Edits
	for i, f := range filters {
		switch {
		case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			edits.Request = appendEdit(edits.Request, f.RequestHeaderModifier)
		case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			edits.Response = appendEdit(edits.Response, f.ResponseHeaderModifier)
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
