package table

import (
	"testing"

	"pgregory.net/rapid"
)

func mustRegexp(t *testing.T, expression string) Value {
	t.Helper()
	v, err := NewRegexp(expression)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func rule(name string, matches ...Match) Rule { return Rule{Name: name, Matches: matches} }

func prefix(v string) Match { return Match{Path: Value{Value: v}} }
func exactly(v string) Match {
	return Match{Path: Value{Kind: Exact, Value: v}}
}

func TestFind(t *testing.T) {
	header := func(path string, pairs ...string) Match {
		m := prefix(path)
		for i := 0; i < len(pairs); i += 2 {
			m.Headers = append(m.Headers, Named{Name: pairs[i], Value: Value{Kind: Exact, Value: pairs[i+1]}})
		}
		return m
	}
	query := func(path, name, value string) Match {
		m := prefix(path)
		m.Query = []Named{{Name: name, Value: Value{Kind: Exact, Value: value}}}
		return m
	}
	method := func(path, method string) Match {
		m := prefix(path)
		m.Method = method
		return m
	}
	get := func(path string) Request { return Request{Method: "GET", Path: path} }
	with := func(r Request, name string, values ...string) Request {
		r.Header = map[string][]string{name: values}
		return r
	}
	tests := map[string]struct {
		hosts   []string
		rules   []Rule
		request Request
		want    string // the rule's name, empty for none
	}{
		"no rules":                   {request: get("/")},
		"no matches means all":       {rules: []Rule{rule("all")}, request: get("/x"), want: "all"},
		"exact before longer prefix": {rules: []Rule{rule("prefix", prefix("/api/v1")), rule("exact", exactly("/api/v1"))}, request: get("/api/v1"), want: "exact"},
		"exact is the whole path":    {rules: []Rule{rule("exact", exactly("/api"))}, request: get("/api/")},
		"longest prefix":             {rules: []Rule{rule("short", prefix("/a")), rule("long", prefix("/a/b"))}, request: get("/a/b/c"), want: "long"},
		"prefix counts elements":     {rules: []Rule{rule("abc", prefix("/abc"))}, request: get("/abcd")},
		"prefix is itself":           {rules: []Rule{rule("abc", prefix("/abc"))}, request: get("/abc"), want: "abc"},
		"no path is the path /":      {rules: []Rule{rule("none", Match{}), rule("slash", prefix("/"))}, request: get("/x"), want: "none"},
		"slash at the prefix's end":  {rules: []Rule{rule("abc", prefix("/abc/"))}, request: get("/abc"), want: "abc"},
		"paths are case-sensitive":   {rules: []Rule{rule("abc", prefix("/abc"))}, request: get("/ABC")},
		"regexp before prefix":       {rules: []Rule{rule("prefix", prefix("/items/7/parts")), rule("re", Match{Path: mustRegexp(t, "/items/[0-9]+/.*")})}, request: get("/items/7/parts"), want: "re"},
		"regexp is the whole path":   {rules: []Rule{rule("re", Match{Path: mustRegexp(t, "/a|/b")})}, request: get("/ab")},
		"exact before regexp":        {rules: []Rule{rule("re", Match{Path: mustRegexp(t, "/.*")}), rule("exact", exactly("/a"))}, request: get("/a"), want: "exact"},
		"longer prefix before method and headers": {
			rules:   []Rule{rule("rich", Match{Path: Value{Value: "/a"}, Method: "GET", Headers: header("", "x", "1").Headers}), rule("long", prefix("/a/b"))},
			request: with(get("/a/b"), "X", "1"), want: "long"},
		"method before headers":                {rules: []Rule{rule("header", header("/", "x", "1")), rule("method", method("/", "GET"))}, request: with(get("/"), "X", "1"), want: "method"},
		"method that differs":                  {rules: []Rule{rule("post", method("/", "POST"))}, request: get("/")},
		"more headers first":                   {rules: []Rule{rule("one", header("/", "x", "1")), rule("two", header("/", "x", "1", "y", "2"))}, request: Request{Method: "GET", Path: "/", Header: map[string][]string{"X": {"1"}, "Y": {"2"}}}, want: "two"},
		"all headers must match":               {rules: []Rule{rule("one", header("/", "x", "1")), rule("two", header("/", "x", "1", "y", "2"))}, request: with(get("/"), "X", "1"), want: "one"},
		"headers before query":                 {rules: []Rule{rule("query", query("/", "q", "1")), rule("header", header("/", "x", "1"))}, request: Request{Method: "GET", Path: "/", Header: map[string][]string{"X": {"1"}}, Query: map[string][]string{"q": {"1"}}}, want: "header"},
		"query beats nothing":                  {rules: []Rule{rule("plain", prefix("/")), rule("query", query("/", "q", "1"))}, request: Request{Method: "GET", Path: "/", Query: map[string][]string{"q": {"1"}}}, want: "query"},
		"query names are case-sensitive":       {rules: []Rule{rule("query", query("/", "q", "1"))}, request: Request{Method: "GET", Path: "/", Query: map[string][]string{"Q": {"1"}}}},
		"header names are not":                 {rules: []Rule{rule("h", header("/", "x-canary", "always"))}, request: with(get("/"), "X-CANARY", "always"), want: "h"},
		"header values are":                    {rules: []Rule{rule("h", header("/", "x", "a"))}, request: with(get("/"), "X", "A")},
		"a repeated header is a list":          {rules: []Rule{rule("h", header("/", "x", "a,b"))}, request: with(get("/"), "X", "a", "b"), want: "h"},
		"an absent header is not an empty one": {rules: []Rule{rule("h", header("/", "x", ""))}, request: get("/")},
		"header regexp":                        {rules: []Rule{rule("h", Match{Headers: []Named{{Name: "x", Value: mustRegexp(t, "v[0-9]")}}})}, request: with(get("/"), "X", "v1"), want: "h"},
		"the first rule of equals":             {rules: []Rule{rule("first", prefix("/a")), rule("second", prefix("/a"))}, request: get("/a"), want: "first"},
		"any match of a rule":                  {rules: []Rule{rule("two", prefix("/a"), prefix("/b"))}, request: get("/b"), want: "two"},
		"host":                                 {hosts: []string{"shop.example"}, rules: []Rule{rule("all")}, request: Request{Host: "Shop.Example", Path: "/"}, want: "all"},
		"another host":                         {hosts: []string{"shop.example"}, rules: []Rule{rule("all")}, request: Request{Host: "example", Path: "/"}},
		"wildcard host":                        {hosts: []string{"*.example"}, rules: []Rule{rule("all")}, request: Request{Host: "a.b.example", Path: "/"}, want: "all"},
		"a wildcard is a subdomain":            {hosts: []string{"*.example"}, rules: []Rule{rule("all")}, request: Request{Host: "example", Path: "/"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			table := New(tc.hosts, tc.rules)
			got := ""
			if i, ok := table.Find(tc.request); ok {
				got = table.Rules()[i].Name
			}
			if got != tc.want {
				t.Errorf("got rule %q, want %q", got, tc.want)
			}
		})
	}
}

// Whatever the order in which rules of different precedence are declared, the
// same one is found.
func TestFindDoesNotDependOnTheOrder(t *testing.T) {
	rules := []Rule{
		rule("exact", exactly("/a/b")), rule("long", prefix("/a/b")), rule("short", prefix("/a")),
		rule("post", Match{Path: Value{Value: "/a"}, Method: "POST"}),
		rule("header", Match{Path: Value{Value: "/a"}, Headers: []Named{{Name: "x", Value: Value{Kind: Exact, Value: "1"}}}}),
		rule("all"),
	}
	reference := New(nil, rules)
	rapid.Check(t, func(t *rapid.T) {
		shuffled := New(nil, rapid.Permutation(rules).Draw(t, "rules"))
		request := Request{
			Method: rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"),
			Path:   rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/ab"}).Draw(t, "path"),
		}
		if rapid.Bool().Draw(t, "header") {
			request.Header = map[string][]string{"X": {"1"}}
		}
		want, _ := reference.Find(request)
		got, ok := shuffled.Find(request)
		if !ok || shuffled.Rules()[got].Name != rules[want].Name {
			t.Fatalf("%+v met %q, want %q", request, shuffled.Rules()[got].Name, rules[want].Name)
		}
	})
}

func TestNewRegexpRefuses(t *testing.T) {
	if _, err := NewRegexp("("); err == nil {
		t.Error("a broken expression was accepted")
	}
}
