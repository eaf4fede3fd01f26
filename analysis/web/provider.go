package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

// defaultTimeout of a request, Argo's.
const defaultTimeout = 10 * time.Second

// Errors of a metric that says too much.
var (
	ErrTwoBodies = errors.New("body and jsonBody contradict each other: leave one out")
	ErrBodyOfGet = errors.New("a body is sent by the methods POST and PUT alone")
)

// Options of the provider.
type Options struct {
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks URLs. It is safe for concurrent use.
type Provider struct {
	transports *providerhttp.Transports
	tokens     *providerhttp.Tokens
}

// New makes a Provider.
func New(o Options) *Provider {
	transports := providerhttp.New(o.Egress)
	return &Provider{transports: transports, tokens: providerhttp.NewTokens(transports)}
}

var _ analysis.Provider = (*Provider)(nil)

// Measure sends the request and takes the value out of the answer.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	m := q.Provider.Web
	if m == nil {
		return nil, fmt.Errorf("metric %q has no provider.web", q.Metric)
	}
	timeout := defaultTimeout
	if m.TimeoutSeconds > 0 {
		timeout = time.Duration(m.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, bearer, err := p.client(*m)
	if err != nil {
		return nil, err
	}
	req, err := request(ctx, *m)
	if err != nil {
		return nil, err
	}
	body, err := providerhttp.Fetch(client, req)
	redactor := bearer.Redactor(q.Redactor)
	if err != nil {
		return nil, providerhttp.PlainError("web", err, timeout, redactor)
	}
	value, matches, err := valueOf(body, m.JSONPath)
	if err != nil {
		return nil, providerhttp.PlainError("web", err, timeout, redactor)
	}
	return analysis.Sample{Value: value, Redactor: redactor, Metadata: metadata(matches)}, nil
}

func (p *Provider) client(m v1alpha1.WebMetric) (*http.Client, *providerhttp.Bearer, error) {
	origin, err := providerhttp.ParseAddress(m.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("url: %w", err)
	}
	auth := v1alpha1.Authentication{}
	if m.Authentication != nil {
		auth = *m.Authentication
	}
	client := p.transports.Client(origin, m.Insecure, providerhttp.Credentials(m.Headers, auth.BasicAuth))
	bearer, err := p.tokens.Bear(client, origin, auth.OAuth2, m.Insecure)
	if err != nil {
		return nil, nil, err
	}
	return client, bearer, nil
}

// request is without headers of the metric: those are credentials. One of them replaces
// the content type of a jsonBody.
func request(ctx context.Context, m v1alpha1.WebMetric) (*http.Request, error) {
	method := m.Method
	if method == "" {
		method = http.MethodGet
	}
	body := m.Body
	if m.JSONBody != nil {
		if body != "" {
			return nil, ErrTwoBodies
		}
		body = string(m.JSONBody.Raw)
	}
	if body != "" && method == http.MethodGet {
		return nil, ErrBodyOfGet
	}
	req, err := http.NewRequestWithContext(ctx, method, m.URL, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("url: %w", providerhttp.ErrBadAddress) // its text holds the URL
	}
	if m.JSONBody != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}
