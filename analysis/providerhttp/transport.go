package providerhttp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	// maxBody is the most bytes of an answer that are read.
	maxBody = 10 << 20
	// maxRedirects is the most redirects that are followed.
	maxRedirects = 5
)

var (
	// ErrTooLarge says that an answer was larger than 10 MiB.
	ErrTooLarge = errors.New("the answer is larger than 10 MiB: aggregate in the query")
	// ErrRedirect says that the server sent us to another host.
	ErrRedirect = errors.New("the server redirects to another host, which is not followed: name that host in the address")
	// ErrRedirectMethod says that the server sent a POST or a PUT on as a GET.
	ErrRedirectMethod = errors.New("the server redirects so that the request's body is lost, which is not followed: name the place that it redirects to in the address")
	// ErrBadAddress says that an address is no URL of HTTP. It never shows the address,
	// which may hold a password.
	ErrBadAddress = errors.New("the address is no URL such as http://metrics.monitoring:9090")
)

// Transports keep the connections of one provider. They are safe for concurrent use.
type Transports struct{ verified, unverified *http.Transport }

// New makes Transports that connect only where the policy allows it.
func New(policy egress.Policy) *Transports {
	return &Transports{verified: transport(policy, false), unverified: transport(policy, true)}
}

// transport has no proxy, around which nothing could be said of where a connection
// goes.
func transport(policy egress.Policy, insecure bool) *http.Transport {
	return &http.Transport{
		DialContext:           policy.DialContext,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: insecure, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          100,
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// Sign adds headers and credentials to a request. It gets a copy of its own.
type Sign func(*http.Request) error

// Client is a client for one address. What sign adds goes to that host alone, a
// redirect to another one is refused (ErrRedirect), and at most 10 MiB of an answer
// are read (ErrTooLarge). Insecure leaves the server's certificate unverified. A nil
// sign adds nothing.
func (t *Transports) Client(origin *url.URL, insecure bool, sign Sign) *http.Client {
	base := t.verified
	if insecure {
		base = t.unverified
	}
	return &http.Client{Transport: signed{next: base, origin: origin, sign: sign}, CheckRedirect: sameHost(origin)}
}

// Guarded is a client for addresses that no user names, such as those of a vendor's
// API. A redirect to another host is refused (ErrRedirect), and at most 10 MiB of an
// answer are read (ErrTooLarge).
func (t *Transports) Guarded() *http.Client {
	return &http.Client{Transport: signed{next: t.verified}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		return sameHost(via[0].URL)(req, via)
	}}
}

// All signs with each, in this order.
func All(signs ...Sign) Sign {
	return func(req *http.Request) error {
		for _, sign := range signs {
			if err := sign(req); err != nil {
				return err
			}
		}
		return nil
	}
}

// ParseAddress reads an address of HTTP or HTTPS with a host. Errors: ErrBadAddress.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, ErrBadAddress
	}
	return u, nil
}

// signed adds credentials to the requests to their own host, and bounds every answer.
type signed struct {
	next   http.RoundTripper
	origin *url.URL
	sign   Sign
}

// RoundTrip implements http.RoundTripper.
func (s signed) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.sign != nil && isSameHost(s.origin, req.URL) {
		req = req.Clone(req.Context())
		if err := s.sign(req); err != nil {
			return nil, err
		}
	}
	resp, err := s.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxBody}
	return resp, nil
}

// SetHeader sets a header of a request; "Host" sets the host that is asked for.
func SetHeader(req *http.Request, key, value string) {
	if http.CanonicalHeaderKey(key) == "Host" {
		req.Host = value
	}
	req.Header.Set(key, value)
}

// Credentials are a metric's headers and its user with password, if it has them.
func Credentials(headers []v1alpha1.WebMetricHeader, basic *v1alpha1.BasicAuthConfig) Sign {
	return func(req *http.Request) error {
		for _, h := range headers {
			SetHeader(req, h.Key, h.Value)
		}
		if basic != nil {
			req.SetBasicAuth(basic.Username, basic.Password)
		}
		return nil
	}
}

// sameHost refuses redirects to another host: credentials must not get there, and
// neither must the query. One that makes a GET of a POST is refused too: what would be
// answered is not what was asked, for its body is left out.
func sameHost(origin *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if !isSameHost(origin, req.URL) {
			return ErrRedirect
		}
		if req.Method != via[0].Method {
			return ErrRedirectMethod
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("stopped after %d redirects", maxRedirects)
		}
		return nil
	}
}

// isSameHost is true for the same scheme, host and port, and for the step from http
// to https on one host.
func isSameHost(a, b *url.URL) bool {
	if a.Scheme == b.Scheme && a.Host == b.Host {
		return true
	}
	return a.Scheme == "http" && b.Scheme == "https" && a.Hostname() == b.Hostname()
}

// bounded is a body that fails when it is too large.
type bounded struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	if len(p) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}
