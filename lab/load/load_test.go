package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// twoVersions answers every fourth request as v2, which fails every second time.
func twoVersions(t *testing.T) (url string, connections *sync.Map) {
	t.Helper()
	var n atomic.Int64
	connections = &sync.Map{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		i := n.Add(1)
		switch {
		case i%8 == 0:
			w.Header().Set("X-App-Version", "v2")
			w.WriteHeader(http.StatusInternalServerError)
		case i%4 == 0:
			w.Header().Set("X-App-Version", "v2")
		default:
			w.Header().Set("X-App-Version", "v1")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, connections
}

func run(t *testing.T, o Options) Snapshot {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g.Snapshot()
}

var ignoreTimes = cmp.Options{
	cmpopts.IgnoreFields(Snapshot{}, "Seconds", "LastError"),
	cmpopts.IgnoreFields(Version{}, "MeanSeconds"), cmpopts.IgnoreUnexported(Version{}),
}

func TestTotalsAreExact(t *testing.T) {
	url, connections := twoVersions(t)
	got := run(t, Options{URL: url, RPS: 1000, Duration: 200 * time.Millisecond})
	want := Snapshot{Sent: 200, Answered: 200, Errors: 25, Versions: []Version{
		{Version: "v1", Requests: 150, Share: 0.75, Codes: map[int]int64{200: 150}},
		{Version: "v2", Requests: 50, Errors: 25, Share: 0.25, Codes: map[int]int64{200: 25, 500: 25}},
	}}
	if diff := cmp.Diff(want, got, ignoreTimes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	used := 0
	connections.Range(func(any, any) bool { used++; return true })
	if used != 200 {
		t.Errorf("%d connections for 200 requests", used)
	}
}

func TestSinceIsTheDifference(t *testing.T) {
	earlier := Snapshot{Seconds: 1, Sent: 10, Skipped: 1, Versions: []Version{
		{Version: "v1", Requests: 8, Errors: 1, seconds: 0.8, Codes: map[int]int64{200: 7, 500: 1}},
		{Version: "v0", Requests: 2, seconds: 0.2, Codes: map[int]int64{200: 2}},
	}}
	earlier.LastError = "an old failure, over before the interval"
	later := Snapshot{LastError: earlier.LastError, Seconds: 3, Sent: 30, Skipped: 4, Versions: []Version{
		{Version: "v0", Requests: 2, seconds: 0.2, Codes: map[int]int64{200: 2}},
		{Version: "v1", Requests: 20, Errors: 1, seconds: 2, Codes: map[int]int64{200: 19, 500: 1}},
		{Version: "v2", Requests: 4, Errors: 2, seconds: 0.1, Codes: map[int]int64{200: 2, 500: 2}},
	}}
	want := Snapshot{Seconds: 2, Sent: 20, Skipped: 3, Answered: 16, Errors: 2, Versions: []Version{
		{Version: "v1", Requests: 12, Share: 0.75, MeanSeconds: 0.1, seconds: 1.2, Codes: map[int]int64{200: 12}},
		{Version: "v2", Requests: 4, Errors: 2, Share: 0.25, MeanSeconds: 0.025, seconds: 0.1, Codes: map[int]int64{200: 2, 500: 2}},
	}}
	got := later.Since(earlier)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Version{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if later.Versions[1].Codes[500] != 1 {
		t.Error("Since changed its receiver")
	}
}

// Answers that never come must not slow down what is sent.
func TestOpenLoop(t *testing.T) {
	release := make(chan struct{})
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if arrived.Add(1) == 10 {
			close(release) // only when all ten are waiting does anybody get an answer
		}
		<-release
	}))
	defer server.Close()
	got := run(t, Options{URL: server.URL, RPS: 1000, Requests: 10})
	if got.Answered != 10 || got.Errors != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSkipsBeyondMaxInFlight(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	g, err := New(Options{URL: server.URL, RPS: 1000, Requests: 10, MaxInFlight: 3})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Run(t.Context()) }()
	waitFor(t, func() bool { return g.Snapshot().Skipped == 7 })
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := g.Snapshot(); got.Sent != 3 || got.Answered != 3 {
		t.Errorf("%+v", got)
	}
}

// Ending the load lets the requests in flight finish; none becomes an error.
func TestEndOfContextCutsNothingOff(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	g, err := New(Options{URL: server.URL, RPS: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	waitFor(t, func() bool { return g.Snapshot().Sent >= 5 })
	stop()
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := g.Snapshot(); got.Sent != got.Answered || got.Errors != 0 {
		t.Errorf("%+v", got)
	}
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not come true in 10s")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestHeadersAreSent(t *testing.T) {
	var seen atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen.Store(r.Host + " " + r.Header.Get("X-Canary"))
	}))
	defer server.Close()
	run(t, Options{URL: server.URL, RPS: 100, Requests: 1, Header: http.Header{"X-Canary": {"always"}, "Host": {"shop.example"}}})
	if got := seen.Load(); got != "shop.example always" {
		t.Errorf("got %q", got)
	}
}

func TestReport(t *testing.T) {
	url, _ := twoVersions(t)
	var text bytes.Buffer
	if err := Run(t.Context(), Options{URL: url, RPS: 400, Requests: 40}, Report{Out: &text, Interval: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	want := "total  40 requests  v1 75.0% (30, 0 errors)  v2 25.0% (10, 5 errors)"
	if got := strings.TrimSpace(lines[len(lines)-1]); got != want || len(lines) < 2 {
		t.Errorf("got\n%s\nwant lines that end in %q", text.String(), want)
	}
}

func TestJSONReportAddsUp(t *testing.T) {
	url, _ := twoVersions(t)
	var text bytes.Buffer
	if err := Run(t.Context(), Options{URL: url, RPS: 400, Requests: 40}, Report{Out: &text, Interval: 20 * time.Millisecond, JSON: true}); err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(&text)
	for decoder.More() {
		var line jsonLine
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Total && (line.Sent != 40 || line.Errors != 5) || line.Total == decoder.More() {
			t.Errorf("line %+v", line)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	var text bytes.Buffer
	err := Run(t.Context(), Options{URL: server.URL, RPS: 100, Requests: 3}, Report{Out: &text})
	if !errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v, want ErrNoAnswer", err)
	}
	if !strings.Contains(text.String(), "none 100.0% (3, 3 errors)") {
		t.Errorf("report:\n%s", text.String())
	}
}

func TestMetrics(t *testing.T) {
	url, _ := twoVersions(t)
	g, err := New(Options{URL: url, RPS: 1000, Requests: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	g.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for version, want := range map[string]string{"v1": "6", "v2": "1"} {
		line := fmt.Sprintf("http_requests_total{code=\"200\",version=%q} %s\n", version, want)
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("no %q in:\n%s", line, w.Body.String())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no url":   {RPS: 1},
		"ftp":      {URL: "ftp://a", RPS: 1},
		"no rate":  {URL: "http://a"},
		"negative": {URL: "http://a", RPS: 1, Duration: -1},
	} {
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
