package prom

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// store puts one sample into the TSDB.
func store(t *testing.T, s *Server, at time.Time, value float64, name string, pairs ...string) {
	t.Helper()
	if len(pairs)%2 == 1 {
		pairs = append([]string{"n"}, pairs...)
	}
	app := s.db.AppenderV2(t.Context())
	set := labels.FromStrings(append([]string{"__name__", name}, pairs...)...)
	if _, err := app.Append(0, set, 0, at.UnixMilli(), value, nil, nil, storage.AOptions{}); err != nil && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
		t.Fatal(err)
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T) *Server {
	t.Helper()
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	store(t, s, time.UnixMilli(1000_250), 1, "a", "x", "1", "y", "<&>")
	store(t, s, time.UnixMilli(1000_250), 1e21, "a", "x", "2")
	store(t, s, time.UnixMilli(1001_250), 2, "a", "x", "2")
	store(t, s, time.UnixMilli(1000_250), math.NaN(), "odd", "x", "nan")
	store(t, s, time.UnixMilli(1000_250), math.Inf(-1), "odd", "x", "-inf")
	return s
}

// Every answer, byte for byte as a Prometheus of the same release writes it.
func TestJSONIsThatOfPrometheus(t *testing.T) {
	handler := stored(t).Handler()
	tests := map[string]struct {
		query string // the URL's query
		path  string // default /api/v1/query
		code  int
		want  string
	}{
		"vector": {query: "query=a&time=1000.5", code: 200,
			want: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"a","x":"1","y":"<&>"},"value":[1000.500,"1"]},{"metric":{"__name__":"a","x":"2"},"value":[1000.500,"1e+21"]}]}}`},
		"empty vector": {query: "query=none&time=1000.5", code: 200,
			want: `{"status":"success","data":{"resultType":"vector","result":[]}}`},
		"NaN and -Inf": {query: "query=sum by (x) (odd)&time=1000.25", code: 200,
			want: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"x":"nan"},"value":[1000.250,"NaN"]},{"metric":{"x":"-inf"},"value":[1000.250,"-Inf"]}]}}`},
		"no labels": {query: "query=vector(0.05)&time=7", code: 200,
			want: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[7,"0.05"]}]}}`},
		"scalar": {query: "query=1%2B1&time=7.125", code: 200,
			want: `{"status":"success","data":{"resultType":"scalar","result":[7.125,"2"]}}`},
		"string": {query: `query="x"&time=7`, code: 200,
			want: `{"status":"success","data":{"resultType":"string","result":[7,"x"]}}`},
		"instant matrix": {query: `query=a{x="2"}[5s]&time=1002`, code: 200,
			want: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a","x":"2"},"values":[[1000.250,"1e+21"],[1001.250,"2"]]}]}}`},
		"range": {path: "/api/v1/query_range", query: `query=a{x="2"}&start=1000&end=1003&step=1500ms&lookback_delta=1s`, code: 200,
			want: `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a","x":"2"},"values":[[1001.500,"2"]]}]}}`},
		"empty range": {path: "/api/v1/query_range", query: `query=none&start=1000&end=1003&step=1`, code: 200,
			want: `{"status":"success","data":{"resultType":"matrix","result":[]}}`},
		"limit": {query: `query=a&time=1000.5&limit=1`, code: 200,
			want: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"a","x":"1","y":"<&>"},"value":[1000.500,"1"]}]},"warnings":["results truncated due to limit"]}`},
		"info": {query: `query=rate(a[1m])&time=900`, code: 200,
			want: `{"status":"success","data":{"resultType":"vector","result":[]}}`},
		"parse error": {query: "query=sum(", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:5: parse error: unclosed left parenthesis"}`},
		"no query": {query: "", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": unknown position: parse error: no expression found in input"}`},
		"bad time": {query: "query=a&time=soon", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"time\": invalid time value for 'time': cannot parse \"soon\" to a valid timestamp"}`},
		"bad timeout": {query: "query=a&timeout=-1s", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"timeout\": cannot parse \"-1s\" to a valid duration"}`},
		"zero timeout": {query: "query=a&timeout=0", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"timeout\": timeout must be positive, got 0s"}`},
		"bad step": {path: "/api/v1/query_range", query: "query=a&start=1&end=2&step=0", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer"}`},
		"no start": {path: "/api/v1/query_range", query: "query=a&end=2&step=1", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"start\": cannot parse \"\" to a valid timestamp"}`},
		"end before start": {path: "/api/v1/query_range", query: "query=a&start=2&end=1&step=1", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"invalid parameter \"end\": end timestamp must not be before start time"}`},
		"too many points": {path: "/api/v1/query_range", query: "query=a&start=0&end=11001&step=1", code: 400,
			want: `{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"}`},
		"execution": {query: `query=label_replace(odd,"x","1","","")&time=1000.5`, code: 422,
			want: `{"status":"error","errorType":"execution","error":"vector cannot contain metrics with the same labelset"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := tc.path
			if path == "" {
				path = "/api/v1/query"
			}
			values, err := url.ParseQuery(tc.query)
			if err != nil {
				t.Fatal(err)
			}
			get := httptest.NewRequest("GET", path+"?"+values.Encode(), nil)
			post := httptest.NewRequest("POST", path, strings.NewReader(values.Encode()))
			post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for _, r := range []*http.Request{get, post} {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code != tc.code || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("%s: %d %s, want %d", r.Method, w.Code, w.Header().Get("Content-Type"), tc.code)
				}
				if diff := cmp.Diff(tc.want, w.Body.String()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", r.Method, diff)
				}
			}
		})
	}
}

func TestErrorsReachTheClientTyped(t *testing.T) {
	_, _, _, err := clientOf(t, stored(t)).Query(t.Context(), "sum(", time.Now())
	var known *promv1.Error
	if !errors.As(err, &known) || known.Type != promv1.ErrBadData || !strings.Contains(known.Msg, "unclosed left parenthesis") {
		t.Errorf("got %#v", err)
	}
}

func TestStats(t *testing.T) {
	w := httptest.NewRecorder()
	stored(t).Handler().ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/query?query=a&time=1000.5&stats=all", nil))
	if !strings.Contains(w.Body.String(), `"stats":{"timings":{`) {
		t.Errorf("no statistics in %s", w.Body.String())
	}
}

func TestOtherPaths(t *testing.T) {
	server := httptest.NewServer(stored(t).Handler())
	defer server.Close()
	for path, want := range map[string]struct {
		code int
		says string
	}{
		"/-/ready":          {200, "Prometheus Server is Ready.\n"},
		"/-/healthy":        {200, "Prometheus Server is Healthy.\n"},
		"/api/v1/alerts":    {404, "/api/v1/alerts is not served here"},
		"/api/v1/query/foo": {404, "not served here"},
	} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want.code || !strings.Contains(string(body), want.says) {
			t.Errorf("%s: %d %q", path, response.StatusCode, body)
		}
	}
}
