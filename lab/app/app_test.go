package app

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/lab/exact"
)

func newServer(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return server
}

type answer struct {
	code    int
	version string
	body    string
}

func send(t *testing.T, method, url, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header.Get("X-App-Version"), string(content)}
}

func TestAnswersNameTheVersion(t *testing.T) {
	server := newServer(t, Options{Version: "v1", ErrorRate: 0.5})
	want := []answer{
		{200, "v1", "hello from v1\n"},
		{500, "v1", "error from v1\n"},
		{200, "v1", "hello from v1\n"},
	}
	for i, w := range want {
		if got := send(t, "GET", server.URL+"/any/path", ""); got != w {
			t.Errorf("request %d: got %+v, want %+v", i+1, got, w)
		}
	}
}

func TestErrorShareIsExactUnderLoad(t *testing.T) {
	server := newServer(t, Options{Version: "v1", ErrorRate: 0.08})
	var failed atomic.Int64
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 20 {
				if send(t, "GET", server.URL, "").code == http.StatusInternalServerError {
					failed.Add(1)
				}
				send(t, "GET", server.URL+"/healthz", "")
			}
		})
	}
	wg.Wait()
	if failed.Load() != 16 {
		t.Errorf("%d of 200 failed, want 16", failed.Load())
	}
}

func TestAdminErrors(t *testing.T) {
	tests := map[string]struct {
		method, query, body string
		code                int
		says                string
		after               string // what GET shows afterwards
	}{
		"post json":     {method: "POST", body: `{"rate":0.5}`, code: 200, says: `{"rate":0.5}`, after: `{"rate":0.5}`},
		"put json":      {method: "PUT", body: `{"rate":1}`, code: 200, says: `{"rate":1}`, after: `{"rate":1}`},
		"query":         {method: "POST", query: "?rate=0.25", code: 200, says: `{"rate":0.25}`, after: `{"rate":0.25}`},
		"percent":       {method: "POST", query: "?rate=5%25", code: 200, says: `{"rate":0.05}`, after: `{"rate":0.05}`},
		"zero":          {method: "POST", query: "?rate=0", code: 200, says: `{"rate":0}`, after: `{"rate":0}`},
		"too high":      {method: "POST", body: `{"rate":1.5}`, code: 400, says: "0 to 1", after: `{"rate":0.1}`},
		"too high, get": {method: "POST", query: "?rate=50", code: 400, says: "0 to 1", after: `{"rate":0.1}`},
		"empty query":   {method: "POST", query: "?rate=", code: 400, says: "0 to 1", after: `{"rate":0.1}`},
		"no body":       {method: "POST", code: 400, says: `{"rate":0.5}`, after: `{"rate":0.1}`},
		"no rate":       {method: "POST", body: `{}`, code: 400, says: `no "rate"`, after: `{"rate":0.1}`},
		"unknown field": {method: "POST", body: `{"rat":0.5}`, code: 400, says: "rat", after: `{"rate":0.1}`},
		"string":        {method: "POST", body: `{"rate":"0.5"}`, code: 400, says: "string", after: `{"rate":0.1}`},
		"two objects":   {method: "POST", body: `{"rate":0.5}{}`, code: 400, says: "one JSON object", after: `{"rate":0.1}`},
		"method":        {method: "DELETE", code: 405, says: "GET", after: `{"rate":0.1}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			url := newServer(t, Options{Version: "v1", ErrorRate: 0.1}).URL + "/admin/errors"
			got := send(t, tc.method, url+tc.query, tc.body)
			if got.code != tc.code || !strings.Contains(got.body, tc.says) {
				t.Errorf("got %d %q, want %d and %q", got.code, got.body, tc.code, tc.says)
			}
			if after := strings.TrimSpace(send(t, "GET", url, "").body); after != tc.after {
				t.Errorf("afterwards %s, want %s", after, tc.after)
			}
		})
	}
}

func TestMetricsCountByCodeAndVersion(t *testing.T) {
	server := newServer(t, Options{Version: "v7", ErrorRate: 0.5})
	for range 4 {
		send(t, "GET", server.URL, "")
	}
	send(t, "GET", server.URL+"/healthz", "")
	metrics := send(t, "GET", server.URL+"/metrics", "").body
	for _, want := range []string{
		`http_requests_total{code="200",version="v7"} 2`,
		`http_requests_total{code="500",version="v7"} 2`,
		`http_request_duration_seconds_count{code="500",version="v7"} 2`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no line %q in:\n%s", want, metrics)
		}
	}
}

func TestLatencyHoldsTheAnswer(t *testing.T) {
	server := newServer(t, Options{Version: "v1", Latency: 30 * time.Millisecond})
	start := time.Now()
	send(t, "GET", server.URL, "")
	if took := time.Since(start); took < 30*time.Millisecond {
		t.Errorf("answered after %s, want 30ms or more", took)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{}); !errors.Is(err, ErrNoVersion) {
		t.Errorf("no version: %v", err)
	}
	if _, err := New(Options{Version: "v1", ErrorRate: 1.1}); !errors.Is(err, exact.ErrRate) {
		t.Errorf("rate 1.1: %v", err)
	}
	if _, err := New(Options{Version: "v1", Latency: -1}); err == nil {
		t.Error("a negative latency was accepted")
	}
}

// A stop turns readiness off at once while requests are still accepted, lets the
// one in flight finish, and only then returns.
func TestRunStopsGracefully(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listening := make(chan net.Addr, 1)
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			Version: "v1", Latency: 300 * time.Millisecond, Listen: "127.0.0.1:0",
			Drain: 200 * time.Millisecond, OnListen: func(a net.Addr) { listening <- a },
		})
	}()
	url := "http://" + (<-listening).String()
	if got := send(t, "GET", url+"/healthz", ""); got.code != http.StatusOK {
		t.Fatalf("health before the stop: %+v", got)
	}
	inFlight := make(chan answer, 1)
	go func() { inFlight <- send(t, "GET", url, "") }()
	waitForHealth(t, url, http.StatusOK)
	stop()
	waitForHealth(t, url, http.StatusServiceUnavailable)
	if got := send(t, "GET", url, ""); got.code != http.StatusOK {
		t.Errorf("a request while draining: %+v", got)
	}
	if got := <-inFlight; got.code != http.StatusOK {
		t.Errorf("the request in flight: %+v", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func waitForHealth(t *testing.T, url string, code int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for send(t, "GET", url+"/healthz", "").code != code {
		if time.Now().After(deadline) {
			t.Fatalf("/healthz did not turn %d", code)
		}
	}
}
