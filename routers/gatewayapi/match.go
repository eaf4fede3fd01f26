package gatewayapi

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// The ways of comparing paths; headers and query parameters know Exact and
// RegularExpression.
const (
	pathPrefix = "PathPrefix"
	exact      = "Exact"
	regex      = "RegularExpression"
)

// comparison is a way of comparing with a value.
type comparison struct{ kind, value string }

func pathOf(match map[string]any) comparison {
	path, _ := match["path"].(map[string]any)
	return comparison{textOr(path, "type", pathPrefix), textOr(path, "value", "/")}
}

func comparisonOf(item map[string]any) comparison {
	return comparison{textOr(item, "type", exact), textOr(item, "value", "")}
}

// meeting is what is known of the requests that two matches have in common.
type meeting int

const (
	// meetSome: there are some, and a match says which.
	meetSome meeting = iota
	// meetNone: there is none.
	meetNone
	// meetUnknown: a regular expression is in the way, so no match can say which.
	meetUnknown
)

// meet returns the match of the requests that meet both a and b. What else is in
// them, in fields that this build doesn't know, is kept; of a, if both have it.
func meet(a, b map[string]any) (map[string]any, meeting) {
	out := runtime.DeepCopyJSON(a)
	for key, value := range b {
		if _, both := out[key]; !both {
			out[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	path, how := meetPaths(pathOf(a), pathOf(b))
	if how != meetSome {
		return nil, how
	}
	out["path"] = map[string]any{"type": path.kind, "value": path.value}
	left, right := textOr(a, "method", ""), textOr(b, "method", "")
	if left != "" && right != "" && left != right {
		return nil, meetNone
	}
	for _, list := range []string{"headers", "queryParams"} {
		items, how := meetItems(a[list], b[list], sameNames[list])
		if how != meetSome {
			return nil, how
		}
		if len(items) > 0 {
			out[list] = items
		}
	}
	return out, meetSome
}

// sameNames compares names of headers and of query parameters.
var sameNames = map[string]func(a, b string) bool{
	"headers":     strings.EqualFold,
	"queryParams": func(a, b string) bool { return a == b },
}

// meetItems is every condition of both lists; a name can be there once only.
func meetItems(a, b any, same func(a, b string) bool) ([]any, meeting) {
	out := []any{}
	for _, item := range mapsIn(a) {
		out = append(out, any(runtime.DeepCopyJSON(item)))
	}
	for _, item := range mapsIn(b) {
		there, found := find(mapsIn(a), item, same)
		switch {
		case !found:
			out = append(out, any(runtime.DeepCopyJSON(item)))
		case there == comparisonOf(item):
		case there.kind == exact && comparisonOf(item).kind == exact:
			return nil, meetNone
		default:
			return nil, meetUnknown
		}
	}
	return out, meetSome
}

// find looks for the condition on the same name.
func find(list []map[string]any, item map[string]any, same func(a, b string) bool) (comparison, bool) {
	for _, other := range list {
		if same(textOr(other, "name", ""), textOr(item, "name", "")) {
			return comparisonOf(other), true
		}
	}
	return comparison{}, false
}

func meetPaths(a, b comparison) (comparison, meeting) {
	switch {
	case covers(a, b):
		return b, meetSome
	case covers(b, a):
		return a, meetSome
	case a.kind == regex || b.kind == regex:
		return comparison{}, meetUnknown
	}
	return comparison{}, meetNone
}

// covers says that every path of b is certainly one of a.
func covers(a, b comparison) bool {
	if a == b {
		return true
	}
	if a.kind != pathPrefix {
		return false
	}
	prefix := strings.TrimSuffix(a.value, "/")
	if b.kind == regex {
		return prefix == "" // what else an expression matches is the data plane's to say
	}
	rest, ok := strings.CutPrefix(b.value, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// within says that every request that meets a certainly meets b.
func within(a, b map[string]any) bool {
	if !covers(pathOf(b), pathOf(a)) {
		return false
	}
	if method := textOr(b, "method", ""); method != "" && method != textOr(a, "method", "") {
		return false
	}
	for _, list := range []string{"headers", "queryParams"} {
		for _, item := range mapsIn(b[list]) {
			if there, found := find(mapsIn(a[list]), item, sameNames[list]); !found || there != comparisonOf(item) {
				return false
			}
		}
	}
	return true
}

// precedence is negative when the Gateway API gives a request that meets both to
// a, positive when to b, and 0 when the order of the rules decides. Where regular
// expressions stand is the data plane's choice; they are taken to come after exact
// paths and before prefixes.
func precedence(a, b map[string]any) int {
	left, right := pathOf(a), pathOf(b)
	byPath := cmp.Compare(pathRank[left.kind], pathRank[right.kind])
	if byPath == 0 && left.kind == pathPrefix {
		byPath = cmp.Compare(len(right.value), len(left.value))
	}
	return cmp.Or(
		byPath,
		cmp.Compare(min(1, len(textOr(b, "method", ""))), min(1, len(textOr(a, "method", "")))),
		cmp.Compare(len(mapsIn(b["headers"])), len(mapsIn(a["headers"]))),
		cmp.Compare(len(mapsIn(b["queryParams"])), len(mapsIn(a["queryParams"]))),
	)
}

var pathRank = map[string]int{exact: 0, regex: 1, pathPrefix: 2}
