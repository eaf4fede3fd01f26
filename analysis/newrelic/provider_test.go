package newrelic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// harness is a provider and the Secrets that it reads.
type harness struct{ secrets providertest.Secrets }

func (h *harness) provider() *Provider {
	return New(Options{Secrets: providersecret.Finder{Read: h.secrets.Read, Shared: "system"}})
}

func (h *harness) query(url string, s providertest.Settings) analysis.Query {
	password := s.Password
	if password == "" {
		password = "NRAK-1"
	}
	m := &v1alpha1.NewRelicMetric{
		Query: "FROM Transaction SELECT count(*) WHERE app = '" + s.Text + "'",
		Profile: h.secrets.Add("shop", map[string]string{
			"personal-api-key": password, "account-id": "123", "base-url-nerdgraph": url + "/graphql"}),
	}
	if s.TimeoutSeconds > 0 {
		m.Timeout = &s.TimeoutSeconds
	}
	return analysis.Query{Metric: "m", Namespace: "shop", Provider: v1alpha1.MetricProvider{NewRelic: m}}
}

func results(rows string) string {
	return `{"data":{"actor":{"account":{"nrql":{"results":` + rows + `}}}}}`
}

func TestConformance(t *testing.T) {
	const none = "JSON has none"
	h := &harness{}
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return h.provider() },
		Query: h.query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     {Body: results(`[{"successRate":0.5}]`), Want: map[string]any{"successRate": 0.5}},
			providertest.NoData:     {Body: results(`[]`), Want: []any{}},
			providertest.Text:       {Body: results(`[{"latest.version":"ok"}]`), Want: map[string]any{"latest.version": "ok"}},
			providertest.WrongType:  {Body: results(`[0.5]`), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `{"data":{"actor":{"account":{"nrql":{}}}}}`, Fails: true},
			providertest.Cut:        {Body: `{"data":{"actor":{"account":{"nrql":{"results":[`, Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: results(`[{"facet":"b","count":2},{"facet":"a","count":1}]`), Want: []any{map[string]any{"facet": "b", "count": 2.0}, map[string]any{"facet": "a", "count": 1.0}}},
		},
		Unsayable: map[providertest.Shape]string{providertest.NaN: none, providertest.Inf: none, providertest.NegInf: none},
		Lacks: map[providertest.Setting]string{
			providertest.SkipCheck: "Argo has no such field", providertest.CustomHeaders: "Argo has no such field"},
		Authorized: func(r *http.Request, _, password string) bool { return r.Header.Get("API-Key") == password },
		OwnSecrets: true,
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: results(`[{"key":"` + credential + `"}]`), Want: map[string]any{"key": credential}}
		},
		ErrorBody: func(words string) string {
			body, err := json.Marshal(map[string]any{"errors": []map[string]string{{"message": words}}})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		},
	})
}

func TestValues(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"null in a field":       {results(`[{"average.duration":null}]`), `{"average.duration":null}`},
		"a map in a field":      {results(`[{"percentile.duration":{"95":1.5}}]`), `{"percentile.duration":{"95":1.5}}`},
		"null for the rows":     {results(`null`), "error"},
		"no rows at all":        {`{"data":{"actor":{"account":{"nrql":{}}}}}`, "error"},
		"a row of nothing":      {results(`[{}]`), "[]"},
		"a null row":            {results(`[null]`), "[]"},
		"rows of nothing":       {results(`[{},{"count":1},{}]`), `[{"count":1}]`},
		"an error with 200":     {`{"data":{"actor":{"account":{"nrql":null}}},"errors":[{"message":"NRQL Syntax Error"}]}`, "error"},
		"data and an error":     {`{"data":{"actor":{"account":{"nrql":{"results":[{"a":1}]}}}},"errors":[{"message":"timed out"}]}`, "error"},
		"no account":            {`{"data":{"actor":{"account":null}}}`, "error"},
		"nothing of NerdGraphs": {`{"ok":true}`, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) }))
			defer s.Close()
			h := &harness{}
			got := "error"
			outcome, err := h.provider().Measure(context.Background(), h.query(s.URL, providertest.Settings{}), nil)
			if err == nil {
				got = analysis.Text(outcome.(analysis.Sample).Value)
			}
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	type request struct {
		Method, Path, Type, Key, Query string
		Variables                      map[string]any
	}
	var got request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = request{Method: r.Method, Path: r.URL.Path, Type: r.Header.Get("Content-Type"), Key: r.Header.Get("API-Key")}
		var body struct {
			Query     string
			Variables map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got.Query, got.Variables = strings.Join(strings.Fields(body.Query), " "), body.Variables
		fmt.Fprint(w, results(`[]`))
	}))
	defer s.Close()
	h := &harness{}
	h.secrets.Put("system", "newrelic", map[string]string{"personal-api-key": "NRAK-1\n", "account-id": "123", "base-url-nerdgraph": s.URL + "/proxy/graphql", "base-url-rest": "http://unused"})
	ten := int64(10)
	for timeout, want := range map[*int64]float64{nil: 5, &ten: 10} {
		q := analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{NewRelic: &v1alpha1.NewRelicMetric{Query: "FROM a SELECT count(*)", Timeout: timeout}}}
		if _, err := h.provider().Measure(context.Background(), q, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(request{"POST", "/proxy/graphql", "application/json", "NRAK-1",
			"query ($query: Nrql!, $accountId: Int!, $timeout: Seconds!) { actor { account(id: $accountId) { nrql(query: $query, timeout: $timeout) { results } } } }",
			map[string]any{"query": "FROM a SELECT count(*)", "accountId": 123.0, "timeout": want}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{QueryMetadata: "FROM a SELECT count(*)"}, h.provider().Describe(q)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAccounts(t *testing.T) {
	secret := func(region, nerdGraph, id string) map[string]string {
		return map[string]string{"personal-api-key": "k", "account-id": id, "region": region, "base-url-nerdgraph": nerdGraph}
	}
	for name, tc := range map[string]struct {
		secret map[string]string
		want   string
		err    error
	}{
		"no region":          {secret("", "", "1"), "https://api.newrelic.com/graphql", nil},
		"us":                 {secret("us", "", "1"), "https://api.newrelic.com/graphql", nil},
		"eu":                 {secret("EU", "", "1"), "https://api.eu.newrelic.com/graphql", nil},
		"staging":            {secret("Staging", "", "1"), "https://staging-api.newrelic.com/graphql", nil},
		"an address":         {secret("eu", "http://proxy/graphql", "1"), "http://proxy/graphql", nil},
		"unknown region":     {secret("mars", "", "1"), "", ErrRegion},
		"no account":         {secret("us", "", ""), "", providersecret.ErrUnusable},
		"an account of text": {secret("us", "", "mine"), "", ErrAccount},
		"an address of none": {secret("us", "proxy", "1"), "", providerhttp.ErrBadAddress},
		"no key":             {map[string]string{"account-id": "1"}, "", providersecret.ErrUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			h := &harness{}
			h.secrets.Put("system", "team", tc.secret)
			got, err := h.provider().account(context.Background(), v1alpha1.NewRelicMetric{Profile: "team"}, "shop")
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if err == nil && got.nerdGraph.String() != tc.want {
				t.Errorf("got %s, want %s", got.nerdGraph, tc.want)
			}
		})
	}
}

func TestBadMetrics(t *testing.T) {
	h := &harness{}
	zero := int64(0)
	q := h.query("http://127.0.0.1:1", providertest.Settings{})
	q.Provider.NewRelic.Timeout = &zero
	if _, err := h.provider().Measure(context.Background(), q, nil); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v, want ErrTimeout", err)
	}
	if _, err := h.provider().Measure(context.Background(), analysis.Query{}, nil); err == nil {
		t.Error("a metric of another provider is taken")
	}
}

// An unreadable Secret is told, and nothing of what is in it.
func TestSecretsStaySecret(t *testing.T) {
	h := &harness{}
	h.secrets.Put("system", "newrelic", map[string]string{"personal-api-key": "NRAK-s3cr3t", "account-id": "NRAK-s3cr3t"})
	q := analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{NewRelic: &v1alpha1.NewRelicMetric{Query: "q"}}}
	_, err := h.provider().Measure(context.Background(), q, nil)
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("got %v", err)
	}
}
