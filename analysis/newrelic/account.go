package newrelic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// defaultSecret is looked for when a metric has no profile.
	defaultSecret = "newrelic"

	keyAPI       = "personal-api-key"
	keyAccount   = "account-id"
	keyRegion    = "region"
	keyNerdGraph = "base-url-nerdgraph"
)

var (
	// ErrRegion says that a Secret names no region of New Relic.
	ErrRegion = errors.New("the region in the Secret is none of us, eu, jp, gov, staging")
	// ErrAccount says that a Secret names no account.
	ErrAccount = errors.New("the account-id in the Secret is no number")
)

// regions are New Relic's, by the address of their NerdGraph.
var regions = map[string]string{
	"us":      "https://api.newrelic.com/graphql",
	"eu":      "https://api.eu.newrelic.com/graphql",
	"jp":      "https://api.jp.newrelic.com/graphql",
	"gov":     "https://gov-api.newrelic.com/graphql",
	"fedramp": "https://gov-api.newrelic.com/graphql",
	"staging": "https://staging-api.newrelic.com/graphql",
}

// account is what a Secret says.
type account struct {
	nerdGraph *url.URL
	key       string
	id        int
}

func (p *Provider) account(ctx context.Context, m v1alpha1.NewRelicMetric, namespace string) (account, error) {
	values, err := p.secrets.Find(ctx, providersecret.Want{
		Namespace: namespace, Name: cmp.Or(m.Profile, defaultSecret), Keys: []string{keyAPI, keyAccount},
	})
	if err != nil {
		return account{}, err
	}
	id, err := strconv.Atoi(values[keyAccount])
	if err != nil {
		return account{}, ErrAccount // the text may be a key in the wrong place
	}
	address, ok := regions[strings.ToLower(cmp.Or(values[keyRegion], "us"))]
	if !ok {
		return account{}, ErrRegion
	}
	nerdGraph, err := providerhttp.ParseAddress(cmp.Or(values[keyNerdGraph], address))
	if err != nil {
		return account{}, fmt.Errorf("%s in the Secret: %w", keyNerdGraph, err)
	}
	return account{nerdGraph: nerdGraph, key: values[keyAPI], id: id}, nil
}
