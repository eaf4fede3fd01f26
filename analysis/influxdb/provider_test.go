package influxdb

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	token := s.Password
	if token == "" {
		token = "t0ken"
	}
	profile := h.secrets.Add("shop", map[string]string{"address": url, "authToken": token, "org": "acme"})
	m := &v1alpha1.InfluxdbMetric{Profile: profile, Query: `from(bucket:"` + s.Text + `")`}
	return analysis.Query{Metric: "m", Namespace: "shop", Provider: v1alpha1.MetricProvider{Influxdb: m}}
}

// table is one of annotated CSV with the values given.
func table(number int, datatype string, values ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#datatype,string,long,dateTime:RFC3339,%s,string\r\n", datatype)
	b.WriteString("#group,false,false,false,false,true\r\n#default,_result,,,,\r\n,result,table,_time,_value,pod\r\n")
	for _, v := range values {
		fmt.Fprintf(&b, ",,%d,2026-08-17T20:53:20Z,%s,p%d\r\n", number, v, number)
	}
	return b.String() + "\r\n"
}

func TestConformance(t *testing.T) {
	const reason = "Argo has no such field"
	h := &harness{}
	providertest.Run(t, providertest.Harness{
		New:   func(*testing.T) analysis.Provider { return h.provider() },
		Query: h.query,
		Answers: map[providertest.Shape]providertest.Answer{
			providertest.Number:     {Body: table(0, "double", "0.5"), Want: []any{0.5}},
			providertest.NaN:        {Body: table(0, "double", "NaN"), Want: []any{math.NaN()}},
			providertest.Inf:        {Body: table(0, "double", "+Inf"), Want: []any{math.Inf(1)}},
			providertest.NegInf:     {Body: table(0, "double", "-Inf"), Want: []any{math.Inf(-1)}},
			providertest.NoData:     {Body: "\r\n", Want: []any{}},
			providertest.Text:       {Body: table(0, "string", "ok"), Want: []any{"ok"}},
			providertest.WrongType:  {Body: table(0, "double", "abc"), Fails: true},
			providertest.Undecoded:  {Body: `<html>`, Fails: true},
			providertest.Half:       {Body: "#datatype,string,long,dateTime:RFC3339,double,string\r\n#group,false,false,false,false,true\r\n", Fails: true},
			providertest.Cut:        {Body: strings.TrimSuffix(table(0, "double", "0.5"), ",p0\r\n\r\n"), Fails: true},
			providertest.Null:       {Body: `null`, Fails: true},
			providertest.ManySeries: {Body: table(0, "double", "1", "2") + table(1, "double", "3"), Want: []any{1.0, 2.0, 3.0}},
		},
		Lacks: map[providertest.Setting]string{providertest.OwnTimeout: reason, providertest.SkipCheck: reason, providertest.CustomHeaders: reason},
		Authorized: func(r *http.Request, _, password string) bool {
			return r.Header.Get("Authorization") == "Token "+password
		},
		OwnSecrets: true,
		Echo: func(credential string) providertest.Answer {
			return providertest.Answer{Body: table(0, "string", credential), Want: []any{credential}}
		},
		ErrorBody: errorBody,
	})
}

func errorBody(words string) string {
	body, err := json.Marshal(map[string]string{"code": "invalid", "message": words})
	if err != nil {
		panic(err) // texts can be encoded
	}
	return string(body)
}

func ask(t *testing.T, handler http.HandlerFunc) (string, error) {
	t.Helper()
	s := httptest.NewServer(handler)
	defer s.Close()
	h := &harness{}
	outcome, err := h.provider().Measure(context.Background(), h.query(s.URL, providertest.Settings{}), nil)
	if err != nil {
		return "error", err
	}
	return analysis.Text(outcome.(analysis.Sample).Value), nil
}

func TestValues(t *testing.T) {
	failed := "#datatype,string,long\r\n#group,true,true\r\n#default,,\r\n,error,reference\r\n,Failed to parse query,897\r\n"
	for name, tc := range map[string]struct{ body, want string }{
		"nothing":                  {"", "[]"},
		"a table of no rows":       {table(0, "double"), "[]"},
		"null":                     {table(0, "double", "", "1"), "[null,1]"},
		"zero is a value":          {table(0, "double", "0"), "[0]"},
		"whole numbers":            {table(0, "long", "-3") + table(1, "unsignedLong", "18446744073709551615"), "[-3,18446744073709552000]"},
		"yes and no":               {table(0, "boolean", "true", "false"), "[true,false]"},
		"a time":                   {table(0, "dateTime:RFC3339", "2026-08-17T22:53:20+02:00"), `["2026-08-17T20:53:20Z"]`},
		"a duration":               {table(0, "duration", "1m30s"), `["1m30s"]`},
		"binary":                   {table(0, "base64Binary", "aGk="), `["aGk="]`},
		"no column _value":         {strings.Replace(table(0, "double", "1"), "_value", "mean", 1), "error"},
		"an error":                 {failed, "error"},
		"an error behind values":   {table(0, "double", "1") + failed, "error"},
		"a row that is too short":  {table(0, "double", "1") + ",,0\r\n", "error"},
		"an unknown type":          {table(0, "colour", "red"), "error"},
		"JSON":                     {`{"ok":true}`, "error"},
		"text without annotations": {",result,table,_value\r\n,,0,1\r\n", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) })
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

// A small answer must not unpack to more than is read of any.
func TestPackedAnswersAreBoundedToo(t *testing.T) {
	packed := func(rows int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("got Accept-Encoding %q", r.Header.Get("Accept-Encoding"))
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, table(0, "double", "1"))
			row := strings.Repeat(",,0,2026-08-17T20:53:20Z,1,p\r\n", 1000)
			for range rows / 1000 {
				if _, err := z.Write([]byte(row)); err != nil {
					return // the client has gone
				}
			}
			_ = z.Close() // the client may have gone
		}
	}
	if got, err := ask(t, packed(0)); got != "[1]" {
		t.Errorf("got %s (%v)", got, err)
	}
	if _, err := ask(t, packed(2_000_000)); !errors.Is(err, providerhttp.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

func TestErrorsHaveTheStatus(t *testing.T) {
	for name, tc := range map[string]struct{ kind, body, want string }{
		"JSON":        {"application/json", errorBody("no such bucket"), "404 Not Found: invalid: no such bucket"},
		"broken JSON": {"application/json", `{`, "404 Not Found"},
		"text":        {"text/plain", "nobody is here", "influxdb: the server answers 404 Not Found: nobody is here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, tc.body)
			})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	type request struct {
		Method, Path, Query, Token, Type string
		Body                             map[string]any
	}
	var got request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Token: r.Header.Get("Authorization"), Type: r.Header.Get("Content-Type")}
		if err := json.NewDecoder(r.Body).Decode(&got.Body); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	h := &harness{}
	for path, want := range map[string]string{"": "/api/v2/query", "/": "/api/v2/query", "/influx": "/influx/api/v2/query", "/influx/": "/influx/api/v2/query"} {
		h.secrets.Put("system", "influxdb", map[string]string{"address": s.URL + path, "authToken": "t0ken\n", "org": "ac me"})
		q := analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{Influxdb: &v1alpha1.InfluxdbMetric{Query: `from(bucket:"b")`}}}
		if _, err := h.provider().Measure(context.Background(), q, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(request{"POST", want, "org=ac+me", "Token t0ken", "application/json", map[string]any{
			"query": `from(bucket:"b")`, "type": "flux",
			"dialect": map[string]any{"annotations": []any{"datatype", "group", "default"}, "delimiter": ",", "header": true},
		}}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", path, diff)
		}
	}
}

func TestBadMetrics(t *testing.T) {
	h := &harness{}
	whole := map[string]string{"address": "http://127.0.0.1:1", "authToken": "t", "org": "o"}
	for _, missing := range []string{"address", "authToken", "org"} {
		secret := map[string]string{}
		for k, v := range whole {
			if k != missing {
				secret[k] = v
			}
		}
		h.secrets.Put("shop", "without-"+missing, secret)
		q := analysis.Query{Namespace: "shop", Provider: v1alpha1.MetricProvider{Influxdb: &v1alpha1.InfluxdbMetric{Profile: "without-" + missing, Query: "q"}}}
		if _, err := h.provider().Measure(context.Background(), q, nil); !errors.Is(err, providersecret.ErrUnusable) {
			t.Errorf("without %s: got %v", missing, err)
		}
	}
	if _, err := h.provider().Measure(context.Background(), h.query("influx", providertest.Settings{}), nil); !errors.Is(err, providerhttp.ErrBadAddress) {
		t.Errorf("got %v, want ErrBadAddress", err)
	}
	if _, err := h.provider().Measure(context.Background(), analysis.Query{}, nil); err == nil {
		t.Error("a metric of another provider is taken")
	}
}
