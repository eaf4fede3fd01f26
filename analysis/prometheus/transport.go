package prometheus

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

	errBadAddress = errors.New("the address is no URL such as http://prometheus.monitoring:9090")
)

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

// parseAddress never tells what is in the address: it may hold a password.
func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errBadAddress
	}
	return u, nil
}

// credentials adds a metric's headers and credentials to the requests to its own
// host, and bounds every answer.
type credentials struct {
	next   http.RoundTripper
	origin *url.URL
	metric v1alpha1.PrometheusMetric
}

// RoundTrip implements http.RoundTripper.
func (c credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	if isSameHost(c.origin, req.URL) {
		req = req.Clone(req.Context())
		for _, h := range c.metric.Headers {
			if http.CanonicalHeaderKey(h.Key) == "Host" {
				req.Host = h.Value
			}
			req.Header.Set(h.Key, h.Value)
		}
		if a := c.metric.Authentication; a != nil && a.BasicAuth != nil {
			req.SetBasicAuth(a.BasicAuth.Username, a.BasicAuth.Password)
		}
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &bounded{ReadCloser: resp.Body, left: maxBody}
	return resp, nil
}

// sameHost refuses redirects to another host: credentials must not get there, and
// neither must the query.
func sameHost(origin *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if !isSameHost(origin, req.URL) {
			return ErrRedirect
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
