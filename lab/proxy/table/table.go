// Package table is the lab gateway's routing table: which rule a request meets,
// by the precedence of the Gateway API, and what that rule does with it.
//
// PURE: it imports no client, no net, no os and no logger. Where tables come from
// (an HTTPRoute, the admin API) and how requests are sent on is for others.
package table

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Table is a set of rules. Make it with New; it does not change afterwards.
type Table struct {
	hostnames []string
	rules     []Rule
	order     []entry // every match of every rule, most specific first
}

// Rule says what happens to the requests that it matches.
type Rule struct {
	// Name is for people: error bodies and the admin API show it.
	Name string
	// Matches are alternatives. None means: every request.
	Matches []Match
	// Refused, if not empty, is why every request of the rule is answered with 500.
	Refused string
	// Timeout bounds one request from its arrival to the end of its answer.
	// 0 means no bound.
	Timeout time.Duration
	// Edits change headers on the way in and out.
	Edits Edits
	// Mirrors get copies of the rule's requests.
	Mirrors []Mirror
	// Backends share the requests by weight. Without any weight above 0, every
	// request is answered with 500.
	Backends []Backend
}

// Backend is one destination of a rule.
type Backend struct {
	// Name identifies it in metrics and in the admin API.
	Name string
	// Weight is relative to the other backends of the rule. 0 gets nothing.
	Weight int64
	// Invalid, if not empty, is why its share of the requests is answered with 500.
	Invalid string
	// Endpoints are the "host:port" that are ready. None means its share is
	// answered with 503.
	Endpoints []string
	// Canary marks the backend that a request with "X-Canary: always" asks for.
	Canary bool
	// Edits change headers on the way to this backend and back, after the rule's.
	Edits Edits
}

// Mirror is a backend that gets a copy of a part of a rule's requests. Its answers
// are dropped.
type Mirror struct {
	// Backend is where the copies go; its Weight has no meaning.
	Backend Backend
	// Part of every Of requests are copied: 0 <= Part <= Of, Of > 0.
	Part, Of int64
}

// Edits are changes to the headers of a request and of its answer.
type Edits struct {
	Request, Response HeaderEdit
}

// HeaderEdit changes headers: set, then add, then remove, as in an HTTPRoute's
// header modifiers. Names are case-insensitive.
type HeaderEdit struct {
	Set, Add []Header
	Remove   []string
}

// Header is one name and its value.
type Header struct{ Name, Value string }

// Request is the part of an HTTP request that rules match on.
type Request struct {
	Host   string // without the port
	Method string
	Path   string
	Header map[string][]string
	Query  map[string][]string
}

type entry struct {
	match Match
	rule  int
}

// New orders the rules by the Gateway API's precedence. hostnames restrict the
// table to requests for these hosts ("*.example.com" matches any subdomain);
// none means every host.
func New(hostnames []string, rules []Rule) *Table {
	t := &Table{hostnames: slices.Clone(hostnames), rules: slices.Clone(rules)}
	for i, rule := range t.rules {
		matches := rule.Matches
		if len(matches) == 0 {
			matches = []Match{{}}
		}
		for _, m := range matches {
			t.order = append(t.order, entry{match: m, rule: i})
		}
	}
	// Stable: among equals the first rule wins, and in it the first match.
	slices.SortStableFunc(t.order, func(a, b entry) int { return comparePrecedence(a.match, b.match) })
	return t
}

// Rules are the table's rules in their declared order. They must not be changed.
func (t *Table) Rules() []Rule { return t.rules }

// Hostnames are the hosts that the table is for; none means every host.
func (t *Table) Hostnames() []string { return t.hostnames }

// Find returns the index of the rule that the request meets. ok is false when
// there is none, which a gateway answers with 404.
func (t *Table) Find(r Request) (rule int, ok bool) {
	if !t.servesHost(r.Host) {
		return 0, false
	}
	for _, e := range t.order {
		if e.match.covers(r) {
			return e.rule, true
		}
	}
	return 0, false
}

func (t *Table) servesHost(host string) bool {
	if len(t.hostnames) == 0 {
		return true
	}
	host = strings.ToLower(host)
	return slices.ContainsFunc(t.hostnames, func(name string) bool {
		name = strings.ToLower(name)
		if suffix, wild := strings.CutPrefix(name, "*"); wild {
			return len(host) > len(suffix) && strings.HasSuffix(host, suffix)
		}
		return host == name
	})
}

// comparePrecedence is negative when a comes before b: exact paths, then regular
// expressions (their place is the implementation's choice), then the longest
// prefix; then a method, more headers, more query parameters.
func comparePrecedence(a, b Match) int {
	if c := cmp.Compare(a.Path.Kind.rank(), b.Path.Kind.rank()); c != 0 {
		return c
	}
	if a.Path.Kind == Prefix {
		// No path is the prefix "/".
		if c := cmp.Compare(max(1, len(b.Path.Value)), max(1, len(a.Path.Value))); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(presence(b.Method), presence(a.Method)),
		cmp.Compare(len(b.Headers), len(a.Headers)),
		cmp.Compare(len(b.Query), len(a.Query)),
	)
}

func presence(s string) int { return min(len(s), 1) }
