package wavefront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providersecret"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// harness is a provider that speaks HTTP without TLS, and the Secrets that it reads.
// Each query is of a namespace of its own.
type harness struct{ secrets providertest.Secrets }

func (h *harness) provider() *Provider {
	p := New(Options{Secrets: providersecret.Finder{Read: h.secrets.Read, Shared: "system"}})
	p.scheme = "http"
	return p
}

func (h *harness) query(url string, s providertest.Settings) analysis.Query {
	_, address, _ := strings.Cut(url, "://")
	token := s.Password
	if token == "" {
		token = "t0ken"
	}
	namespace := h.secrets.Add("names", nil)
	h.secrets.Put(namespace, "wavefront-api-tokens", map[string]string{address: token, "other.wavefront.com": "other"})
	m := &v1alpha1.WavefrontMetric{Address: address, Query: `ts("` + s.Text + `")`}
	return analysis.Query{Metric: "m", Namespace: namespace, Provider: v1alpha1.MetricProvider{Wavefront: m}, At: time.Unix(1_787_000_000, 0)}
}

func chart(timeseries string) string {
	return `{"query":"ts(a)","name":"ts(a)","granularity":1,"timeseries":` + timeseries + `,"stats":{"keys":1}}`
}

func TestConformance(t *testing.T) {
	const reason, none = "Argo has no such field", "JSON has none"
	h := &harness{}
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return h.provider() },
		Query: h.query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     {Body: chart(`[{"label":"a","data":[[1787000000,0.5]]}]`), Want: 0.5},
			providertest.NoData:     {Body: chart(`[]`), Want: nil},
			providertest.WrongType:  {Body: chart(`[{"data":[[1787000000,"0.5"]]}]`), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: `{"name":"ts(a)","granularity":1,"stats":{"keys":1}}`, Fails: true},
			providertest.Cut:        {Body: `{"query":"ts(a)","timeseries":[`, Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: chart(`[{"label":"b","data":[[1,3]]},{"label":"a","host":"y","data":[[1,2]]},{"label":"a","host":"x","data":[[1,1]]}]`), Want: []any{1.0, 2.0, 3.0}},
		},
		Unsayable: map[providertest.Shape]string{providertest.NaN: none, providertest.Inf: none, providertest.NegInf: none, providertest.Text: "datapoints are numbers"},
		Lacks:     map[providertest.Setting]string{providertest.OwnTimeout: reason, providertest.SkipCheck: reason, providertest.CustomHeaders: reason},
		Authorized: func(r *http.Request, _, password string) bool {
			return r.Header.Get("Authorization") == "Bearer "+password
		},
		OwnSecrets: true,
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: chart(`[{"label":"a","data":[[1787000000,` + credential + `]]}]`), Want: 2718281828.0}
		},
		ErrorBody: func(words string) string {
			body, err := json.Marshal(map[string]any{"status": map[string]any{"result": "ERROR", "message": words, "code": 400}})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		},
	})
}

func TestValues(t *testing.T) {
	for name, tc := range map[string]struct {
		body, want string
		metadata   map[string]string
	}{
		"no timeseries":              {`{"query":"ts(a)"}`, "null", map[string]string{}},
		"null for the timeseries":    {chart(`null`), "null", map[string]string{}},
		"a series of no datapoints":  {chart(`[{"label":"a","data":[]}]`), "null", map[string]string{"timestamps": "null", "drift": "null"}},
		"null in a datapoint":        {chart(`[{"label":"a","data":[[1787000000,null]]}]`), "null", map[string]string{"timestamps": "null", "drift": "null"}},
		"zero is a value":            {chart(`[{"label":"a","data":[[1787000000,0]]}]`), "0", map[string]string{"timestamps": "1787000000", "drift": "0"}},
		"the nearest":                {chart(`[{"label":"a","data":[[1786999940,1],[1787000010,2],[1787000060,3]]}]`), "2", map[string]string{"timestamps": "1787000010", "drift": "10"}},
		"null isn't the nearest":     {chart(`[{"label":"a","data":[[1786999940,1],[1787000000,null]]}]`), "1", map[string]string{"timestamps": "1786999940", "drift": "-60"}},
		"one of two series is empty": {chart(`[{"label":"b","data":[[1787000000,2]]},{"label":"a","data":[]}]`), "[null,2]", map[string]string{"timestamps": "[null,1787000000]", "drift": "[null,0]"}},
		"warnings":                   {`{"query":"ts(a)","warnings":"no such metric","timeseries":[]}`, "null", map[string]string{"warnings": "no such metric"}},
		"a datapoint of three":       {chart(`[{"data":[[1,2,3]]}]`), "error", nil},
		"an error with 200":          {`{"query":"ts(","timeseries":[{"data":[[1,1]]}],"errorType":"QuerySyntaxError","errorMessage":"bad"}`, "error", nil},
		"nothing of Wavefront's":     {`{"ok":true}`, "error", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) }))
			defer s.Close()
			h := &harness{}
			got, sample := "error", analysis.Sample{}
			outcome, err := h.provider().Measure(context.Background(), h.query(s.URL, providertest.Settings{}), nil)
			if err == nil {
				sample = outcome.(analysis.Sample)
				got = analysis.Text(sample.Value)
			}
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
			if diff := cmp.Diff(tc.metadata, sample.Metadata); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However many series there are, what is kept beside their values is brief.
func TestMetadataOfManySeries(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"label":"a","data":[[1767225600,1]]},`, 10000), ",")
	sample, err := read([]byte(chart("["+many+"]")), time.Unix(1767225600, 0))
	if err != nil {
		t.Fatal(err)
	}
	if values, ok := sample.Value.([]any); !ok || len(values) != 10000 {
		t.Errorf("got %d values", len(values))
	}
	for _, key := range []string{TimesMetadata, DriftMetadata} {
		if n := len(sample.Metadata[key]); n == 0 || n > 2*maxMetadata {
			t.Errorf("%s has %d bytes", key, n)
		}
	}
}

func TestRequest(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = []string{r.Method, r.URL.Path, r.URL.Query().Encode(), r.Header.Get("Authorization")}
		fmt.Fprint(w, chart(`[]`))
	}))
	defer s.Close()
	h := &harness{}
	if _, err := h.provider().Measure(context.Background(), h.query(s.URL, providertest.Settings{Text: "a b"}), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"GET", "/api/v2/chart/api",
		"autoEvents=false&e=1787000000000&g=s&i=true&includeObsoleteMetrics=false&listMode=false&p=1&q=ts%28%22a+b%22%29&s=1787000000000&strict=false", "Bearer t0ken"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Only a host with a token of its own is asked, and none without TLS.
func TestHosts(t *testing.T) {
	asked := false
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		fmt.Fprint(w, chart(`[]`))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the refused handshakes
	s.StartTLS()
	defer s.Close()
	plain := httptest.NewServer(s.Config.Handler)
	defer plain.Close()
	h := &harness{}
	real := New(Options{Secrets: providersecret.Finder{Read: h.secrets.Read}})
	for name, tc := range map[string]struct{ address, want string }{
		"a certificate of nobody": {s.URL, "certificate"},
		"a server without TLS":    {plain.URL, "HTTP response to HTTPS client"},
	} {
		if _, err := real.Measure(context.Background(), h.query(tc.address, providertest.Settings{}), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	q := h.query(plain.URL, providertest.Settings{})
	q.Provider.Wavefront.Address = "elsewhere.wavefront.com"
	if _, err := h.provider().Measure(context.Background(), q, nil); !errors.Is(err, providersecret.ErrUnusable) {
		t.Errorf("a host without a token: got %v", err)
	}
	if asked {
		t.Error("a server was asked")
	}
	if _, err := real.Measure(context.Background(), analysis.Query{}, nil); err == nil {
		t.Error("a metric of another provider is taken")
	}
}
