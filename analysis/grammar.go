package analysis

import (
	"fmt"
	"strings"
)

// language of a field that holds code; it decides quotes and comments.
type language int

const (
	promQL language = iota
	celLanguage
	exprLanguage
	// metricMath is CloudWatch's: metric math and Metrics Insights. Nothing is escaped in
	// its strings, and those of SEARCH hold quotes of another kind that mean something.
	metricMath
	nrql
	flux
	graphQL
	wavefrontQL
	datadogQL
	graphiteQL
)

// stringKind is what a string knows of escapes.
type stringKind int

const (
	// noString: the character opens none.
	noString stringKind = iota
	// escaping strings take \", \n and \u0000.
	escaping
	// verbatim strings know no escapes.
	verbatim
	// closed strings know escapes, or may: none is written into them, for servers differ
	// in what they make of it.
	closed
)

// grammar of a language, as far as strings and comments go.
type grammar struct {
	// strings by the character that opens them. It closes them too, but in brackets.
	strings map[byte]stringKind
	// lineComments begin comments up to the end of the line.
	lineComments []string
	// blockComments are there, as in C.
	blockComments bool
}

var grammars = map[language]grammar{
	promQL:       {strings: map[byte]stringKind{'"': escaping, '\'': escaping, '`': verbatim}, lineComments: []string{"#"}},
	celLanguage:  {strings: map[byte]stringKind{'"': escaping, '\'': escaping, '`': verbatim}, lineComments: []string{"//"}},
	exprLanguage: {strings: map[byte]stringKind{'"': escaping, '\'': escaping, '`': verbatim}, lineComments: []string{"//"}, blockComments: true},
	metricMath:   {strings: map[byte]stringKind{'"': verbatim, '\'': verbatim, '`': verbatim}},
	nrql:         {strings: map[byte]stringKind{'\'': closed, '"': closed, '`': closed}, lineComments: []string{"--", "//"}, blockComments: true},
	flux:         {strings: map[byte]stringKind{'"': escaping}, lineComments: []string{"//"}},
	graphQL:      {strings: map[byte]stringKind{'"': escaping}, lineComments: []string{"#"}},
	wavefrontQL:  {strings: map[byte]stringKind{'"': closed, '\'': closed}},
	// Tags in braces are not quoted: a value is held inside of them in the same way.
	datadogQL:  {strings: map[byte]stringKind{'\'': closed, '"': closed, '{': closed}},
	graphiteQL: {strings: map[byte]stringKind{'\'': closed, '"': closed}},
}

// opened says how the string ends that begins at s, and of which kind it is.
func (l *lexer) opened(s string) (end string, kind stringKind) {
	c := s[0]
	if l.lang == flux && c == '/' && l.last == '~' {
		return "/", closed // a regular expression, behind =~ or !~
	}
	kind = grammars[l.lang].strings[c]
	end = s[:1]
	switch triple := strings.Repeat(end, 3); {
	case kind == noString:
		return "", noString
	case c == '{':
		return "}", kind
	case l.lang == celLanguage && c != '`' && strings.HasPrefix(s, triple):
		end = triple
	case l.lang == graphQL && strings.HasPrefix(s, triple):
		return triple, closed
	}
	if l.lang == celLanguage && strings.ContainsAny(l.prefix, "rR") && len(l.prefix) <= 2 {
		kind = verbatim
	}
	return end, kind
}

// commentAt says how a comment that starts here ends.
func (l *lexer) commentAt(s string) (end string, n int) {
	for _, begin := range grammars[l.lang].lineComments {
		if strings.HasPrefix(s, begin) {
			return "\n", len(begin)
		}
	}
	if grammars[l.lang].blockComments && strings.HasPrefix(s, "/*") {
		return "*/", 2
	}
	return "", 0
}

// escapeFor writes a value for the inside of an escaping string.
func escapeFor(lang language, value string, quote byte) string {
	if lang == flux {
		return escapeFlux(value)
	}
	return escape(value, quote)
}

// escapeFlux is for Flux, which has \xHH in place of \u0000, and code in its strings
// behind ${.
func escapeFlux(value string) string {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; {
		case c == '\\' || c == '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < 0x20 || c == 0x7f || c == '$' || c == '{':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
