// Package load is the lab's load generator: it sends requests at a fixed rate,
// each on a connection of its own, and counts answers and errors by the version
// that answered. It may import client_golang and the lab's other packages, and
// nothing that knows of Kubernetes.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pushback-dev/pushback/lab/dialtable"
	"github.com/pushback-dev/pushback/lab/httpmetrics"
)

const (
	// DefaultTimeout bounds one request.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxInFlight bounds the requests that wait for an answer together.
	DefaultMaxInFlight = 1000

	maxRPS = 100_000
)

// Options say what to send.
type Options struct {
	// URL is what is requested with GET. Required, http or https.
	URL string
	// RPS is how many requests are sent in a second, above 0, up to 100 000.
	// They are sent on time however long answers take (an open loop).
	RPS float64
	// Duration is how long requests are sent; 0 means until the context ends.
	// Duration*RPS requests are sent, rounded down.
	Duration time.Duration
	// Requests, if above 0, ends the load after so many.
	Requests int64
	// Header is sent with every request.
	Header http.Header
	// Timeout bounds one request from its start to the end of the answer.
	// Default DefaultTimeout.
	Timeout time.Duration
	// MaxInFlight bounds the requests without an answer; what is due beyond it
	// is not sent and counted as skipped. Default DefaultMaxInFlight.
	MaxInFlight int
	// Dial reaches the URL's host; nil dials it as it is.
	Dial dialtable.DialFunc
}

// ErrOptions says that the options can't be used.
var ErrOptions = errors.New("the load can't be generated")

// Generator sends the requests. Make it with New.
type Generator struct {
	options  Options
	client   *http.Client
	registry *prometheus.Registry
	metrics  *httpmetrics.Requests

	mu      sync.Mutex
	started time.Time
	stopped time.Time
	counts  counts
}

// New checks the options; one that can't be used is an ErrOptions that names it.
func New(o Options) (*Generator, error) {
	if err := check(&o); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	registry := httpmetrics.NewRegistry()
	return &Generator{
		options: o, registry: registry, metrics: httpmetrics.NewRequests(registry),
		counts: newCounts(),
		client: &http.Client{
			Timeout: o.Timeout,
			// A kept connection would stay with the pod it once reached.
			Transport:     &http.Transport{DisableKeepAlives: true, DialContext: o.Dial},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func check(o *Options) error {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("the URL %q is not of the form http://host:port/path", o.URL)
	case math.IsNaN(o.RPS) || o.RPS <= 0 || o.RPS > maxRPS:
		return fmt.Errorf("%v requests a second; it must be above 0 and at most %d", o.RPS, maxRPS)
	case o.Duration < 0 || o.Requests < 0 || o.Timeout < 0 || o.MaxInFlight < 0:
		return errors.New("a duration, a timeout or a number of requests is negative")
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	return nil
}

// MetricsHandler serves http_requests_total and http_request_duration_seconds as
// this client saw them. Requests without an answer have the code 0.
func (g *Generator) MetricsHandler() http.Handler { return httpmetrics.Handler(g.registry) }

// Run sends requests until Duration or Requests is reached or ctx ends, and then
// waits for the answers that are due, at most Timeout. So every request that was
// sent is in the last Snapshot. It can be called once.
func (g *Generator) Run(ctx context.Context) error {
	start := time.Now()
	g.mu.Lock()
	g.started = start
	g.mu.Unlock()

	// Ending the load must not cut off requests: they would count as errors.
	detached := context.WithoutCancel(ctx)
	slots := make(chan struct{}, g.options.MaxInFlight)
	var inFlight sync.WaitGroup
	for i := int64(0); i < g.planned(); i++ {
		due := start.Add(time.Duration(float64(i) / g.options.RPS * float64(time.Second)))
		if !waitUntil(ctx, due) {
			break
		}
		select {
		case slots <- struct{}{}:
			g.count(func(c *counts) { c.sent++ })
			inFlight.Go(func() {
				defer func() { <-slots }()
				g.send(detached)
			})
		default:
			g.count(func(c *counts) { c.skipped++ })
		}
	}
	inFlight.Wait()
	g.mu.Lock()
	g.stopped = time.Now()
	g.mu.Unlock()
	return nil
}

// planned is how many requests the options ask for.
func (g *Generator) planned() int64 {
	n := int64(math.MaxInt64)
	if g.options.Duration > 0 {
		// The tiny addend keeps 0.1s * 30/s from being 2.9999 requests.
		n = int64(g.options.Duration.Seconds()*g.options.RPS + 1e-6)
	}
	if g.options.Requests > 0 {
		n = min(n, g.options.Requests)
	}
	return n
}

// waitUntil reports whether the time came before ctx ended.
func waitUntil(ctx context.Context, due time.Time) (came bool) {
	if ctx.Err() != nil {
		return false
	}
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *Generator) send(ctx context.Context) {
	start := time.Now()
	code, version, err := g.request(ctx)
	took := time.Since(start)
	g.metrics.Observe(code, version, took)
	g.count(func(c *counts) { c.add(code, version, took, err) })
}

// request returns code 0 and an error if there was no complete answer.
func (g *Generator) request(ctx context.Context) (code int, version string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.options.URL, nil)
	if err != nil {
		return 0, "", err
	}
	if g.options.Header != nil {
		request.Header = g.options.Header.Clone()
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := g.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	version = response.Header.Get(httpmetrics.VersionHeader)
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, version, fmt.Errorf("read the answer: %w", err)
	}
	return response.StatusCode, version, nil
}

func (g *Generator) count(change func(*counts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.counts)
}
