package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pushback-dev/pushback/lab/httpmetrics"
)

// metrics are those of every lab server, with the version that the backend named
// in its in its answer, gateway_requests_total{backend,code}, and
// gateway_mirrored_requests_total{backend,code} for the copies, whose answers
// nobody sees: they count nowhere else.
type metrics struct {
	requests *httpmetrics.Requests
	backends *prometheus.CounterVec
	mirrored *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{
		requests: httpmetrics.NewRequests(registry),
		backends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_requests_total",
			Help: "Requests by the backend they were sent to and the status code they were answered with.",
		}, []string{"backend", "code"}),
		mirrored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_mirrored_requests_total",
			Help: "Copies of requests by the backend they were sent to and the status code they were answered with, or why there was none.",
		}, []string{"backend", "code"}),
	}
	registry.MustRegister(m.backends, m.mirrored)
	return m
}

func (m metrics) observe(backend string, answer *recorder, took time.Duration) {
	code := answer.code
	if code == 0 {
		code = statusClientClosed // no status was ever written
	}
	m.requests.Observe(code, answer.version, took)
	m.backends.WithLabelValues(backend, strconv.Itoa(code)).Inc()
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	code    int
	version string
}

// WriteHeader remembers the first final status.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implies 200, as in net/http.
func (r *recorder) Write(p []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController flush and hijack through it.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
