package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/api"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// signedService is the service that requests are signed for, Amazon Managed Service for
// Prometheus.
const signedService = "aps"

// asker sends the requests of one measurement.
type asker struct {
	client api.Client
	bearer *providerhttp.Bearer
	aws    *awsauth.Secrets
}

// redactor knows what was sent to prove who asks.
func (a asker) redactor(r analysis.Redactor) analysis.Redactor {
	return a.aws.Redactor(a.bearer.Redactor(r))
}

func (p *Provider) asker(ctx context.Context, m v1alpha1.PrometheusMetric) (asker, error) {
	address := m.Address
	if address == "" {
		address = p.defaultAddress
	}
	if address == "" {
		return asker{}, ErrNoAddress
	}
	origin, err := providerhttp.ParseAddress(address)
	if err != nil {
		return asker{}, err
	}
	auth := v1alpha1.Authentication{}
	if m.Authentication != nil {
		auth = *m.Authentication
	}
	a := asker{aws: &awsauth.Secrets{}}
	sign := providerhttp.Credentials(m.Headers, auth.BasicAuth)
	if auth.Sigv4 != nil {
		if err := p.mayBeSigned(origin, m.Headers); err != nil {
			return asker{}, fmt.Errorf("authentication.sigv4: %w", err)
		}
		config, err := p.aws.Config(ctx, awsauth.Identity{Region: auth.Sigv4.Region, Profile: auth.Sigv4.Profile, RoleARN: auth.Sigv4.RoleARN})
		if err != nil {
			return asker{}, fmt.Errorf("authentication.sigv4: %w", err)
		}
		sign = providerhttp.All(sign, a.aws.Sign(config, signedService))
	}
	client := p.transports.Client(origin, m.Insecure, sign)
	if a.bearer, err = p.tokens.Bear(client, origin, auth.OAuth2, m.Insecure); err != nil {
		return asker{}, err
	}
	if a.client, err = api.NewClient(api.Config{Address: address, Client: client}); err != nil {
		return asker{}, providerhttp.ErrBadAddress // its text holds the address, which may hold a password
	}
	return a, nil
}

// mayBeSigned keeps the controller's signature from whoever is no part of AWS.
func (p *Provider) mayBeSigned(origin *url.URL, headers []v1alpha1.WebMetricHeader) error {
	for _, h := range headers {
		if http.CanonicalHeaderKey(h.Key) == "Host" {
			return awsauth.ErrHostHeader
		}
	}
	return p.signedHosts.Check(origin)
}
