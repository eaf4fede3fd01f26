package prometheus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	// defaultTimeout of a query.
	defaultTimeout = 30 * time.Second
	// QueryMetadata is the key under which the query that was sent is kept, Argo's.
	QueryMetadata = "ResolvedPrometheusQuery"
	// WarningsMetadata is the key under which the server's warnings are kept.
	WarningsMetadata = "warnings"
)

// ErrNoAddress says that neither the metric nor the controller names an address.
var ErrNoAddress = errors.New("no address: set provider.prometheus.address, or the controller's flag --prometheus-address")

// Options of the provider.
type Options struct {
	// DefaultAddress for metrics without an address, such as
	// http://prometheus.monitoring:9090. Empty: each metric needs one.
	DefaultAddress string
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
	// AWS signs for metrics with authentication.sigv4. Nil: Sessions of the provider's
	// own, with the same egress policy.
	AWS *awsauth.Sessions
	// SignedHosts are those that requests are signed for. Nil: AWS's.
	SignedHosts awsauth.Hosts
}

// Provider asks Prometheus. It is safe for concurrent use.
type Provider struct {
	defaultAddress string
	transports     *providerhttp.Transports
	tokens         *providerhttp.Tokens
	aws            *awsauth.Sessions
	signedHosts    awsauth.Hosts
}

// New makes a Provider.
func New(o Options) *Provider {
	transports := providerhttp.New(o.Egress)
	if o.AWS == nil {
		o.AWS = awsauth.NewSessions(awsauth.Options{Egress: o.Egress})
	}
	if o.SignedHosts == nil {
		o.SignedHosts = awsauth.DefaultHosts()
	}
	return &Provider{
		defaultAddress: o.DefaultAddress, transports: transports, tokens: providerhttp.NewTokens(transports),
		aws: o.AWS, signedHosts: o.SignedHosts,
	}
}

var _ analysis.Describer = (*Provider)(nil)

// Describe gives the query.
func (p *Provider) Describe(q analysis.Query) map[string]string {
	if q.Provider.Prometheus == nil {
		return nil
	}
	return map[string]string{QueryMetadata: q.Provider.Prometheus.Query}
}

// Measure sends the query. A scalar is a float64, a vector the list of its numbers in
// the order of their labels, a matrix the list of all of its numbers, series by series,
// and a string a string; no series are an empty list. NaN and the infinities are kept.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.Prometheus
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.prometheus", q.Metric)
	}
	timeout := defaultTimeout
	if metric.Timeout != nil {
		timeout = time.Duration(*metric.Timeout) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asker, err := p.asker(ctx, *metric)
	if err != nil {
		return nil, err
	}
	text := &textClient{Client: asker.client}
	answer, warnings, err := ask(ctx, promv1.NewAPI(text), *metric, q.At)
	redactor := asker.redactor(q.Redactor)
	if text.text != nil {
		answer, err = text.text, nil
	}
	if err != nil {
		return nil, providerhttp.PlainError("prometheus", explained(err), timeout, redactor)
	}
	value, err := valueOf(answer)
	if err != nil {
		return nil, providerhttp.PlainError("prometheus", err, timeout, redactor)
	}
	return analysis.Sample{Value: value, Redactor: redactor, Metadata: metadata(warnings, redactor)}, nil
}

// explained has the details of Prometheus's own errors.
func explained(err error) error {
	var answer *promv1.Error
	if errors.As(err, &answer) && answer.Detail != "" {
		return fmt.Errorf("%s: %s: %s", answer.Type, answer.Msg, answer.Detail)
	}
	return err
}

func ask(ctx context.Context, client promv1.API, m v1alpha1.PrometheusMetric, at time.Time) (model.Value, promv1.Warnings, error) {
	if m.RangeQuery == nil {
		value, warnings, _, err := client.Query(ctx, m.Query, at)
		return value, warnings, err
	}
	r, err := rangeOf(*m.RangeQuery, at)
	if err != nil {
		return nil, nil, err
	}
	value, warnings, _, err := client.QueryRange(ctx, m.Query, r)
	return value, warnings, err
}

func rangeOf(r v1alpha1.PrometheusRangeQueryArgs, at time.Time) (promv1.Range, error) {
	start, err := analysis.EvaluateTime(r.Start, at)
	if err != nil {
		return promv1.Range{}, fmt.Errorf("rangeQuery.start: %w", err)
	}
	end, err := analysis.EvaluateTime(r.End, at)
	if err != nil {
		return promv1.Range{}, fmt.Errorf("rangeQuery.end: %w", err)
	}
	step, err := analysis.ParseDuration(r.Step)
	if err != nil {
		return promv1.Range{}, fmt.Errorf("rangeQuery.step: %w", err)
	}
	return promv1.Range{Start: start, End: end, Step: step}, nil
}

func metadata(warnings promv1.Warnings, r analysis.Redactor) map[string]string {
	if len(warnings) == 0 {
		return nil
	}
	return map[string]string{WarningsMetadata: providerhttp.Words(strings.Join(warnings, "; "), r)}
}
