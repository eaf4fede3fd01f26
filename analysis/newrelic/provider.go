package newrelic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	name = "newRelic"
	// defaultTimeout that New Relic gives a query, in seconds.
	defaultTimeout = 5
	// grace is what a request may take beyond the query's timeout, so that New Relic
	// itself can say that it was exceeded.
	grace = 5 * time.Second

	// QueryMetadata is the key under which the query that was sent is kept, Argo's.
	QueryMetadata = "ResolvedNewRelicQuery"
)

// question is the one that Argo asks.
const question = `query ($query: Nrql!, $accountId: Int!, $timeout: Seconds!) {
  actor {
    account(id: $accountId) {
      nrql(query: $query, timeout: $timeout) {
        results
      }
    }
  }
}`

var (
	// ErrTimeout says that a query is given no time.
	ErrTimeout = errors.New("the timeout wants to be 1 second or more")
	errNoNRQL  = errors.New("New Relic gives no results: is the account-id right, and may the key read it?")
)

// Options of the provider.
type Options struct {
	// Secrets finds the account and the key.
	Secrets providersecret.Finder
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks New Relic. It is safe for concurrent use.
type Provider struct {
	secrets    providersecret.Finder
	transports *providerhttp.Transports
}

// New makes a Provider.
func New(o Options) *Provider {
	return &Provider{secrets: o.Secrets, transports: providerhttp.New(o.Egress)}
}

var _ analysis.Describer = (*Provider)(nil)

// Describe gives the query.
func (p *Provider) Describe(q analysis.Query) map[string]string {
	if q.Provider.NewRelic == nil {
		return nil
	}
	return map[string]string{QueryMetadata: q.Provider.NewRelic.Query}
}

// Measure sends the query, and gives a map or a list of maps.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.NewRelic
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.newRelic", q.Metric)
	}
	seconds := int64(defaultTimeout)
	if metric.Timeout != nil {
		seconds = *metric.Timeout
	}
	if seconds < 1 {
		return nil, fmt.Errorf("%s: %w", name, ErrTimeout)
	}
	timeout := time.Duration(seconds)*time.Second + grace
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	account, err := p.account(ctx, *metric, q.Namespace)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	redactor := q.Redactor.With(account.key)
	value, err := p.ask(ctx, *metric, account, seconds)
	if err != nil {
		return nil, providerhttp.PlainError(name, err, timeout, redactor)
	}
	return analysis.Sample{Value: value, Redactor: redactor}, nil
}

func (p *Provider) ask(ctx context.Context, m v1alpha1.NewRelicMetric, a account, seconds int64) (any, error) {
	client := p.transports.Client(a.nerdGraph, false, func(req *http.Request) error {
		req.Header.Set("API-Key", a.key)
		return nil
	})
	var answer struct {
		Actor struct {
			Account struct {
				NRQL *struct {
					Results *[]map[string]any `json:"results"`
				} `json:"nrql"`
			} `json:"account"`
		} `json:"actor"`
	}
	err := providerhttp.GraphQL(ctx, client, a.nerdGraph, question, map[string]any{
		"query": m.Query, "accountId": a.id, "timeout": seconds,
	}, &answer)
	if err != nil {
		return nil, err
	}
	nrql := answer.Actor.Account.NRQL
	if nrql == nil || nrql.Results == nil {
		return nil, errNoNRQL
	}
	return valueOf(*nrql.Results), nil
}

// valueOf is Argo's, but for no rows, which it makes an error.
func valueOf(rows []map[string]any) any {
	if len(rows) == 1 && len(rows[0]) > 0 {
		return rows[0]
	}
	values := []any{}
	for _, row := range rows {
		if len(row) > 0 {
			values = append(values, row)
		}
	}
	return values
}
