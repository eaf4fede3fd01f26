package table

import (
	"fmt"
	"regexp"
	"strings"
)

// Kind is how a value is compared.
type Kind int

const (
	// Prefix compares whole path elements: /abc covers /abc and /abc/d, not /abcd.
	// It exists for paths only.
	Prefix Kind = iota
	// Exact compares the whole value.
	Exact
	// Regexp matches the whole value against an RE2 expression.
	Regexp
)

func (k Kind) rank() int {
	switch k {
	case Exact:
		return 0
	case Regexp:
		return 1
	default:
		return 2
	}
}

// Value is a comparison with one string. The zero Value, an empty prefix, covers
// every path.
type Value struct {
	Kind    Kind
	Value   string
	pattern *regexp.Regexp
}

// Named is a comparison with a header or a query parameter.
type Named struct {
	Name string
	Value
}

// Match is a set of conditions that a request must meet together. The zero Match
// covers every request.
type Match struct {
	Path    Value
	Method  string // empty: any
	Headers []Named
	Query   []Named
}

// NewRegexp returns a Value that matches a whole string against an RE2
// expression, or an error that says what is wrong with the expression.
func NewRegexp(expression string) (Value, error) {
	pattern, err := regexp.Compile(`^(?:` + expression + `)$`)
	if err != nil {
		return Value{}, fmt.Errorf("the regular expression %q: %w", expression, err)
	}
	return Value{Kind: Regexp, Value: expression, pattern: pattern}, nil
}

// String writes the condition for people.
func (m Match) String() string {
	var s []string
	if m.Method != "" {
		s = append(s, m.Method)
	}
	path := m.Path.Value
	switch {
	case m.Path.Kind == Prefix:
		path = strings.TrimSuffix(path, "/") + "/*"
	case m.Path.Kind == Regexp:
		path = "~" + path
	}
	s = append(s, path)
	for _, h := range m.Headers {
		s = append(s, h.Name+": "+h.Value.Value)
	}
	for _, q := range m.Query {
		s = append(s, "?"+q.Name+"="+q.Value.Value)
	}
	return strings.Join(s, " ")
}

func (m Match) covers(r Request) bool {
	if !m.Path.coversPath(r.Path) || m.Method != "" && m.Method != r.Method {
		return false
	}
	for _, want := range m.Headers {
		if !want.coversOne(headerValue(r.Header, want.Name)) {
			return false
		}
	}
	for _, want := range m.Query {
		values := r.Query[want.Name] // parameter names are case-sensitive
		if len(values) == 0 || !want.covers(values[0]) {
			return false
		}
	}
	return true
}

func (v Value) coversPath(path string) bool {
	if v.Kind != Prefix {
		return v.covers(path)
	}
	prefix := strings.TrimSuffix(v.Value, "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

func (v Value) covers(s string) bool {
	if v.Kind == Regexp {
		return v.pattern.MatchString(s)
	}
	return s == v.Value
}

// coversOne takes a header's values as one list, as RFC 9110 section 5.3 has it.
func (n Named) coversOne(values []string) bool {
	return len(values) > 0 && n.covers(strings.Join(values, ","))
}

// headerValue finds a header however its name is written.
func headerValue(header map[string][]string, name string) []string {
	for key, values := range header {
		if strings.EqualFold(key, name) {
			return values
		}
	}
	return nil
}
