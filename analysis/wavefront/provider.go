package wavefront

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	name = "wavefront"
	// timeout of a query; Argo has none.
	timeout = 30 * time.Second
	// secretName holds the tokens.
	secretName = "wavefront-api-tokens"

	// WarningsMetadata is the key under which Wavefront's warnings are kept, Argo's.
	WarningsMetadata = "warnings"
	// TimesMetadata is the key of the datapoints' times in seconds since 1970, Argo's.
	TimesMetadata = "timestamps"
	// DriftMetadata is the key of how many seconds the datapoints are later than the
	// measurement, Argo's.
	DriftMetadata = "drift"
)

// Options of the provider.
type Options struct {
	// Secrets finds the token.
	Secrets providersecret.Finder
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks Wavefront. It is safe for concurrent use.
type Provider struct {
	secrets    providersecret.Finder
	transports *providerhttp.Transports
	// scheme is https, but in tests.
	scheme string
}

// New makes a Provider.
func New(o Options) *Provider {
	return &Provider{secrets: o.Secrets, transports: providerhttp.New(o.Egress), scheme: "https"}
}

// Measure sends the query, and gives a number, a list of numbers or nil.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.Wavefront
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.wavefront", q.Metric)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tokens, err := p.secrets.Find(ctx, providersecret.Want{Namespace: q.Namespace, Name: secretName, Keys: []string{metric.Address}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	token, redactor := tokens[metric.Address], tokens.Redactor(q.Redactor, metric.Address)
	origin, err := providerhttp.ParseAddress(p.scheme + "://" + metric.Address)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	body, err := p.ask(ctx, origin, token, metric.Query, q.At)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	sample, err := read(body, q.At)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	if warnings := sample.Metadata[WarningsMetadata]; warnings != "" {
		sample.Metadata[WarningsMetadata] = providerhttp.Words(warnings, redactor)
	}
	sample.Redactor = redactor
	return sample, nil
}

// ask is for the one datapoint nearest to a moment, also from outside of it, as Argo has
// it: a window would want a function that makes one value of it, which is the query's.
func (p *Provider) ask(ctx context.Context, origin *url.URL, token, query string, at time.Time) ([]byte, error) {
	moment := strconv.FormatInt(at.Unix()*1000, 10)
	target := origin.JoinPath("api", "v2", "chart", "api")
	target.RawQuery = url.Values{
		"q": {query}, "s": {moment}, "e": {moment}, "g": {"s"}, "p": {"1"}, "i": {"true"},
		"strict": {"false"}, "autoEvents": {"false"}, "listMode": {"false"}, "includeObsoleteMetrics": {"false"},
	}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	return providerhttp.Fetch(p.transports.Client(origin, false, func(req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}), req)
}
