// Package httpmetrics is the pair of HTTP metrics that every server of the lab
// exports, so that one PromQL query works on all of them. It may import
// client_golang and nothing of the project.
package httpmetrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// VersionHeader is the answer header by which a service names its version.
const VersionHeader = "X-App-Version"

// NoVersion is the value of the label "version" when no service answered, or
// one that did not name a version.
const NoVersion = "none"

// Requests counts and times HTTP requests:
//
//	http_requests_total{code,version}            counter
//	http_request_duration_seconds{code,version}  histogram, seconds
//
// code is the status code in digits, version what the service calls itself.
type Requests struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewRequests registers the metrics. It panics if they are registered already,
// as that is a mistake of the program and not of its input.
func NewRequests(registry prometheus.Registerer) *Requests {
	labels := []string{"code", "version"}
	r := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total",
			Help: "HTTP requests answered, by status code and version of the service.",
		}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "http_request_duration_seconds",
			Help:    "How long HTTP requests took, by status code and version of the service.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, labels),
	}
	registry.MustRegister(r.total, r.duration)
	return r
}

// Observe counts one answered request. An empty version counts as NoVersion.
func (r *Requests) Observe(code int, version string, took time.Duration) {
	if version == "" {
		version = NoVersion
	}
	label := strconv.Itoa(code)
	r.total.WithLabelValues(label, version).Inc()
	r.duration.WithLabelValues(label, version).Observe(took.Seconds())
}

// NewRegistry returns a registry that holds the Go runtime's and the process's
// metrics.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Handler serves what the registry holds, in the text format or OpenMetrics as
// the scraper asks.
func Handler(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, Registry: registry})
}
