package prom

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"

	"github.com/pushback-dev/pushback/lab/dialtable"
)

// exporter serves a registry with a counter and a histogram.
func exporter(t *testing.T) (url string, requests *prometheus.CounterVec) {
	t.Helper()
	registry := prometheus.NewRegistry()
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total", Help: "Requests."}, []string{"code", "version"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took_seconds", Help: "Time.", Buckets: []float64{1, 2, 4}})
	registry.MustRegister(requests, took)
	requests.WithLabelValues("200", "v1").Add(75)
	requests.WithLabelValues("500", "v2").Add(25)
	for _, v := range []float64{0.5, 1.5, 1.5, 3} {
		took.Observe(v)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

// running opens a server that scrapes every 100 ms and returns a client to it.
func running(t *testing.T, o Options) (*Server, promv1.API) {
	t.Helper()
	o.Interval = 100 * time.Millisecond
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, clientOf(t, s)
}

func clientOf(t *testing.T, s *Server) promv1.API {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	client, err := api.NewClient(api.Config{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return promv1.NewAPI(client)
}

func ask(t *testing.T, client promv1.API, query string) model.Value {
	t.Helper()
	value, _, _, err := client.Query(t.Context(), query, time.Now())
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// waitFor asks until the answer, without its times, reads as wanted.
func waitFor(t *testing.T, client promv1.API, query string, want ...string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		got := samples(ask(t, client, query))
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s (-want +got):\n%s", query, diff)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func samples(value model.Value) (list []string) {
	for _, s := range value.(model.Vector) {
		list = append(list, s.Metric.String()+" "+s.Value.String())
	}
	return list
}

func TestScrapesAndAnswers(t *testing.T) {
	url, requests := exporter(t)
	_, client := running(t, Options{Targets: []Target{{URL: url, Labels: map[string]string{"job": "gateway", "zone": "a"}}}})
	host := strings.TrimPrefix(url, "http://")

	waitFor(t, client, "up", `up{instance="`+host+`", job="gateway", zone="a"} 1`)
	waitFor(t, client, `sum by (version) (http_requests_total{code="500"}) / ignoring(version) group_left sum(http_requests_total)`, `{version="v2"} 0.25`)
	waitFor(t, client, "histogram_quantile(0.5, sum by (le) (took_seconds_bucket))", "{} 1.5")

	requests.WithLabelValues("500", "v2").Add(10)
	waitFor(t, client, `http_requests_total{version="v2"} > bool 30`, `{code="500", instance="`+host+`", job="gateway", version="v2", zone="a"} 1`)
	waitFor(t, client, `increase(http_requests_total{version="v2"}[1m]) > bool 0`, `{code="500", instance="`+host+`", job="gateway", version="v2", zone="a"} 1`)
}

// Series of a target that is gone end; they are not repeated for five minutes.
func TestSeriesOfAVanishedTargetGoStale(t *testing.T) {
	url, requests := exporter(t)
	s, client := running(t, Options{Targets: []Target{{URL: url + "/metrics"}}})
	waitFor(t, client, "count(http_requests_total)", "{} 2")
	requests.DeleteLabelValues("500", "v2")
	waitFor(t, client, "count(http_requests_total)", "{} 1")
	if err := s.SetTargets(nil); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, "http_requests_total")
	waitFor(t, client, "up")
}

func TestADeadTargetIsDown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	s, client := running(t, Options{})
	if err := s.SetTargets([]Target{{URL: server.URL, Labels: map[string]string{"instance": "app"}}}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, client, "up", `up{instance="app", job="targets"} 0`)
	health := s.Health()
	if len(health) != 1 || health[0].Health != "down" || !strings.Contains(health[0].LastError, "404") || health[0].URL != server.URL+"/metrics" {
		t.Errorf("health: %+v", health)
	}
}

func TestDialsThroughATable(t *testing.T) {
	url, _ := exporter(t)
	var table dialtable.Table
	table.Set(map[string]string{"10.64.0.7:8080": strings.TrimPrefix(url, "http://")})
	_, client := running(t, Options{Dial: table.DialContext, Targets: []Target{{URL: "http://10.64.0.7:8080"}}})
	waitFor(t, client, "up", `up{instance="10.64.0.7:8080", job="targets"} 1`)
}

func TestTemporaryDirectoryGoesAway(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", s.dir, err)
	}
}

func TestAGivenDirectoryKeepsItsSeries(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		store(t, s, time.Unix(1000, 0), 1, "kept", "1")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	value, _, _, err := clientOf(t, s).Query(t.Context(), "kept", time.Unix(1000, 0))
	if err != nil || len(value.(model.Vector)) != 1 {
		t.Errorf("%v, %v", value, err)
	}
}

func TestOptionsRefused(t *testing.T) {
	if _, err := Open(Options{Interval: time.Millisecond}); err == nil {
		t.Error("an interval of 1ms was accepted")
	}
	for _, target := range []Target{{}, {URL: "app:8080"}, {URL: "ftp://a"}, {URL: "http://"}, {URL: "http://a", Labels: map[string]string{"": "x"}}} {
		if _, err := Open(Options{Targets: []Target{target}}); !errors.Is(err, ErrTarget) {
			t.Errorf("%+v: %v, want ErrTarget", target, err)
		}
	}
}
