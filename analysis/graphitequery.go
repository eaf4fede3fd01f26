package analysis

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// Errors of a query of Graphite.
var (
	errGraphiteQuote  = errors.New("a quote is left open")
	errGraphiteTarget = errors.New("there is no target: a query is what stands behind /render? in a URL, such as target=stats.errors&from=-5min")
)

// GraphiteParameters are the parameters of a render query, as a URL has them. As in
// Argo blanks outside quotes are left out, so that a query can be written over several
// lines; inside quotes they stay. A semicolon is part of a value. Errors: an open
// quote, a % that encodes nothing, no target.
func GraphiteParameters(query string) (url.Values, error) {
	parts, err := graphiteParts(query)
	if err != nil {
		return nil, err
	}
	values := url.Values{}
	for _, part := range parts {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		decoded, err := url.QueryUnescape(value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w; write %%25 for a percent sign", key, err)
		}
		values.Add(key, decoded)
	}
	if values.Get("target") == "" {
		return nil, errGraphiteTarget
	}
	return values, nil
}

// graphiteParts splits at each & outside quotes, and drops the blanks there.
func graphiteParts(query string) ([]string, error) {
	var parts []string
	var b strings.Builder
	var quote rune
	escaped := false
	for _, r := range query {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			if escaped = r == '\\'; r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case unicode.IsSpace(r):
			continue
		case r == '&':
			parts = append(parts, b.String())
			b.Reset()
			continue
		}
		b.WriteRune(r)
	}
	if quote != 0 {
		return nil, errGraphiteQuote
	}
	return append(parts, b.String()), nil
}
