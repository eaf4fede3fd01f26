package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func conditionLexer(m v1alpha1.Metric) language {
	if m.ConditionLanguage == v1alpha1.ConditionExpr {
		return exprLanguage
	}
	return celLanguage
}

// Errors of placing a value in code.
var (
	errEndsString = errors.New("the value would end the quoted string that it stands in; use a string in double quotes")
	errNotInside  = errors.New("the value can't stand inside these quotes or braces: it may hold neither them nor a newline, nor end with a backslash")
	errOpenQuote  = errors.New("the value leaves a quote or a comment open")
	errNoLiteral  = errors.New("outside quotes a condition takes a number, true, false, null or a JSON list as a value; put quotes around the placeholder for text")
	errEndComment = errors.New("the value would end the comment that it stands in: it may hold no */, nor begin with / or end with *")
	errEscaped    = errors.New("a placeholder can't stand behind a backslash")
)

// lexer knows whether a position in code is inside a string or a comment.
type lexer struct {
	lang language
	// quote closes the string that we are in; empty outside.
	quote string
	// kind of the string that we are in.
	kind stringKind
	// escaped is true behind a backslash in a string.
	escaped bool
	// comment ends the comment that we are in; empty outside.
	comment string
	// prefix is the identifier directly before this position.
	prefix string
	// last character outside of strings and comments that is no blank; 0 for none.
	last byte
}

func (l *lexer) feed(s string) {
	for i := 0; i < len(s); {
		switch {
		case l.escaped:
			l.escaped = false
			i++
		case l.comment != "":
			i += l.skipTo(s[i:], &l.comment)
		case l.quote != "":
			if l.kind != verbatim && s[i] == '\\' {
				l.escaped = true
				i++
				continue
			}
			i += l.skipTo(s[i:], &l.quote)
		default:
			i += l.outside(s[i:])
		}
	}
}

// skipTo goes one byte on, or over the end that was looked for.
func (l *lexer) skipTo(s string, end *string) int {
	if !strings.HasPrefix(s, *end) {
		return 1
	}
	n := len(*end)
	*end, l.kind, l.prefix = "", noString, ""
	return n
}

func (l *lexer) outside(s string) int {
	if end, n := l.commentAt(s); n > 0 {
		l.comment = end
		return n
	}
	if end, kind := l.opened(s); kind != noString {
		l.quote, l.kind, l.last = end, kind, s[0]
		return len(end)
	}
	c := s[0]
	if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
		l.prefix += s[:1]
	} else {
		l.prefix = ""
	}
	if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
		l.last = c
	}
	return 1
}

// place is the text that stands for a value here.
func (l *lexer) place(value string, literals bool) (string, error) {
	switch {
	case l.escaped:
		return "", errEscaped
	case l.comment == "\n":
		return strings.NewReplacer("\n", " ", "\r", " ").Replace(value), nil
	case l.comment != "":
		return inBlockComment(value, l.comment)
	case l.quote != "" && l.lang == metricMath && strings.ContainsAny(value, "'\"`\\"):
		return "", errEndsString
	case l.quote != "" && l.kind == closed:
		if strings.ContainsAny(value, l.quote[:1]+"\r\n") || l.quote == "}" && strings.Contains(value, "{") || strings.HasSuffix(value, `\`) {
			return "", errNotInside
		}
		return value, nil
	case l.quote != "" && l.kind == verbatim:
		if strings.Contains(value, l.quote[:1]) || l.quote != "`" && strings.ContainsAny(value, "\r\n") {
			return "", errEndsString
		}
		return value, nil
	case l.quote != "":
		return escapeFor(l.lang, value, l.quote[0]), nil
	case literals:
		return literal(value)
	}
	inner := lexer{lang: l.lang}
	if inner.feed(value); inner.quote != "" || inner.comment != "" {
		return "", errOpenQuote
	}
	return value, nil
}

// inBlockComment takes a value that ends the comment neither by itself nor together with
// what stands next to it. Nothing is cut out of it: what is left may be an end again. A
// blank parts the neighbours of an empty value.
func inBlockComment(value, end string) (string, error) {
	if strings.Contains(value, end) || strings.HasPrefix(value, end[1:]) || strings.HasSuffix(value, end[:1]) {
		return "", errEndComment
	}
	if value == "" {
		return " ", nil
	}
	return value, nil
}

// escape writes a value for the inside of a quoted string. PromQL, CEL and expr
// agree on these escapes.
func escape(value string, quote byte) string {
	var b strings.Builder
	for _, r := range value {
		switch {
		case r == '\\' || r == rune(quote):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x20 || r == 0x7f || r == utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// literal is a value that is one literal of CEL and of expr.
func literal(value string) (string, error) {
	v := strings.TrimSpace(value)
	if v == "nil" {
		return v, nil
	}
	if _, err := strconv.ParseFloat(v, 64); err == nil && !strings.ContainsAny(v, "xXpP_iInN") {
		if v[0] == '-' || v[0] == '+' {
			return "(" + strings.TrimPrefix(v, "+") + ")", nil
		}
		return v, nil
	}
	var parsed any
	if err := json.Unmarshal([]byte(v), &parsed); err != nil {
		return "", errNoLiteral
	}
	if _, isMap := parsed.(map[string]any); isMap {
		return "", errNoLiteral
	}
	return v, nil
}
