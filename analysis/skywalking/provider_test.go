package skywalking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func query(address string, s providertest.Settings) analysis.Query {
	if s.User != "" {
		scheme, rest, _ := strings.Cut(address, "://")
		address = scheme + "://" + url.UserPassword(s.User, s.Password).String() + "@" + rest
	}
	m := &v1alpha1.SkyWalkingMetric{Address: address, Query: `query ($duration: Duration!) { apdex(name: "` + s.Text + `") }`, Interval: "3m"}
	return analysis.Query{Metric: "m", Provider: v1alpha1.MetricProvider{SkyWalking: m}, At: time.Unix(1_787_000_000, 0)}
}

func TestConformance(t *testing.T) {
	const reason, none = "Argo has no such field", "JSON has none"
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return New(Options{}) },
		Query: query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:    {Body: `{"data":{"apdex":0.5}}`, Want: map[string]any{"apdex": 0.5}},
			providertest.NoData:    {Body: `{"data":null}`, Want: nil},
			providertest.Text:      {Body: `{"data":{"apdex":"good"}}`, Want: map[string]any{"apdex": "good"}},
			providertest.WrongType: {Body: `{"data":[0.5]}`, Fails: true},
			providertest.Undecoded: {Body: `<html>`, Fails: true},
			providertest.Half:      {Body: `{"extensions":{}}`, Fails: true},
			providertest.Cut:       {Body: `{"data":{"apdex":0.5`, Fails: true},
			providertest.Null:      {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: `{"data":{"apdex":{"values":{"values":[{"value":1},{"value":2}]}}}}`,
				Want: map[string]any{"apdex": map[string]any{"values": map[string]any{"values": []any{map[string]any{"value": 1.0}, map[string]any{"value": 2.0}}}}}},
		},
		Unsayable: map[providertest.Shape]string{providertest.NaN: none, providertest.Inf: none, providertest.NegInf: none},
		Lacks:     map[providertest.Setting]string{providertest.OwnTimeout: reason, providertest.SkipCheck: reason, providertest.CustomHeaders: reason},
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: `{"data":{"user":"` + credential + `"}}`, Want: map[string]any{"user": credential}}
		},
		OwnAddress: true,
		ErrorBody: func(words string) string {
			body, err := json.Marshal(map[string]any{"errors": []map[string]string{{"message": words}}})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		},
	})
}

func TestNullAndErrors(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"null in a field":         {`{"data":{"apdex":null}}`, `{"apdex":null}`},
		"an error with 200":       {`{"data":{"apdex":1},"errors":[{"message":"no such metric"}]}`, "error"},
		"nothing of SkyWalking's": {`{"ok":true}`, "error"},
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
	type request struct {
		Method, Path, Type, User string
		Body                     map[string]any
	}
	var got request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got = request{Method: r.Method, Path: r.URL.Path, Type: r.Header.Get("Content-Type"), User: user + ":" + password}
		if err := json.NewDecoder(r.Body).Decode(&got.Body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, `{"data":null}`)
	}))
	defer s.Close()
	q := query(s.URL+"/oap/", providertest.Settings{User: "u", Password: "p", Text: "web"})
	if _, err := New(Options{}).Measure(context.Background(), q, nil); err != nil {
		t.Fatal(err)
	}
	want := request{"POST", "/oap/graphql", "application/json", "u:p", map[string]any{
		"query":     `query ($duration: Duration!) { apdex(name: "web") }`,
		"variables": map[string]any{"duration": map[string]any{"start": "2026-08-17 2050", "end": "2026-08-17 2053", "step": "MINUTE"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadMetrics(t *testing.T) {
	p := New(Options{})
	q := query("http://127.0.0.1:1", providertest.Settings{})
	for interval, want := range map[v1alpha1.DurationString]string{"": ErrInterval.Error(), "soon": "interval"} {
		q.Provider.SkyWalking.Interval = interval
		if _, err := p.Measure(context.Background(), q, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("interval %q: got %v", interval, err)
		}
	}
	if _, err := p.Measure(context.Background(), query("oap:12800", providertest.Settings{}), nil); !errors.Is(err, providerhttp.ErrBadAddress) {
		t.Errorf("got %v, want ErrBadAddress", err)
	}
	if _, err := p.Measure(context.Background(), analysis.Query{}, nil); err == nil {
		t.Error("a metric of another provider is taken")
	}
}
