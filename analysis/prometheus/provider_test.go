package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

func success(resultType, result string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, resultType, result)
}

func one(value string) string {
	return success("vector", fmt.Sprintf(`[{"metric":{"a":"b"},"value":[1,%q]}]`, value))
}

func query(url string, s providertest.Settings) analysis.Query {
	m := &v1alpha1.PrometheusMetric{Address: url, Query: `up{x="` + s.Text + `"}`, Insecure: s.Insecure}
	if s.TimeoutSeconds > 0 {
		m.Timeout = &s.TimeoutSeconds
	}
	for k, v := range s.Headers {
		m.Headers = append(m.Headers, v1alpha1.WebMetricHeader{Key: k, Value: v})
	}
	if s.User != "" {
		m.Authentication = &v1alpha1.Authentication{BasicAuth: &v1alpha1.BasicAuthConfig{Username: s.User, Password: s.Password}}
	}
	return analysis.Query{Metric: "m", Provider: v1alpha1.MetricProvider{Prometheus: m}, At: time.Unix(1_787_000_000, 0)}
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return New(Options{}) },
		Query: query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     {Body: success("scalar", `[1,"0.5"]`), Want: 0.5},
			providertest.NaN:        {Body: one("NaN"), Want: []any{math.NaN()}},
			providertest.Inf:        {Body: one("+Inf"), Want: []any{math.Inf(1)}},
			providertest.NegInf:     {Body: one("-Inf"), Want: []any{math.Inf(-1)}},
			providertest.NoData:     {Body: success("vector", `[]`), Want: []any{}},
			providertest.Text:       {Body: success("string", `[1,"ok"]`), Want: "ok"},
			providertest.WrongType:  {Body: success("table", `[]`), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `{"status":"success"}`, Fails: true},
			providertest.Cut:        {Body: `{"status":"success","data":{"resultType":"vector","result":[`, Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: success("vector", `[{"metric":{"v":"c"},"value":[1,"3"]},{"metric":{"v":"a"},"value":[1,"1"]},{"metric":{"v":"b"},"value":[1,"2"]}]`), Want: []any{1.0, 2.0, 3.0}},
		},
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: success("string", `[1,"`+credential+`"]`), Want: credential}
		},
		ErrorBody: func(words string) string {
			body, err := json.Marshal(map[string]string{"status": "error", "errorType": "execution", "error": words})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		},
	})
}

func TestValues(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want any
	}{
		"scalar NaN":            {success("scalar", `[1,"NaN"]`), "NaN"},
		"empty matrix":          {success("matrix", `[]`), "[]"},
		"matrix in label order": {success("matrix", `[{"metric":{"v":"b"},"values":[[1,"3"],[2,"4"]]},{"metric":{"v":"a"},"values":[[1,"1"],[2,"2"]]}]`), "[1,2,3,4]"},
		"native histogram":      {success("vector", `[{"metric":{"v":"b"},"histogram":[1,{"count":"1","sum":"1"}]}]`), "error"},
		"status error":          {`{"status":"error","errorType":"bad_data","error":"parse error"}`, "error"},
		"null result":           {success("vector", `null`), "[]"},
		"value that is none":    {one("abc"), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) }))
			defer s.Close()
			got := "error"
			outcome, err := New(Options{}).Measure(context.Background(), query(s.URL, providertest.Settings{}), nil)
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
	var path, form string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		path, form = r.URL.Path, r.Form.Encode()
		fmt.Fprint(w, `{"status":"success","warnings":["partial","old"],"data":{"resultType":"vector","result":[]}}`)
	}))
	defer s.Close()
	p := New(Options{DefaultAddress: s.URL + "/prom/"})
	q := query("", providertest.Settings{})
	outcome, err := p.Measure(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	if path != "/prom/api/v1/query" || form != "query=up%7Bx%3D%22%22%7D&time=1787000000" {
		t.Errorf("got %s?%s", path, form)
	}
	if diff := cmp.Diff(map[string]string{WarningsMetadata: "partial; old"}, outcome.(analysis.Sample).Metadata); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{QueryMetadata: `up{x=""}`}, p.Describe(q)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	q.Provider.Prometheus.RangeQuery = &v1alpha1.PrometheusRangeQueryArgs{Start: `now() - duration("5m")`, End: "now()", Step: "1m"}
	if _, err := p.Measure(context.Background(), q, nil); err != nil {
		t.Fatal(err)
	}
	if path != "/prom/api/v1/query_range" || form != "end=1787000000&query=up%7Bx%3D%22%22%7D&start=1786999700&step=60" {
		t.Errorf("got %s?%s", path, form)
	}
}

func TestAddresses(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, one("1")) }))
	defer s.Close()
	apiServer := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://"))
	for name, tc := range map[string]struct {
		options Options
		address string
		want    error
	}{
		"given":                      {Options{}, s.URL, nil},
		"default":                    {Options{DefaultAddress: s.URL}, "", nil},
		"given wins over default":    {Options{DefaultAddress: "http://127.0.0.1:1"}, s.URL, nil},
		"none":                       {Options{}, "", ErrNoAddress},
		"no URL":                     {Options{}, "prom:9090", providerhttp.ErrBadAddress},
		"the API server":             {Options{Egress: egress.Policy{Deny: []netip.AddrPort{apiServer}}}, s.URL, egress.ErrRefused},
		"the API server by name":     {Options{Egress: egress.Policy{Deny: []netip.AddrPort{apiServer}}}, fmt.Sprintf("http://localhost:%d", apiServer.Port()), egress.ErrRefused},
		"the API server, if allowed": {Options{Egress: egress.Policy{Deny: []netip.AddrPort{apiServer}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, s.URL, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.options).Measure(context.Background(), query(tc.address, providertest.Settings{}), nil)
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestRedirectToAnotherHostIsRefused(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, one("1")) }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	if _, err := New(Options{}).Measure(context.Background(), query(s.URL, providertest.Settings{}), nil); !errors.Is(err, providerhttp.ErrRedirect) {
		t.Errorf("got %v, want ErrRedirect", err)
	}
}

func TestTooLarge(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat(" ", 10<<20), one("1"))
	}))
	defer s.Close()
	if _, err := New(Options{}).Measure(context.Background(), query(s.URL, providertest.Settings{}), nil); !errors.Is(err, providerhttp.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}
