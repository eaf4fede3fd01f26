package skywalking

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	name = "skywalking"
	// timeout of a query, Argo's.
	timeout = 30 * time.Second
	// minute is the layout of a time in steps of a minute.
	minute = "2006-01-02 1504"
)

// ErrInterval says that a metric doesn't tell how far to look back.
var ErrInterval = errors.New("interval is wanted: how far the query looks back, such as 3m")

// Options of the provider.
type Options struct {
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks SkyWalking. It is safe for concurrent use.
type Provider struct{ transports *providerhttp.Transports }

// New makes a Provider.
func New(o Options) *Provider { return &Provider{transports: providerhttp.New(o.Egress)} }

// Measure sends the query, and gives a map or nil.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.SkyWalking
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.skywalking", q.Metric)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	origin, err := providerhttp.ParseAddress(metric.Address)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, q.Redactor)
	}
	sign, password := providerhttp.UserOf(origin)
	redactor := q.Redactor.With(password)
	value, err := p.ask(ctx, *metric, origin, sign, q.At)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	return analysis.Sample{Value: value, Redactor: redactor}, nil
}

func (p *Provider) ask(ctx context.Context, m v1alpha1.SkyWalkingMetric, origin *url.URL, sign providerhttp.Sign, at time.Time) (any, error) {
	interval, err := analysis.ParseDuration(m.Interval)
	if err != nil {
		return nil, fmt.Errorf("interval: %w", err)
	}
	if interval == 0 {
		return nil, ErrInterval
	}
	target := origin.JoinPath("graphql")
	target.User = nil
	var data map[string]any
	err = providerhttp.GraphQL(ctx, p.transports.Client(origin, false, sign), target, m.Query, map[string]any{
		"duration": map[string]string{
			"start": at.Add(-interval).UTC().Format(minute), "end": at.UTC().Format(minute), "step": "MINUTE",
		},
	}, &data)
	if err != nil || data == nil {
		return nil, err
	}
	return data, nil
}
