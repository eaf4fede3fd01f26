package graphite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

func metric(address, query string) analysis.Query {
	return analysis.Query{Metric: "m", At: time.Unix(1_787_000_000, 0), Provider: v1alpha1.MetricProvider{
		Graphite: &v1alpha1.GraphiteMetric{Address: address, Query: query}}}
}

func withUser(address string, s providertest.Settings) string {
	if s.User == "" {
		return address
	}
	scheme, rest, _ := strings.Cut(address, "://")
	return scheme + "://" + url.UserPassword(s.User, s.Password).String() + "@" + rest
}

func points(datapoints string) string {
	return `[{"target":"a","tags":{"name":"a"},"datapoints":` + datapoints + `}]`
}

func TestConformance(t *testing.T) {
	const reason = "Argo has no such field"
	providertest.Run(t, providertest.Harness{
		New: func(*testing.T) analysis.Provider { return New(Options{}) },
		Query: func(url string, s providertest.Settings) analysis.Query {
			return metric(withUser(url, s), "target=alias(a,'"+s.Text+"')&from=-5min")
		},
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     {Body: points(`[[0.5,1787000000]]`), Want: []any{0.5}},
			providertest.NaN:        {Body: points(`[["NaN",1787000000]]`), Want: []any{math.NaN()}},
			providertest.Inf:        {Body: points(`[[1e9999,1787000000]]`), Want: []any{math.Inf(1)}},
			providertest.NegInf:     {Body: points(`[[-1e9999,1787000000]]`), Want: []any{math.Inf(-1)}},
			providertest.NoData:     {Body: `[]`, Want: []any{}},
			providertest.WrongType:  {Body: points(`[[true,1787000000]]`), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `[{"target":"a"}]`, Fails: true},
			providertest.Cut:        {Body: `[{"target":"a","datapoints":[[0.5,1787000000]`, Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: `[{"target":"b","datapoints":[[1,60],[2,120]]},{"target":"a","datapoints":[[3,60]]}]`, Want: []any{1.0, 2.0, 3.0}},
		},
		Unsayable:  map[providertest.Shape]string{providertest.Text: "datapoints are numbers"},
		Lacks:      map[providertest.Setting]string{providertest.OwnTimeout: reason, providertest.SkipCheck: reason, providertest.CustomHeaders: reason},
		OwnSecrets: false,
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: points(`[[` + credential + `,1787000000]]`), Want: []any{2718281828.0}}
		},
		OwnAddress: true,
		ErrorBody:  func(words string) string { return words },
	})
}

func measure(t *testing.T, body string) (analysis.Sample, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer s.Close()
	outcome, err := New(Options{}).Measure(context.Background(), metric(s.URL, "target=a"), nil)
	if err != nil {
		return analysis.Sample{}, err
	}
	return outcome.(analysis.Sample), nil
}

func TestValues(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"nulls are left out":        {points(`[[null,60],[1.5,120],[null,180]]`), "[1.5]"},
		"all are null":              {points(`[[null,60],[null,120]]`), "[]"},
		"no datapoints":             {points(`[]`), "[]"},
		"null instead of a list":    {`null`, "error"},
		"a page behind the list":    {`[] <html>`, "error"},
		"a second list":             {`[] []`, "error"},
		"blanks behind the list":    {"[] \n", "[]"},
		"zero is a value":           {points(`[[0,60]]`), "[0]"},
		"a number in a text":        {points(`[["1.5","60"]]`), "[1.5]"},
		"no time":                   {points(`[[1.5,null]]`), "[1.5]"},
		"a text that is no number":  {points(`[["abc",60]]`), "error"},
		"a time that is none":       {points(`[[1,"soon"]]`), "error"},
		"a datapoint of three":      {points(`[[1,60,2]]`), "error"},
		"null for the datapoints":   {points(`null`), "error"},
		"no datapoints at all":      {`[{"ok":true}]`, "error"},
		"an object":                 {`{"datapoints":[[1,60]]}`, "error"},
		"one of two series is null": {`[{"target":"a","datapoints":[[null,60]]},{"target":"b","datapoints":[[2,60]]}]`, "[2]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := "error"
			sample, err := measure(t, tc.body)
			if err == nil {
				got = analysis.Text(sample.Value)
			}
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

// Without a window Graphite answers with yesterday's values first; the metadata show it.
func TestTimesAreKept(t *testing.T) {
	sample, err := measure(t, points(`[[null,1786900000],[1,1786913600],[2,1787000000],[null,1787000060]]`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{OldestMetadata: "2026-08-16T20:53:20Z", NewestMetadata: "2026-08-17T20:53:20Z"}
	if diff := cmp.Diff(want, sample.Metadata); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// No data reaches the condition, where Argo gave up with an error before.
func TestC40_EmptyResultReachesCondition(t *testing.T) {
	sample, err := measure(t, `[]`)
	if err != nil {
		t.Fatal(err)
	}
	for condition, want := range map[string]v1alpha1.AnalysisPhase{
		"result[0] < 1":                     v1alpha1.AnalysisPhaseError,
		"len(result) == 0 || result[0] < 1": v1alpha1.AnalysisPhaseSuccessful,
	} {
		conditions, err := analysis.Compile(v1alpha1.Metric{Name: "m", SuccessCondition: condition})
		if err != nil {
			t.Fatal(err)
		}
		if got, message := analysis.Judge(conditions, sample.Value, time.Unix(0, 0)); got != want {
			t.Errorf("%s: got %s (%s), want %s", condition, got, message, want)
		}
	}
}

func TestRequest(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		got = []string{r.Method, r.URL.Path, r.URL.Query().Encode(), user + ":" + password}
		fmt.Fprint(w, "[]")
	}))
	defer s.Close()
	address := withUser(s.URL, providertest.Settings{User: "u", Password: "p@ss"}) + "/graphite/?org=7&format=xml"
	q := metric(address, "target=alias(a, 'b c')\n&from=-5min&format=csv")
	if _, err := New(Options{}).Measure(context.Background(), q, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET", "/graphite/render", url.Values{"target": {"alias(a,'b c')"}, "from": {"-5min"}, "format": {"json"}, "org": {"7"}}.Encode(), "u:p@ss"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadMetrics(t *testing.T) {
	p := New(Options{})
	if _, err := p.Measure(context.Background(), metric("", "target=a"), nil); !errors.Is(err, providerhttp.ErrBadAddress) {
		t.Errorf("without an address: got %v", err)
	}
	if _, err := p.Measure(context.Background(), metric("http://127.0.0.1:1", "from=-5min"), nil); err == nil || strings.Contains(err.Error(), "refused") {
		t.Errorf("without a target: got %v, want an error before anything is asked", err)
	}
	if _, err := p.Measure(context.Background(), analysis.Query{}, nil); err == nil {
		t.Error("a metric of another provider is taken")
	}
}

// The password of the address is no argument, so that nobody else knows it.
func TestPasswordOfTheAddressIsRedacted(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		w.WriteHeader(http.StatusForbidden)
		if err := json.NewEncoder(w).Encode(map[string]string{"seen": password}); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	_, err := New(Options{}).Measure(context.Background(), metric(withUser(s.URL, providertest.Settings{User: "u", Password: "s3cr3t"}), "target=a"), nil)
	if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), analysis.Redacted) {
		t.Errorf("got %v", err)
	}
}
