package gitsync

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWords is the most bytes of a server's words that are kept.
const MaxWords = 512

// redacted stands where a secret was.
const redacted = "[redacted]"

// urls finds the start of a URL, its authority, and its query.
var urls = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"'<>]*@)?([^\s?"'<>]*)(\?[^\s"'<>]*)?`)

// Scrub makes a text that others wrote fit for a status, an event or a log: no
// user part or query of a URL; none of the secrets, be it plain, URL-encoded or
// in base64; no control characters; at most MaxWords bytes.
func Scrub(text string, secrets ...string) string {
	for _, form := range spellings(secrets) {
		text = strings.ReplaceAll(text, form, redacted)
	}
	text = urls.ReplaceAllString(text, "$1$3")
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return truncate(strings.Join(strings.Fields(text), " "))
}

// spellings of the secrets, the longest first so that no rest of one stays.
func spellings(secrets []string) []string {
	var forms []string
	for _, secret := range secrets {
		// Shorter ones would blank out half of every message and are no secrets.
		if len(secret) < 3 {
			continue
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(secret))
		forms = append(forms, secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:],
			encoded, strings.TrimRight(encoded, "="), base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
	sort.Slice(forms, func(i, j int) bool { return len(forms[i]) > len(forms[j]) })
	return forms
}

func truncate(text string) string {
	if len(text) <= MaxWords {
		return text
	}
	const more = "..."
	cut := MaxWords - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}
