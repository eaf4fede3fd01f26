package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func query(url string, s providertest.Settings) analysis.Query {
	m := &v1alpha1.WebMetric{URL: url, Method: "POST", Body: "service=" + s.Text, TimeoutSeconds: s.TimeoutSeconds, JSONPath: "{$.data.value}", Insecure: s.Insecure}
	for k, v := range s.Headers {
		m.Headers = append(m.Headers, v1alpha1.WebMetricHeader{Key: k, Value: v})
	}
	if s.User != "" {
		m.Authentication = &v1alpha1.Authentication{BasicAuth: &v1alpha1.BasicAuthConfig{Username: s.User, Password: s.Password}}
	}
	return analysis.Query{Metric: "m", Provider: v1alpha1.MetricProvider{Web: m}}
}

func TestConformance(t *testing.T) {
	const noNaN = "JSON has no such number"
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return New(Options{}) },
		Query: query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     {Body: `{"data":{"value":0.5}}`, Want: 0.5},
			providertest.NoData:     {Body: `{"data":{"value":null}}`, Want: nil},
			providertest.ManySeries: {Body: `{"data":{"value":[3,1,2]}}`, Want: []any{3.0, 1.0, 2.0}},
			providertest.Text:       {Body: `{"data":{"value":"ok"}}`, Want: "ok"},
			providertest.WrongType:  {Body: `{"data":7}`, Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `{"data":{}}`, Fails: true},
			providertest.Cut:        {Body: `{"data":{"value":0.5`, Fails: true},
		},
		Unsayable: map[providertest.Shape]string{providertest.NaN: noNaN, providertest.Inf: noNaN, providertest.NegInf: noNaN, providertest.Null: "any JSON is an answer, and null is one of no data"},
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: `{"data":{"value":{"token":"Bearer ` + credential + `"}}}`, Want: map[string]any{"token": "Bearer " + credential}}
		},
		ErrorBody: func(words string) string { return words },
	})
}

// answer is a server that gives one answer.
func answer(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the client may have gone
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestValues(t *testing.T) {
	const doc = `{"ok":true,"n":"0.91","f":0.91,"o":{"a":[1,null]},"nothing":null,"none":[],"items":[{"k":"x","v":1},{"k":"y","v":2}]}`
	for name, tc := range map[string]struct {
		path, body string
		want       any
		matches    string
		err        error
	}{
		"C62 bool":                      {"{$.ok}", doc, true, "", nil},
		"C62 number":                    {"{$.f}", doc, 0.91, "", nil},
		"C62 text":                      {"{$.n}", doc, "0.91", "", nil},
		"C62 object":                    {"{$.o}", doc, map[string]any{"a": []any{1.0, nil}}, "", nil},
		"no path":                       {"", `[1,"a",null]`, []any{1.0, "a", nil}, "", nil},
		"the whole":                     {"{$}", `{"a":1}`, map[string]any{"a": 1.0}, "", nil},
		"blanks around the path":        {" {.ok}\n", doc, true, "", nil},
		"a filter":                      {`{$.items[?(@.k=="y")].v}`, doc, 2.0, "", nil},
		"several: the first, as Argo":   {`{$.items[*].v}`, doc, 1.0, "2 values, of which the first is the result", nil},
		"C19 null":                      {"{$.nothing}", doc, nil, "", nil},
		"C19 null, no path":             {"", "null", nil, "", nil},
		"C19 null, the whole":           {"{$}", "null", nil, "", nil},
		"a name under null":             {"{$.nothing.more}", doc, nil, "", errAny},
		"null under a path":             {"{$.a[0].b}", "null", nil, "", nil},
		"an empty list":                 {"{$.none}", doc, []any{}, "", nil},
		"all of an empty list":          {"{$.none[*]}", doc, nil, "", nil},
		"a filter with no match":        {`{$.items[?(@.k=="z")].v}`, doc, nil, "", nil},
		"text":                          {"", "OK\n", "OK\n", "", nil},
		"no body":                       {"", "", "", "", nil},
		"NaN":                           {"", "NaN", "NaN", "", nil},
		"bytes that are no text":        {"", "a\xff", "a\uFFFD", "", nil},
		"text with a path":              {"{$}", "OK", nil, "", ErrNoJSON},
		"no body with a path":           {"{$.ok}", "", nil, "", ErrNoJSON},
		"text around the path":          {"$.ok", doc, nil, "", ErrJSONPath},
		"a path that is cut off":        {"{$.ok", doc, nil, "", ErrJSONPath},
		"a name that is not there":      {"{$.k}", doc, nil, "", errAny},
		"an index that is not there":    {"{$.none[0]}", doc, nil, "", errAny},
		"a number that is no float64":   {"", "1e999", nil, "", errAny},
		"a number in the path":          {"{1}", doc, 1.0, "", nil},
		"a range takes its first value": {`{range .items[*]}{.k}{end}`, doc, "x", "2 values, of which the first is the result", nil},
	} {
		t.Run(name, func(t *testing.T) {
			q := query(answer(t, http.StatusOK, tc.body), providertest.Settings{})
			q.Provider.Web.JSONPath = tc.path
			outcome, err := New(Options{}).Measure(context.Background(), q, nil)
			if tc.err != nil {
				if err == nil || tc.err != errAny && !strings.Contains(err.Error(), tc.err.Error()) {
					t.Fatalf("got %v, %v, want the error %v", outcome, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := outcome.(analysis.Sample)
			if diff := cmp.Diff(tc.want, got.Value); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Metadata[MatchesMetadata] != tc.matches {
				t.Errorf("got metadata %v, want %q", got.Metadata, tc.matches)
			}
		})
	}
}

// errAny stands for an error that no caller branches on.
var errAny = errors.New("any")

// judged is what a web metric makes of a server's answer.
func judged(t *testing.T, m v1alpha1.Metric, target string) v1alpha1.AnalysisPhase {
	t.Helper()
	conditions, err := analysis.Compile(m)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := New(Options{}).Measure(context.Background(), analysis.Query{Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{URL: target, JSONPath: m.Provider.Web.JSONPath}}}, nil)
	if err != nil {
		return v1alpha1.AnalysisPhaseError
	}
	phase, _ := analysis.Judge(conditions, outcome.(analysis.Sample).Value, time.Unix(0, 0))
	return phase
}

func TestC20_WhatIsNoJSONReachesTheCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		body, path, condition string
		want                  v1alpha1.AnalysisPhase
	}{
		"no body":                  {"", "", "result == 'no-such-text'", v1alpha1.AnalysisPhaseFailed},
		"text":                     {"OK", "", "result == 'no-such-text'", v1alpha1.AnalysisPhaseFailed},
		"the text that is wanted":  {"OK", "", "result == 'OK'", v1alpha1.AnalysisPhaseSuccessful},
		"no body with a path":      {"", "{$.ok}", "true", v1alpha1.AnalysisPhaseError},
		"text with a path":         {"OK", "{$}", "true", v1alpha1.AnalysisPhaseError},
		"half an answer":           {`{"ok":tr`, "{$.ok}", "true", v1alpha1.AnalysisPhaseError},
		"C19 unguarded null":       {`{"v":null}`, "{$.v}", "result < 0.05", v1alpha1.AnalysisPhaseError},
		"C19 guarded null":         {`{"v":null}`, "{$.v}", "result == null || result < 0.05", v1alpha1.AnalysisPhaseSuccessful},
		"C40 unguarded empty list": {`[]`, "", "result[0] < 1", v1alpha1.AnalysisPhaseError},
		"C40 guarded empty list":   {`[]`, "", "len(result) == 0 || result[0] < 1", v1alpha1.AnalysisPhaseSuccessful},
	} {
		for _, language := range []v1alpha1.ConditionLanguage{v1alpha1.ConditionCEL, v1alpha1.ConditionExpr} {
			t.Run(name+" "+string(language), func(t *testing.T) {
				condition := tc.condition
				if language == v1alpha1.ConditionExpr {
					condition = strings.ReplaceAll(condition, "null", "nil")
				}
				m := v1alpha1.Metric{Name: "m", SuccessCondition: condition, ConditionLanguage: language, Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{JSONPath: tc.path}}}
				if got := judged(t, m, answer(t, http.StatusOK, tc.body)); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
			})
		}
	}
}

// sent is what a server got.
type sent struct {
	Method, Target, ContentType, Body string
}

func TestRequest(t *testing.T) {
	raw := func(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
	for name, tc := range map[string]struct {
		metric v1alpha1.WebMetric
		want   sent
		err    error
	}{
		"default": {v1alpha1.WebMetric{URL: "/a?b=c"}, sent{"GET", "/a?b=c", "", ""}, nil},
		"body":    {v1alpha1.WebMetric{URL: "/", Method: "POST", Body: "a=b"}, sent{"POST", "/", "", "a=b"}, nil},
		"put":     {v1alpha1.WebMetric{URL: "/", Method: "PUT", JSONBody: raw(`{"a": 1.50}`)}, sent{"PUT", "/", "application/json", `{"a": 1.50}`}, nil},
		"content type": {v1alpha1.WebMetric{URL: "/", Method: "POST", JSONBody: raw(`{}`), Headers: []v1alpha1.WebMetricHeader{{Key: "content-type", Value: "application/vnd.a+json"}}},
			sent{"POST", "/", "application/vnd.a+json", `{}`}, nil},
		"two bodies":    {v1alpha1.WebMetric{URL: "/", Method: "POST", Body: "a", JSONBody: raw(`{}`)}, sent{}, ErrTwoBodies},
		"body of GET":   {v1alpha1.WebMetric{URL: "/", Body: "a"}, sent{}, ErrBodyOfGet},
		"no URL":        {v1alpha1.WebMetric{URL: ":x"}, sent{}, providerhttp.ErrBadAddress},
		"a bad method":  {v1alpha1.WebMetric{URL: "/", Method: "A B"}, sent{}, providerhttp.ErrBadAddress},
		"a bad IdP URL": {v1alpha1.WebMetric{URL: "/", Authentication: &v1alpha1.Authentication{OAuth2: &v1alpha1.OAuth2Config{TokenURL: "idp"}}}, sent{}, providerhttp.ErrBadAddress},
	} {
		t.Run(name, func(t *testing.T) {
			var got sent
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got = sent{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), string(body)}
				fmt.Fprint(w, "1")
			}))
			defer s.Close()
			m := tc.metric
			if strings.HasPrefix(m.URL, "/") {
				m.URL = s.URL + m.URL
			}
			outcome, err := New(Options{}).Measure(context.Background(), analysis.Query{Provider: v1alpha1.MetricProvider{Web: &m}}, nil)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err == nil && outcome.(analysis.Sample).Value != 1.0 {
				t.Errorf("got %v", outcome)
			}
		})
	}
}

// What an argument holds stays data on its way to the server.
func TestArgumentsAreData(t *testing.T) {
	var target, header string
	var body map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, header = r.URL.Query().Get("service"), r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, "1")
	}))
	defer s.Close()
	const value = `a"}, "admin": true, {"b&admin=1#c\`
	m, err := analysis.Substitute(v1alpha1.Metric{Name: "m", Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{
		URL: s.URL + "/?service={{args.x}}", Method: "POST", JSONBody: &runtime.RawExtension{Raw: []byte(`{"service":"{{args.x}}"}`)},
		Headers: []v1alpha1.WebMetricHeader{{Key: "Authorization", Value: "Bearer {{args.x}}"}},
	}}}, map[string]string{"x": value})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{}).Measure(context.Background(), analysis.Query{Provider: m.Provider}, nil); err != nil {
		t.Fatal(err)
	}
	if target != value || header != "Bearer "+value {
		t.Errorf("got parameter %q and header %q", target, header)
	}
	if diff := cmp.Diff(map[string]any{"service": value}, body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A newline in a header is refused before anything is sent.
func TestHeadersCanNotBeSplit(t *testing.T) {
	q := query(answer(t, http.StatusOK, "1"), providertest.Settings{Headers: map[string]string{"X-A": "b\r\nX-Admin: hunter2"}})
	_, err := New(Options{}).Measure(context.Background(), q, nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestOAuth2(t *testing.T) {
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"token-of-the-client","expires_in":3600}`)
	}))
	defer idp.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"headers":{"Authorization":%q}}`, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	q := query(s.URL, providertest.Settings{})
	q.Provider.Web.JSONPath = "{$.headers}"
	q.Provider.Web.Authentication = &v1alpha1.Authentication{OAuth2: &v1alpha1.OAuth2Config{TokenURL: idp.URL, ClientID: "a", ClientSecret: "b-is-secret"}}
	outcome, err := New(Options{}).Measure(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	sample := outcome.(analysis.Sample)
	if got := sample.Redactor.Redact(analysis.Text(sample.Value)); got != `{"Authorization":"Bearer [redacted]"}` {
		t.Errorf("stored is %s", got)
	}
	if diff := cmp.Diff(any(map[string]any{"Authorization": "Bearer token-of-the-client"}), sample.Value); diff != "" {
		t.Errorf("a server that echoes the token (-want +got):\n%s", diff)
	}
}
