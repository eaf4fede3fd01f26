package graphite

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	name = "graphite"
	// timeout of a request, Argo's.
	timeout = 10 * time.Second

	// OldestMetadata is the key of the time of the oldest datapoint in the value.
	OldestMetadata = "oldestDatapoint"
	// NewestMetadata is the key of the time of the newest datapoint in the value.
	NewestMetadata = "newestDatapoint"
)

// Options of the provider.
type Options struct {
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks Graphite. It is safe for concurrent use.
type Provider struct{ transports *providerhttp.Transports }

// New makes a Provider.
func New(o Options) *Provider { return &Provider{transports: providerhttp.New(o.Egress)} }

// Measure sends the query, and gives the list of the datapoints.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.Graphite
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.graphite", q.Metric)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	origin, err := providerhttp.ParseAddress(metric.Address)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, q.Redactor)
	}
	sign, password := providerhttp.UserOf(origin)
	redactor := q.Redactor.With(password)
	sample, err := p.ask(ctx, *metric, origin, sign)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	sample.Redactor = redactor
	return sample, nil
}

// ask adds what the address has for a query, such as a key, to the parameters.
func (p *Provider) ask(ctx context.Context, m v1alpha1.GraphiteMetric, origin *url.URL, sign providerhttp.Sign) (analysis.Sample, error) {
	query, err := analysis.GraphiteParameters(m.Query)
	if err != nil {
		return analysis.Sample{}, fmt.Errorf("query: %w", err)
	}
	for key, values := range origin.Query() {
		if _, given := query[key]; !given {
			query[key] = values
		}
	}
	query.Set("format", "json")
	target := origin.JoinPath("render")
	target.RawQuery, target.User = query.Encode(), nil
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return analysis.Sample{}, err
	}
	body, err := providerhttp.Fetch(p.transports.Client(origin, false, sign), req)
	if err != nil {
		return analysis.Sample{}, err
	}
	return read(body)
}
