package analysis

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// Redacted stands for a secret.
const Redacted = "[redacted]"

// Redactor takes secrets out of text. The zero value knows none.
type Redactor struct {
	// forms of the secrets, the longest first.
	forms []string
}

// MakeRedactor knows each secret as it is and in the forms in which clients and
// servers echo it: URL-encoded and decoded, in base64 at any offset (as inside an
// Authorization header, also OAuth2's, which encodes it before), and escaped as in JSON
// and in code.
func MakeRedactor(secrets ...string) Redactor {
	seen := map[string]bool{"": true}
	var forms []string
	for _, secret := range secrets {
		for _, form := range formsOf(secret) {
			if !seen[form] {
				seen[form] = true
				forms = append(forms, form)
			}
		}
	}
	sort.SliceStable(forms, func(i, j int) bool { return len(forms[i]) > len(forms[j]) })
	return Redactor{forms: forms}
}

// With knows further secrets too.
func (r Redactor) With(secrets ...string) Redactor { return r.And(MakeRedactor(secrets...)) }

// And knows the other's secrets too.
func (r Redactor) And(other Redactor) Redactor {
	forms := append(slices.Clone(r.forms), other.forms...)
	sort.SliceStable(forms, func(i, j int) bool { return len(forms[i]) > len(forms[j]) })
	return Redactor{forms: forms}
}

// Redact replaces every form of every secret.
func (r Redactor) Redact(s string) string {
	for _, form := range r.forms {
		s = strings.ReplaceAll(s, form, Redacted)
	}
	return s
}

// RedactMap redacts the values of a map; nil stays nil.
func (r Redactor) RedactMap(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = r.Redact(v)
	}
	return out
}

// formsOf are all forms of a secret in each of its spellings.
func formsOf(secret string) []string {
	var forms []string
	for _, spelling := range spellings(secret) {
		forms = append(forms, echoes(spelling)...)
	}
	return forms
}

// spellings are what a secret becomes when it is put into a metric as an argument, and
// what a server reads there: in a string of Flux, and in a parameter of a URL, where
// what is percent-encoded stays so.
func spellings(secret string) []string {
	all := []string{secret, escapeFlux(secret), encodeParameter(secret)}
	for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
		// What is nothing but blanks would be found everywhere.
		if read, err := decode(secret); err == nil && strings.TrimSpace(read) != "" {
			all = append(all, read)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}

// echoes are how clients and servers write one spelling.
func echoes(secret string) []string {
	// So RFC 6749 has it in OAuth2's Basic header, before base64.
	form := percentEncode(secret, "-_.~", "+")
	forms := []string{
		secret, strings.TrimSpace(secret),
		percentEncode(secret, "-_.~", "%20"), form,
		percentEncode(secret, "-_.~$&+:=@", "%20"), percentEncode(secret, "-_.~!$&'()*+,;=:@", "%20"),
		escape(secret, '"'), escape(secret, '\''),
		strings.Trim(fmt.Sprintf("%q", secret), `"`),
	}
	for _, inside := range jsonForms(secret) {
		// A server that echoes a body of JSON in its own JSON escapes it twice.
		forms = append(append(forms, inside), jsonForms(inside)...)
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(secret)))
	}
	return append(append(forms, shifted(secret)...), shifted(form)...)
}

// jsonForms are the inside of a string of JSON, with and without the escapes for HTML.
func jsonForms(s string) []string {
	forms := make([]string, 0, 2)
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(s) == nil { // a string is always encoded
			quoted := strings.TrimSuffix(b.String(), "\n")
			forms = append(forms, quoted[1:len(quoted)-1])
		}
	}
	return forms
}

// shifted are the base64 forms of a secret that begins at any offset in what was
// encoded and may end anywhere: the characters that also carry bits of the
// neighbours are left off. Short ones say too little to be looked for.
func shifted(secret string) []string {
	const shortest = 6
	var forms []string
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for offset := range 3 {
			encoded := enc.EncodeToString(append(make([]byte, offset), secret...))
			from := (offset*8 + 5) / 6
			to := (offset + len(secret)) * 8 / 6
			if to-from >= shortest {
				forms = append(forms, encoded[from:to])
			}
		}
	}
	return forms
}

// percentEncode is RFC 3986's encoding of all but letters, digits and the
// characters given.
func percentEncode(s, unreserved, space string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(unreserved, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteString(space)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
