package analysis

import (
	"fmt"
	"net/textproto"
	"regexp"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// checkRequest checks what providers over HTTP send beside the question. Path is the
// provider's field.
func checkRequest(headers []v1alpha1.WebMetricHeader, a *v1alpha1.Authentication, path string, c completeness, ps *problems) {
	authorized := false
	for i, h := range headers {
		if h.Key == "" {
			ps.add(fmt.Sprintf("%s.headers[%d].key", path, i), "a header wants a name")
		}
		if textproto.CanonicalMIMEHeaderKey(h.Key) == "Host" && a != nil && a.Sigv4 != nil {
			ps.add(fmt.Sprintf("%s.headers[%d].key", path, i), "sigv4 and the header Host contradict each other: the host of the address is signed")
		}
		authorized = authorized || textproto.CanonicalMIMEHeaderKey(h.Key) == "Authorization"
	}
	if a == nil {
		return
	}
	path += ".authentication"
	given := givenAuthentication(*a)
	if len(given) > 1 {
		ps.add(path, "%s contradict each other: at most one is wanted", strings.Join(given, " and "))
	}
	if authorized && len(given) > 0 {
		ps.add(path, "%s and the header Authorization contradict each other: at most one is wanted", given[0])
	}
	checkAuthentication(*a, path, c, ps)
}

func givenAuthentication(a v1alpha1.Authentication) []string {
	var given []string
	for _, f := range []providerField{{"sigv4", a.Sigv4 != nil}, {"oauth2", a.OAuth2 != nil}, {"basicAuth", a.BasicAuth != nil}} {
		if f.set {
			given = append(given, f.name)
		}
	}
	return given
}

func checkAuthentication(a v1alpha1.Authentication, path string, c completeness, ps *problems) {
	if s := a.Sigv4; s != nil {
		checkSigv4(*s, path+".sigv4", c, ps)
	}
	if o := a.OAuth2; o != nil {
		checkURL(o.TokenURL, path+".oauth2.tokenUrl", c, ps)
		if o.ClientID == "" {
			ps.add(path+".oauth2.clientId", "oauth2 wants a client's id")
		}
		if o.ClientSecret == "" {
			ps.add(path+".oauth2.clientSecret", "oauth2 wants a client's secret; take it from a Secret by an argument")
		}
	}
	if b := a.BasicAuth; b != nil && b.Username == "" && b.Password == "" {
		ps.add(path+".basicAuth", "basicAuth wants a username or a password")
	}
}

// regionForm and roleForm are AWS's. A region becomes part of an address.
var (
	regionForm = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	roleForm   = regexp.MustCompile(`^arn:[a-z0-9-]+:iam::[0-9]{12}:role/.+$`)
)

func checkSigv4(s v1alpha1.Sigv4Config, path string, c completeness, ps *problems) {
	for _, f := range []struct {
		name, text string
		form       *regexp.Regexp
		example    string
	}{
		{"region", s.Region, regionForm, "eu-central-1"},
		{"roleArn", s.RoleARN, roleForm, "arn:aws:iam::123456789012:role/metrics"},
	} {
		open := c == partial && placeholder.MatchString(f.text)
		if f.text != "" && !open && !f.form.MatchString(f.text) {
			ps.add(path+"."+f.name, "the %s is not written like %s", f.name, f.example)
		}
	}
}

// checkURL checks the beginning of a URL that has to be there.
func checkURL(url, path string, c completeness, ps *problems) {
	open := c == partial && strings.Contains(url, "{{")
	if !open && !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		ps.add(path, "the address wants to begin with http:// or https://")
	}
}
