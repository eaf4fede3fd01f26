// Package app is the lab's HTTP service: it names its version in every answer,
// fails an exact share of its requests and takes as long as it is told to. It
// stands for the service that a rollout delivers. It may import client_golang and
// the lab's other packages, and nothing that knows of Kubernetes.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pushback-dev/pushback/lab/exact"
	"github.com/pushback-dev/pushback/lab/httpmetrics"
	"github.com/pushback-dev/pushback/lab/serve"
)

// Options describe one instance of the service.
type Options struct {
	// Version is what the instance calls itself. Required.
	Version string
	// ErrorRate is the share of requests answered with 500, 0 to 1. Default 0.
	ErrorRate float64
	// Latency is how long an answer is held back. Default 0.
	Latency time.Duration
	// Listen, Listener, OnListen, Drain and Grace are those of serve.Options.
	Listen   string
	Listener net.Listener
	OnListen func(net.Addr)
	Drain    time.Duration
	Grace    time.Duration
}

// ErrNoVersion says that Options.Version is empty.
var ErrNoVersion = errors.New("the app needs a version to call itself by")

// App is one instance of the service. Make it with New.
type App struct {
	version  string
	latency  time.Duration
	errors   *exact.Share
	stopping atomic.Bool
	mux      *http.ServeMux
	requests *httpmetrics.Requests
}

// New returns an App, which serves as an http.Handler. It fails with
// ErrNoVersion, with exact.ErrRate, or on a negative latency.
func New(o Options) (*App, error) {
	if o.Version == "" {
		return nil, ErrNoVersion
	}
	if o.Latency < 0 {
		return nil, fmt.Errorf("the latency is %s: it can't be negative", o.Latency)
	}
	share, err := exact.NewShare(o.ErrorRate)
	if err != nil {
		return nil, fmt.Errorf("error rate: %w", err)
	}
	registry := httpmetrics.NewRegistry()
	a := &App{
		version: o.Version, latency: o.Latency, errors: share,
		mux: http.NewServeMux(), requests: httpmetrics.NewRequests(registry),
	}
	a.mux.HandleFunc("/", a.answer)
	a.mux.HandleFunc("/healthz", a.health)
	a.mux.HandleFunc("GET /admin/errors", a.showErrors)
	a.mux.HandleFunc("POST /admin/errors", a.setErrors)
	a.mux.HandleFunc("PUT /admin/errors", a.setErrors)
	a.mux.HandleFunc("/admin/errors", refuseMethod)
	a.mux.Handle("GET /metrics", httpmetrics.Handler(registry))
	return a, nil
}

// ServeHTTP answers one request.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// SetErrorRate changes the share of failing requests, 0 to 1, from the next
// request on. Any other rate is an exact.ErrRate and changes nothing.
func (a *App) SetErrorRate(rate float64) error { return a.errors.Set(rate) }

// Stop makes /healthz answer 503 from now on; everything else goes on.
func (a *App) Stop() { a.stopping.Store(true) }

// Run serves an App until ctx ends: then /healthz answers 503 at once, requests
// are accepted for o.Drain more, and those in flight finish within o.Grace.
func Run(ctx context.Context, o Options) error {
	a, err := New(o)
	if err != nil {
		return err
	}
	return serve.Run(ctx, a, serve.Options{
		Listen: o.Listen, Listener: o.Listener, OnListen: o.OnListen,
		OnStop: a.Stop, Drain: o.Drain, Grace: o.Grace,
	})
}

func (a *App) answer(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	fail := a.errors.Next()
	if !hold(r.Context(), a.latency) {
		return // the client is gone, there is nobody to answer
	}
	w.Header().Set(httpmetrics.VersionHeader, a.version)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	code, body := http.StatusOK, "hello from "+a.version+"\n"
	if fail {
		code, body = http.StatusInternalServerError, "error from "+a.version+"\n"
	}
	w.WriteHeader(code)
	// A client that hung up meanwhile was answered as far as this side knows.
	_, _ = io.WriteString(w, body)
	a.requests.Observe(code, a.version, time.Since(start))
}

// hold waits and reports whether the client waited too.
func hold(ctx context.Context, d time.Duration) (stayed bool) {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *App) health(w http.ResponseWriter, _ *http.Request) {
	if a.stopping.Load() {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
