package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Errors of placing a value in a web metric.
var (
	errNoJSON    = errors.New("outside quotes a JSON body takes a JSON value; put quotes around the placeholder for text")
	errPathValue = errors.New(`in a jsonPath a value can't hold quotes, brackets, braces, commas, backslashes or newlines, nor outside of quotes dots, blanks, *, @, ? or $, unless it is the whole path`)
)

// webText is what of a web metric is code: its URL, body and jsonPath.
type webText struct{ url, body, jsonPath string }

// takeWeb takes the code out of a web metric, with the arguments put in.
func takeWeb(p *v1alpha1.WebMetric, values map[string]string) (webText, error) {
	url, err := inURL(p.URL, values)
	if err != nil {
		return webText{}, fmt.Errorf("url: %w", err)
	}
	body, err := inBody(p.Body, values)
	if err != nil {
		return webText{}, fmt.Errorf("body: %w", err)
	}
	path, err := inJSONPath(p.JSONPath, values)
	if err != nil {
		return webText{}, fmt.Errorf("jsonPath: %w", err)
	}
	p.URL, p.Body, p.JSONPath = "", "", ""
	return webText{url, body, path}, nil
}

func (w webText) putInto(p *v1alpha1.WebMetric) {
	p.URL, p.Body, p.JSONPath = w.url, w.body, w.jsonPath
}

// inURL percent-encodes what stands for the value of one parameter of the query
// (behind "?name="), so that it stays one. What is encoded in a value already stays
// so. Elsewhere a value may be any part of a URL: a host, a path, a whole query.
func inURL(s string, values map[string]string) (string, error) {
	seen := ""
	return replace(s, func(before, name string) (string, error) {
		seen += before
		value, err := lookupArg(values, name)
		if err != nil {
			return "", err
		}
		if inParameter(seen) {
			value = encodeParameter(value)
		}
		seen += value
		return value, nil
	})
}

// inParameter says that a URL goes on with the value of a parameter.
func inParameter(url string) bool {
	_, query, isQuery := strings.Cut(url, "?")
	parameter := query[strings.LastIndexAny(query, "&;")+1:]
	return isQuery && !strings.Contains(query, "#") && strings.Contains(parameter, "=")
}

// encodeParameter leaves %XX as it is.
func encodeParameter(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) && isHex(value[i+1]) && isHex(value[i+2]) {
			b.WriteString(value[i : i+3])
			i += 2
			continue
		}
		b.WriteString(percentEncode(value[i:i+1], "-_.~", "%20"))
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// inBody keeps a body that is JSON what it is: inside its strings a value is escaped,
// elsewhere it is one JSON value. A body that is something else, or the placeholder
// alone, takes values as they are.
func inBody(s string, values map[string]string) (string, error) {
	alone := placeholder.FindString(strings.TrimSpace(s)) == strings.TrimSpace(s)
	if alone || !json.Valid(placeholder.ReplaceAll([]byte(s), []byte("0"))) {
		return inText(s, values)
	}
	var at jsonPosition
	return replace(s, func(before, name string) (string, error) {
		at.feed(before)
		value, err := lookupArg(values, name)
		switch {
		case err != nil:
			return "", err
		case at.inString:
			return escapeJSON(value)
		case !json.Valid([]byte(value)):
			return "", fmt.Errorf("args.%s: %w", name, errNoJSON)
		}
		return value, nil
	})
}

// jsonPosition knows whether valid JSON is inside a string at a position.
type jsonPosition struct{ inString, escaped bool }

func (p *jsonPosition) feed(s string) {
	for i := range len(s) {
		switch {
		case p.escaped:
			p.escaped = false
		case p.inString && s[i] == '\\':
			p.escaped = true
		case s[i] == '"':
			p.inString = !p.inString
		}
	}
}

// escapeJSON writes a value for the inside of a string of JSON.
func escapeJSON(value string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", fmt.Errorf("encode a value as JSON: %w", err)
	}
	quoted := strings.TrimSpace(b.String())
	return quoted[1 : len(quoted)-1], nil
}

// inJSONPath takes values that can't end what they stand in: a string of a filter or of
// a key, or one name.
func inJSONPath(s string, values map[string]string) (string, error) {
	alone := placeholder.FindString(strings.TrimSpace(s)) == strings.TrimSpace(s)
	var quote byte
	return replace(s, func(before, name string) (string, error) {
		quote = quoteAfter(quote, before)
		value, err := lookupArg(values, name)
		if err != nil || alone {
			return value, err
		}
		ends := strings.ContainsAny(value, "'\"`[](){},\\\r\n")
		means := quote == 0 && (strings.ContainsAny(value, ".*@?$") || strings.ContainsFunc(value, unicode.IsSpace))
		if ends || means {
			return "", fmt.Errorf("args.%s: %w", name, errPathValue)
		}
		return value, nil
	})
}

// quoteAfter is the quote that is open behind a part of a jsonPath; 0 for none.
func quoteAfter(open byte, s string) byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case open == 0 && (c == '"' || c == '\''):
			open = c
		case c == open:
			open = 0
		}
	}
	return open
}
