package influxdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	influx "github.com/influxdata/influxdb-client-go/v2/api"
	influxhttp "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

const (
	name = "influxdb"
	// timeout of a query, Argo's.
	timeout = 30 * time.Second
	// defaultSecret is looked for when a metric has no profile.
	defaultSecret = "influxdb"

	keyToken   = "authToken"
	keyOrg     = "org"
	keyAddress = "address"
)

// Options of the provider.
type Options struct {
	// Secrets finds the address, the token and the organisation.
	Secrets providersecret.Finder
	// Egress decides which addresses may be connected to.
	Egress egress.Policy
}

// Provider asks InfluxDB. It is safe for concurrent use.
type Provider struct {
	secrets    providersecret.Finder
	transports *providerhttp.Transports
}

// New makes a Provider.
func New(o Options) *Provider {
	return &Provider{secrets: o.Secrets, transports: providerhttp.New(o.Egress)}
}

// Measure sends the query, and gives the list of the values.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, _ analysis.Handle) (analysis.Outcome, error) {
	metric := q.Provider.Influxdb
	if metric == nil {
		return nil, fmt.Errorf("metric %q has no provider.influxdb", q.Metric)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	profile, err := p.secrets.Find(ctx, providersecret.Want{
		Namespace: q.Namespace, Name: cmp.Or(metric.Profile, defaultSecret), Keys: []string{keyAddress, keyToken, keyOrg},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	redactor := profile.Redactor(q.Redactor, keyToken)
	value, err := p.ask(ctx, *metric, profile)
	if err != nil {
		return nil, providerhttp.PlainError(name, explained(err), timeout, redactor)
	}
	return analysis.Sample{Value: value, Redactor: redactor}, nil
}

// ask reads the whole answer before it looks at it: an answer that breaks off is none.
func (p *Provider) ask(ctx context.Context, m v1alpha1.InfluxdbMetric, profile providersecret.Values) (any, error) {
	origin, err := providerhttp.ParseAddress(profile[keyAddress])
	if err != nil {
		return nil, fmt.Errorf("the address in the Secret: %w", err)
	}
	client := p.transports.Client(origin, false, func(req *http.Request) error {
		req.Header.Set("Authorization", "Token "+profile[keyToken])
		// The transport unpacks answers itself, within the limit of their size; the
		// client would do so without one.
		req.Header.Del("Accept-Encoding")
		return nil
	})
	service := influxhttp.NewService(origin.JoinPath("/").String(), "", influxhttp.DefaultOptions().SetHTTPClient(client).SetApplicationName("pushback"))
	answer, err := influx.NewQueryAPI(profile[keyOrg], service).QueryRaw(ctx, m.Query, influx.DefaultDialect())
	if err != nil {
		return nil, err
	}
	return read(answer)
}

// explained has the status of an answer that is no success, once, and the server's words.
func explained(err error) error {
	var answer *influxhttp.Error
	if !errors.As(err, &answer) || answer.StatusCode == 0 {
		return err
	}
	status := fmt.Sprintf("the server answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if answer.Err == nil && strings.HasPrefix(answer.Code, strconv.Itoa(answer.StatusCode)) {
		return fmt.Errorf("%s: %s", status, answer.Message) // the client takes the status for the code
	}
	return fmt.Errorf("%s: %w", status, err)
}
