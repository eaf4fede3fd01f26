package kayenta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// The causes that callers may branch on, beside those of providerhttp.
var (
	// ErrNoConfig says that there is no canary config of that name.
	ErrNoConfig = errors.New("there is no such canary config")
	// ErrNoScore says that a judgement has ended and has no score that is a number.
	ErrNoScore = errors.New("the judgement gave no score")
	// ErrTooLong says that a judgement has not ended within two hours.
	ErrTooLong = errors.New("the judgement takes too long")
)

// maxExecution is the most bytes of a judgement's id, which is stored. Kayenta's have 26.
const maxExecution = 256

// plain is an error for people; see providerhttp.PlainError.
func plain(err error, r analysis.Redactor) error {
	for _, own := range []error{ErrNoConfig, ErrNoScore, ErrTooLong} {
		if errors.Is(err, own) {
			return &ownError{providerhttp.PlainError("kayenta", err, timeout, r).Error(), own}
		}
	}
	return providerhttp.PlainError("kayenta", err, timeout, r)
}

// ownError shows the text that was made for people, and keeps the cause.
type ownError struct {
	text  string
	cause error
}

// Error is the text.
func (e *ownError) Error() string { return e.text }

// Unwrap is the cause.
func (e *ownError) Unwrap() error { return e.cause }

// server is a Kayenta as one metric asks it.
type server struct {
	metric v1alpha1.KayentaMetric
	base   *url.URL
	client *http.Client
	// password of the address; empty without one.
	password string
}

func (p *Provider) server(m v1alpha1.KayentaMetric) (*server, error) {
	base, err := providerhttp.ParseAddress(m.Address)
	if err != nil {
		return nil, err
	}
	var basic *v1alpha1.BasicAuthConfig
	password := ""
	if base.User != nil {
		password, _ = base.User.Password() // none is an empty one
		basic = &v1alpha1.BasicAuthConfig{Username: base.User.Username(), Password: password}
		base.User = nil
	}
	return &server{
		metric: m, base: base, password: password,
		client: p.transports.Client(base, false, providerhttp.Credentials(nil, basic)),
	}, nil
}

// configID looks up the config by its name.
func (s *server) configID(ctx context.Context) (string, error) {
	var configs []struct{ ID, Name string }
	target := s.url(url.Values{"application": {s.metric.Application}, "configurationAccountName": {s.metric.ConfigurationAccountName}}, "canaryConfig")
	if err := s.exchange(ctx, http.MethodGet, target, nil, &configs); err != nil {
		return "", fmt.Errorf("looking up the canary config: %w", err)
	}
	for _, config := range configs {
		if config.Name == s.metric.CanaryConfigName && config.ID != "" {
			return config.ID, nil
		}
	}
	return "", fmt.Errorf("%w: %q, application %q, configuration account %q: it is not among the %d that there are",
		ErrNoConfig, s.metric.CanaryConfigName, s.metric.Application, s.metric.ConfigurationAccountName, len(configs))
}

// judge asks for a judgement and gives its id.
func (s *server) judge(ctx context.Context, config string) (string, error) {
	body, err := json.Marshal(request(s.metric))
	if err != nil {
		return "", err
	}
	target := s.url(url.Values{
		"application": {s.metric.Application}, "metricsAccountName": {s.metric.MetricsAccountName},
		"configurationAccountName": {s.metric.ConfigurationAccountName}, "storageAccountName": {s.metric.StorageAccountName},
	}, "canary", config)
	var answer struct{ CanaryExecutionID string }
	if err := s.exchange(ctx, http.MethodPost, target, body, &answer); err != nil {
		return "", fmt.Errorf("asking for a judgement: %w", err)
	}
	if answer.CanaryExecutionID == "" {
		return "", errors.New("asking for a judgement: the answer has no canaryExecutionId")
	}
	if n := len(answer.CanaryExecutionID); n > maxExecution {
		return "", fmt.Errorf("asking for a judgement: the canaryExecutionId has %d bytes, and at most %d are taken", n, maxExecution)
	}
	return answer.CanaryExecutionID, nil
}

// status asks how far a judgement is.
func (s *server) status(ctx context.Context, execution string) (judgement, error) {
	var found judgement
	target := s.url(url.Values{"storageAccountName": {s.metric.StorageAccountName}}, "canary", execution)
	if err := s.exchange(ctx, http.MethodGet, target, nil, &found); err != nil {
		return judgement{}, fmt.Errorf("asking for judgement %s: %w", execution, err)
	}
	if found.Complete == nil {
		return judgement{}, fmt.Errorf("asking for judgement %s: the answer doesn't say whether it is complete", execution)
	}
	return found, nil
}

// url is that of an endpoint. Values that are empty are left out: Kayenta has defaults.
func (s *server) url(query url.Values, path ...string) *url.URL {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	target := s.base.JoinPath(path...)
	for name, values := range query {
		if values[0] == "" {
			query.Del(name)
		}
	}
	target.RawQuery = query.Encode()
	return target
}

// exchange sends a request and decodes the answer.
func (s *server) exchange(ctx context.Context, method string, target *url.URL, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return providerhttp.ErrBadAddress
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := providerhttp.Fetch(s.client, req)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("the answer is not Kayenta's: %w", err)
	}
	return nil
}

// wireScope is a scope as Kayenta reads it. Older ones call the place region, newer ones
// location, and each ignores the other.
type wireScope struct {
	Scope    string `json:"scope"`
	Region   string `json:"region"`
	Location string `json:"location"`
	Step     int64  `json:"step"`
	Start    string `json:"start"`
	End      string `json:"end"`
}

type wirePair struct {
	Control    wireScope `json:"controlScope"`
	Experiment wireScope `json:"experimentScope"`
}

type wireRequest struct {
	Scopes     map[string]wirePair       `json:"scopes"`
	Thresholds v1alpha1.KayentaThreshold `json:"thresholds"`
}

func request(m v1alpha1.KayentaMetric) wireRequest {
	out := wireRequest{Scopes: map[string]wirePair{}, Thresholds: m.Threshold}
	for _, s := range m.Scopes {
		out.Scopes[s.Name] = wirePair{Control: scope(s.ControlScope), Experiment: scope(s.ExperimentScope)}
	}
	return out
}

func scope(d v1alpha1.ScopeDetail) wireScope {
	return wireScope{Scope: d.Scope, Region: d.Region, Location: d.Region, Step: d.Step, Start: d.Start, End: d.End}
}
