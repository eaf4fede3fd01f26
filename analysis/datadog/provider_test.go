package datadog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// harness is a provider and the Secrets that it reads.
type harness struct {
	secrets providertest.Secrets
	version string
}

func (h *harness) provider() *Provider {
	return New(Options{Secrets: providersecret.Finder{Read: h.secrets.Read, Shared: "system"}})
}

func (h *harness) query(url string, s providertest.Settings) analysis.Query {
	password := s.Password
	if password == "" {
		password = "key-of-nobody"
	}
	secret := h.secrets.Add("shop", map[string]string{"address": url, "api-key": password, "app-key": "app-of-" + s.User})
	m := &v1alpha1.DatadogMetric{APIVersion: h.version, Query: "avg:errors{x:" + s.Text + "}", SecretRef: &v1alpha1.SecretRef{Name: secret, Namespaced: true}}
	if s.TimeoutSeconds > 0 {
		m.RequestTimeout = v1alpha1.DurationString(fmt.Sprint(s.TimeoutSeconds, "s"))
	}
	return analysis.Query{Metric: "m", Namespace: "shop", Provider: v1alpha1.MetricProvider{Datadog: m}, At: time.Unix(1_787_000_000, 0)}
}

func authorized(r *http.Request, user, password string) bool {
	return r.Header.Get("DD-API-KEY") == password && r.Header.Get("DD-APPLICATION-KEY") == "app-of-"+user
}

func v1(series string) string { return `{"status":"ok","error":"","series":` + series + `}` }

func v2(columns string) string {
	return `{"data":{"type":"scalar_response","attributes":{"columns":` + columns + `}},"errors":""}`
}

var noLiterals = map[providertest.Shape]string{
	providertest.NaN: "JSON has none", providertest.Inf: "JSON has none", providertest.NegInf: "JSON has none",
	providertest.Text: "points are numbers",
}

func TestConformance(t *testing.T) {
	for version, answers := range map[string]map[providertest.Shape]providertest.Answer{
		"v1": {
			providertest.Number:     {Body: v1(`[{"pointlist":[[1000,0.25],[2000,0.5]]}]`), Want: 0.5},
			providertest.NoData:     {Body: v1(`[]`), Want: nil},
			providertest.WrongType:  {Body: v1(`[{"pointlist":[[1000,"0.5"]]}]`), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `{"status":"ok","error":""}`, Fails: true},
			providertest.Cut:        {Body: `{"status":"ok","error":"","series":[`, Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: v1(`[{"scope":"host:b","pointlist":[[1,2]]},{"scope":"host:a","pointlist":[[1,1]]},{"scope":"host:c","pointlist":[[1,3]]}]`), Want: []any{1.0, 2.0, 3.0}},
		},
		"v2": {
			providertest.Number:     {Body: v2(`[{"name":"q","type":"number","values":[0.5]}]`), Want: 0.5},
			providertest.NoData:     {Body: v2(`[]`), Want: nil},
			providertest.WrongType:  {Body: v2(`[{"name":"q","type":"number","values":["0.5"]}]`), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `{"data":{"type":"scalar_response","attributes":{}},"errors":""}`, Fails: true},
			providertest.Cut:        {Body: `{"data":{"type":"scalar_response","attributes":{"columns":[`, Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: v2(`[{"name":"host","type":"group","values":[["b"],["a"],["c"]]},{"name":"q","type":"number","values":[2,1,3]}]`), Want: []any{1.0, 2.0, 3.0}},
		},
	} {
		t.Run(version, func(t *testing.T) {
			h := &harness{version: version}
			providertest.Run(t, providertest.Harness{
				New:        func(*testing.T) analysis.Provider { return h.provider() },
				Query:      h.query,
				Answers:    answers,
				Unsayable:  noLiterals,
				Lacks:      map[providertest.Setting]string{providertest.SkipCheck: "Argo has no such field", providertest.CustomHeaders: "Argo has no such field"},
				Authorized: authorized,
				OwnSecrets: true,
				Echo: func(credential string) providertest.Answer {
					body := v1(`[{"pointlist":[[1000,` + credential + `]]}]`)
					if version == "v2" {
						body = v2(`[{"name":"q","type":"number","values":[` + credential + `]}]`)
					}
					return providertest.Answer{Body: body, Want: 2718281828.0}
				},
				ErrorBody: func(words string) string {
					body, err := json.Marshal(map[string][]string{"errors": {words}})
					if err != nil {
						t.Fatal(err)
					}
					return string(body)
				},
			})
		})
	}
}

func TestValues(t *testing.T) {
	for name, tc := range map[string]struct {
		version, body, want string
	}{
		"v1 null series":                 {"v1", v1(`null`), "null"},
		"v1 no points":                   {"v1", v1(`[{"pointlist":[]}]`), "null"},
		"v1 null points":                 {"v1", v1(`[{"pointlist":null}]`), "null"},
		"v1 all points are null":         {"v1", v1(`[{"pointlist":[[1,null],[2,null]]}]`), "null"},
		"v1 the last point is null":      {"v1", v1(`[{"pointlist":[[1,0.5],[2,null]]}]`), "0.5"},
		"v1 zero is a value":             {"v1", v1(`[{"pointlist":[[1,0.5],[2,0]]}]`), "0"},
		"v1 one of two series is empty":  {"v1", v1(`[{"scope":"b","pointlist":[[1,2]]},{"scope":"a","pointlist":[]}]`), "[null,2]"},
		"v1 a point of three":            {"v1", v1(`[{"pointlist":[[1,2,3]]}]`), "error"},
		"v1 an error with 200":           {"v1", `{"status":"error","error":"Rule 'scope_expr' didn't match","series":[]}`, "error"},
		"v1 nothing of Datadog's":        {"v1", `{"ok":true}`, "error"},
		"v1 null":                        {"v1", `null`, "error"},
		"v2 no columns":                  {"v2", `{"data":{"attributes":{}}}`, "error"},
		"v2 null columns":                {"v2", v2(`null`), "error"},
		"v2 no attributes":               {"v2", `{"data":{}}`, "error"},
		"v2 columns of nothing":          {"v2", v2(`[]`), "null"},
		"v2 no values":                   {"v2", v2(`[{"name":"q","type":"number","values":[]}]`), "null"},
		"v2 null values":                 {"v2", v2(`[{"name":"q","type":"number","values":null}]`), "null"},
		"v2 zero is a value":             {"v2", v2(`[{"name":"q","type":"number","values":[0]}]`), "0"},
		"v2 column without a type":       {"v2", v2(`[{"values":[3]}]`), "3"},
		"v2 one group":                   {"v2", v2(`[{"name":"host","type":"group","values":[["a"]]},{"name":"q","type":"number","values":[7]}]`), "7"},
		"v2 no group":                    {"v2", v2(`[{"name":"host","type":"group","values":[]},{"name":"q","type":"number","values":[]}]`), "null"},
		"v2 null in a group":             {"v2", v2(`[{"name":"host","type":"group","values":[["b"],["a"]]},{"name":"q","type":"number","values":[2,null]}]`), "[null,2]"},
		"v2 two columns of numbers":      {"v2", v2(`[{"name":"a","type":"number","values":[1]},{"name":"b","type":"number","values":[2]}]`), "error"},
		"v2 an error with 200":           {"v2", `{"data":{"attributes":{"columns":[{"values":[1]}]}},"errors":"bad query"}`, "error"},
		"v2 an error inside of the data": {"v2", `{"data":{"attributes":{},"errors":"bad query"}}`, "error"},
		"v2 nothing of Datadog's":        {"v2", `{"ok":true}`, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ask(t, tc.version, tc.body); got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func ask(t *testing.T, version, body string) (string, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer s.Close()
	h := &harness{version: version}
	outcome, err := h.provider().Measure(context.Background(), h.query(s.URL, providertest.Settings{}), nil)
	if err != nil {
		return "error", err
	}
	return analysis.Text(outcome.(analysis.Sample).Value), nil
}

// A ratio of nothing to nothing is null, and null is never 0.
func TestC19_NullReachesTheConditionAsNil(t *testing.T) {
	for version, body := range map[string]string{
		"v1": v1(`[{"pointlist":[[1000,null]]}]`),
		"v2": v2(`[{"name":"a / b","type":"number","values":[null]}]`),
	} {
		for name, tc := range map[string]struct {
			language  v1alpha1.ConditionLanguage
			condition string
			want      v1alpha1.AnalysisPhase
		}{
			"expr, unguarded": {v1alpha1.ConditionExpr, "result < 0.05", v1alpha1.AnalysisPhaseError},
			"expr, nil":       {v1alpha1.ConditionExpr, "result == nil || result < 0.05", v1alpha1.AnalysisPhaseSuccessful},
			"expr, default":   {v1alpha1.ConditionExpr, "default(result, 0) < 0.05", v1alpha1.AnalysisPhaseSuccessful},
			"expr, isNil":     {v1alpha1.ConditionExpr, "!isNil(result) && result < 0.05", v1alpha1.AnalysisPhaseFailed},
			"CEL, unguarded":  {v1alpha1.ConditionCEL, "result < 0.05", v1alpha1.AnalysisPhaseError},
			"CEL, null":       {v1alpha1.ConditionCEL, "result == null || result < 0.05", v1alpha1.AnalysisPhaseSuccessful},
			"CEL, default":    {v1alpha1.ConditionCEL, "default(result, 0) < 0.05", v1alpha1.AnalysisPhaseSuccessful},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
				defer s.Close()
				h := &harness{version: version}
				outcome, err := h.provider().Measure(context.Background(), h.query(s.URL, providertest.Settings{}), nil)
				if err != nil {
					t.Fatal(err)
				}
				conditions, err := analysis.Compile(v1alpha1.Metric{Name: "m", SuccessCondition: tc.condition, ConditionLanguage: tc.language})
				if err != nil {
					t.Fatal(err)
				}
				if got, message := analysis.Judge(conditions, outcome.(analysis.Sample).Value, time.Unix(0, 0)); got != tc.want {
					t.Errorf("got %s (%s), want %s", got, message, tc.want)
				}
			})
		}
	}
}

// request is what a server was asked.
type request struct{ Method, Path, Query, Type, Keys, Body string }

func record(t *testing.T, into *request, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*into = request{r.Method, r.URL.Path, r.URL.Query().Encode(), r.Header.Get("Content-Type"), r.Header.Get("DD-API-KEY") + " " + r.Header.Get("DD-APPLICATION-KEY"), string(raw)}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestRequests(t *testing.T) {
	const scalar = `{"data":{"attributes":{"from":%d,"to":1787000000000,"queries":[%s],"formulas":[%s]},"type":"scalar_request"}}`
	one := func(name, query, aggregator string) string {
		return fmt.Sprintf(`{"aggregator":%q,"data_source":"metrics","name":%q,"query":%q}`, aggregator, name, query)
	}
	for name, tc := range map[string]struct {
		metric v1alpha1.DatadogMetric
		want   request
	}{
		"v1 by default": {
			v1alpha1.DatadogMetric{Query: "sum:a{b:c}.as_count() / 2"},
			request{Method: "GET", Path: "/dd/api/v1/query", Query: "from=1786999700&query=sum%3Aa%7Bb%3Ac%7D.as_count%28%29+%2F+2&to=1787000000"},
		},
		"v1 with an interval": {
			v1alpha1.DatadogMetric{APIVersion: "v1", Query: "q", Interval: "10m"},
			request{Method: "GET", Path: "/dd/api/v1/query", Query: "from=1786999400&query=q&to=1787000000"},
		},
		"v2 query": {
			v1alpha1.DatadogMetric{APIVersion: "v2", Query: "avg:x{*}"},
			request{Method: "POST", Path: "/dd/api/v2/query/scalar", Type: "application/json", Body: fmt.Sprintf(scalar, 1786999700000, one("query", "avg:x{*}", "last"), "")},
		},
		"v2 formula": {
			v1alpha1.DatadogMetric{APIVersion: "v2", Queries: map[string]string{"b": "sum:b{*}", "a": "sum:a{*}"}, Formula: "a / b", Aggregator: "sum", Interval: "1m"},
			request{Method: "POST", Path: "/dd/api/v2/query/scalar", Type: "application/json",
				Body: fmt.Sprintf(scalar, 1786999940000, one("a", "sum:a{*}", "sum")+","+one("b", "sum:b{*}", "sum"), `{"formula":"a / b"}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got request
			answer := v1(`[]`)
			if tc.metric.APIVersion == "v2" {
				answer = v2(`[]`)
			}
			s := record(t, &got, answer)
			h := &harness{}
			h.secrets.Put("system", "datadog", map[string]string{"address": s.URL + "/dd/", "api-key": "api\n", "app-key": "app"})
			q := analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{Datadog: &tc.metric}, At: time.Unix(1_787_000_000, 0)}
			if _, err := h.provider().Measure(context.Background(), q, nil); err != nil {
				t.Fatal(err)
			}
			tc.want.Keys = "api app"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadMetrics(t *testing.T) {
	h := &harness{}
	h.secrets.Put("system", "datadog", map[string]string{"address": "http://127.0.0.1:1", "api-key": "api", "app-key": "app"})
	for name, m := range map[string]v1alpha1.DatadogMetric{
		"unknown version":    {APIVersion: "v3", Query: "q"},
		"v1 without a query": {Queries: map[string]string{"a": "q"}},
		"v2 without a query": {APIVersion: "v2"},
		"bad interval":       {Query: "q", Interval: "soon"},
		"bad timeout":        {Query: "q", RequestTimeout: "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.provider().Measure(context.Background(), analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{Datadog: &m}}, nil)
			if err == nil || strings.Contains(err.Error(), "refused") {
				t.Errorf("got %v, want an error before anything is asked", err)
			}
		})
	}
	if _, err := h.provider().Measure(context.Background(), analysis.Query{}, nil); err == nil {
		t.Error("a metric of another provider is taken")
	}
}

func TestCredentials(t *testing.T) {
	keys := func(api string) map[string]string {
		return map[string]string{"api-key": api, "app-key": "app", "address": "http://dd"}
	}
	both := map[string]map[string]string{"system/datadog": keys("shared"), "shop/datadog": keys("own"), "system/team": keys("shared team"), "shop/team": keys("own team")}
	env := Credentials{APIKey: "env", AppKey: "env"}
	for name, tc := range map[string]struct {
		secrets map[string]map[string]string
		ref     *v1alpha1.SecretRef
		env     Credentials
		want    string
		err     error
	}{
		"the shared default":               {both, nil, Credentials{}, "shared", nil},
		"an empty reference":               {both, &v1alpha1.SecretRef{}, Credentials{}, "shared", nil},
		"the environment wins by default":  {both, nil, env, "env", nil},
		"half an environment is none":      {both, nil, Credentials{APIKey: "env"}, "shared", nil},
		"a name wins over the environment": {both, &v1alpha1.SecretRef{Name: "team"}, env, "shared team", nil},
		"a name in the run's namespace":    {both, &v1alpha1.SecretRef{Name: "team", Namespaced: true}, env, "own team", nil},
		"the run's default":                {map[string]map[string]string{"shop/datadog": keys("own")}, nil, Credentials{}, "own", nil},
		"namespaced without a name":        {both, &v1alpha1.SecretRef{Namespaced: true}, env, "", ErrNoName},
		"a name that is nowhere":           {both, &v1alpha1.SecretRef{Name: "absent"}, env, "", providersecret.ErrUnusable},
		"no app-key":                       {map[string]map[string]string{"system/datadog": {"api-key": "a"}}, nil, Credentials{}, "", providersecret.ErrUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			h := &harness{}
			for key, data := range tc.secrets {
				namespace, name, _ := strings.Cut(key, "/")
				h.secrets.Put(namespace, name, data)
			}
			p := New(Options{Secrets: providersecret.Finder{Read: h.secrets.Read, Shared: "system"}, Environment: tc.env})
			got, err := p.credentials(context.Background(), v1alpha1.DatadogMetric{SecretRef: tc.ref}, "shop")
			if !errors.Is(err, tc.err) || got.APIKey != tc.want {
				t.Errorf("got %q, %v; want %q, %v", got.APIKey, err, tc.want, tc.err)
			}
			if tc.want == "env" && got.Address != defaultAddress {
				t.Errorf("got address %q", got.Address)
			}
		})
	}
}

// Trouble with the API server must not read as if Datadog had it.
func TestTroubleWithTheSecretIsTold(t *testing.T) {
	trouble := &url.Error{Op: "Get", URL: "https://10.96.0.1/api/v1/namespaces/system/secrets/datadog", Err: errors.New("connection refused")}
	p := New(Options{Secrets: providersecret.Finder{Shared: "system", Read: func(context.Context, string, string) (map[string][]byte, error) {
		return nil, trouble
	}}})
	q := analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{Datadog: &v1alpha1.DatadogMetric{Query: "q"}}}
	_, err := p.Measure(context.Background(), q, nil)
	if !errors.Is(err, trouble) || !strings.Contains(err.Error(), `reading Secret "datadog" in namespace "system"`) {
		t.Errorf("got %v", err)
	}
}
