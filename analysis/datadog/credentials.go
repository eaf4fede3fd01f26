package datadog

import (
	"context"
	"errors"
	"net/http"

	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// defaultSecret is looked for when a metric names none.
	defaultSecret = "datadog"
	// defaultAddress is that of the US1 site.
	defaultAddress = "https://api.datadoghq.com"

	keyAPI     = "api-key"
	keyApp     = "app-key"
	keyAddress = "address"
)

// ErrNoName says that a Secret of the run's namespace is asked for without its name.
var ErrNoName = errors.New("secretRef.namespaced wants secretRef.name too")

// Credentials are what a Secret or the environment says.
type Credentials struct {
	// Address of the API. Default https://api.datadoghq.com.
	Address string
	// APIKey and AppKey are both wanted.
	APIKey, AppKey string
}

// sign adds the keys to a request.
func (c Credentials) sign(req *http.Request) error {
	req.Header.Set("DD-API-KEY", c.APIKey)
	req.Header.Set("DD-APPLICATION-KEY", c.AppKey)
	return nil
}

func (c Credentials) complete() bool { return c.APIKey != "" && c.AppKey != "" }

func (c Credentials) withDefaults() Credentials {
	if c.Address == "" {
		c.Address = defaultAddress
	}
	return c
}

func (p *Provider) credentials(ctx context.Context, m v1alpha1.DatadogMetric, namespace string) (Credentials, error) {
	want := providersecret.Want{Namespace: namespace, Name: defaultSecret, Keys: []string{keyAPI, keyApp}}
	if ref := m.SecretRef; ref != nil {
		if ref.Namespaced && ref.Name == "" {
			return Credentials{}, ErrNoName
		}
		want.Own = ref.Namespaced
		if ref.Name != "" {
			want.Name = ref.Name
		}
	}
	named := m.SecretRef != nil && m.SecretRef.Name != ""
	if !named && p.environment.complete() {
		return p.environment.withDefaults(), nil
	}
	values, err := p.secrets.Find(ctx, want)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{Address: values[keyAddress], APIKey: values[keyAPI], AppKey: values[keyApp]}.withDefaults(), nil
}
