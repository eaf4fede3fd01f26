package gatewayapi

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/pushback-dev/pushback/routers"
)

// conditions are the matches of a managed route in the words of the Gateway API,
// without a path where the route doesn't say one. The problem says why there is
// none for it.
func conditions(route routers.ManagedRoute) (matches []map[string]any, problem string) {
	if route.Header != nil {
		headers, problem := headersOf(route.Header.Match)
		return []map[string]any{{"headers": headers}}, problem
	}
	for _, wanted := range route.Mirror.Match {
		match := map[string]any{}
		if method := wanted.Method; method != nil {
			if method.Kind != routers.MatchExact || !slices.Contains(methods, method.Value) {
				return nil, fmt.Sprintf("it matches the method by %s %q, and an HTTPRoute compares methods exactly, with one of %q", method.Kind, method.Value, methods)
			}
			match["method"] = method.Value
		}
		if path := wanted.Path; path != nil {
			if path.Kind != routers.MatchRegex && path.Value[0] != '/' {
				return nil, fmt.Sprintf("its path %q does not begin with /", path.Value)
			}
			match["path"] = map[string]any{"type": pathKinds[path.Kind], "value": path.Value}
		}
		headers, problem := headersOf(wanted.Headers)
		if problem != "" {
			return nil, problem
		}
		if len(headers) > 0 {
			match["headers"] = headers
		}
		matches = append(matches, match)
	}
	return matches, ""
}

// methods are those of the Gateway API's HTTPMethod.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// pathKinds: a prefix counts whole path elements in the Gateway API, so that
// /api covers /api/v1 and not /apis.
var pathKinds = map[routers.MatchKind]string{
	routers.MatchExact: exact, routers.MatchPrefix: pathPrefix, routers.MatchRegex: regex,
}

// headersOf says prefixes as regular expressions, anchored and with everything
// escaped that RE2, PCRE and POSIX take for more than a character: the Gateway API
// has no prefix of headers. Expressions are handed on as they are; their dialect,
// and whether they match a part or the whole, is the gateway's.
func headersOf(wanted []routers.HeaderMatch) (headers []any, problem string) {
	for _, match := range wanted {
		to := comparison{exact, match.Value.Value}
		switch match.Value.Kind {
		case routers.MatchPrefix:
			to = comparison{regex, "^" + regexp.QuoteMeta(match.Value.Value) + ".*$"}
		case routers.MatchRegex:
			to.kind = regex
		}
		header := map[string]any{"type": to.kind, "name": match.Name, "value": to.value}
		there, found := find(mapsIn(headers), header, sameNames["headers"])
		switch {
		case !found:
			headers = append(headers, header)
		case there != to:
			return nil, fmt.Sprintf("it compares the header %q twice, which an HTTPRoute can't: make one regular expression of both", match.Name)
		}
	}
	return headers, ""
}
