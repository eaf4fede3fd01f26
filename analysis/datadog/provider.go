package datadog

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	name = "datadog"
	// defaultTimeout of a request.
	defaultTimeout = 10 * time.Second
	// defaultInterval is how far a query looks back.
	defaultInterval = 5 * time.Minute
)

// Options of the provider.
type Options struct {
	// Secrets finds the keys.
	Secrets providersecret.Finder
	// Environment has the keys of the controller's environment, used where a metric
	// names no Secret. The zero value has none.
	Environment Credentials
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks Datadog. It is safe for concurrent use.
type Provider struct {
	secrets     providersecret.Finder
	environment Credentials
	transports  *providerhttp.Transports
}

// New makes a Provider.
func New(o Options) *Provider {
	return &Provider{secrets: o.Secrets, environment: o.Environment, transports: providerhttp.New(o.Egress)}
}

// Measure sends the query, and gives a number, a list of numbers or nil.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.Datadog
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.datadog", q.Metric)
	}
	timeout, err := durationOr(metric.RequestTimeout, defaultTimeout)
	if err != nil {
		return nil, fmt.Errorf("%s: requestTimeout: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keys, err := p.credentials(ctx, *metric, q.Namespace)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	redactor := q.Redactor.With(keys.APIKey, keys.AppKey)
	value, err := p.ask(ctx, *metric, keys, q.At)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	return analysis.Sample{Value: value, Redactor: redactor}, nil
}

func (p *Provider) ask(ctx context.Context, m v1alpha1.DatadogMetric, keys Credentials, at time.Time) (any, error) {
	origin, err := providerhttp.ParseAddress(keys.Address)
	if err != nil {
		return nil, fmt.Errorf("the address in the Secret or in DD_ADDRESS: %w", err)
	}
	interval, err := durationOr(m.Interval, defaultInterval)
	if err != nil {
		return nil, fmt.Errorf("interval: %w", err)
	}
	req, read, err := makeRequest(ctx, origin, m, at.Add(-interval), at)
	if err != nil {
		return nil, err
	}
	body, err := providerhttp.Fetch(p.transports.Client(origin, false, keys.sign), req)
	if err != nil {
		return nil, err
	}
	return read(body)
}

// makeRequest gives the request, and what reads its answer.
func makeRequest(ctx context.Context, origin *url.URL, m v1alpha1.DatadogMetric, from, to time.Time) (*http.Request, func([]byte) (any, error), error) {
	switch m.APIVersion {
	case "", "v1":
		req, err := requestV1(ctx, origin, m.Query, from, to)
		return req, readV1, err
	case "v2":
		req, err := requestV2(ctx, origin, m, from, to)
		return req, readV2, err
	}
	return nil, nil, fmt.Errorf("apiVersion %q is neither v1 nor v2", m.APIVersion)
}

func durationOr(s v1alpha1.DurationString, otherwise time.Duration) (time.Duration, error) {
	d, err := analysis.ParseDuration(s)
	if d == 0 {
		d = otherwise
	}
	return d, err
}
