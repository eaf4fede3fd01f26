package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/pushback-dev/pushback/lab/exact"
	"github.com/pushback-dev/pushback/lab/httpmetrics"
	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// statusClientClosed is what nginx logs when the client went away first.
const statusClientClosed = 499

// noBackend is the metric label of requests that reached no backend.
const noBackend = "none"

// ServeHTTP routes one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	answer := &recorder{ResponseWriter: w}
	backend := noBackend
	defer func() { // also when the proxy aborts a broken answer with a panic
		g.metrics.observe(backend, answer, time.Since(start))
	}()
	live := g.live.Load()
	if live == nil {
		http.Error(answer, "gateway: no routes are loaded yet", http.StatusServiceUnavailable)
		return
	}
	index, ok := live.table.Find(matchable(r))
	if !ok {
		http.Error(answer, "gateway: no rule matches "+r.Method+" "+r.URL.Path, http.StatusNotFound)
		return
	}
	rule := &live.table.Rules()[index]
	if rule.Refused != "" {
		http.Error(answer, "gateway: "+rule.Refused, http.StatusInternalServerError)
		return
	}
	chosen := choose(rule, live.splits[index], r)
	if chosen == exact.Nobody {
		http.Error(answer, "gateway: "+rule.Name+" has no backend with a weight above 0", http.StatusInternalServerError)
		return
	}
	to := &rule.Backends[chosen]
	backend = to.Name
	g.mirror(r, live, index)
	switch {
	case to.Invalid != "":
		http.Error(answer, "gateway: "+to.Invalid, http.StatusInternalServerError)
	case len(to.Endpoints) == 0:
		http.Error(answer, "gateway: "+to.Name+" has no ready endpoint", http.StatusServiceUnavailable)
	default:
		turn := live.turns[to.Name].Add(1) - 1
		g.forward(answer, r, rule, to, to.Endpoints[turn%uint64(len(to.Endpoints))])
	}
}

// choose takes the next backend of the rule's sequence. A request that asks for
// the canary gets it without moving the sequence, so the others stay exact.
func choose(rule *table.Rule, split *exact.Split, r *http.Request) int {
	if r.Header.Get(CanaryHeader) == "always" {
		for i, b := range rule.Backends {
			if b.Canary {
				return i
			}
		}
	}
	return split.Next()
}

func (g *Gateway) forward(w *recorder, r *http.Request, rule *table.Rule, to *table.Backend, endpoint string) {
	if rule.Timeout > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), rule.Timeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	proxy := httputil.ReverseProxy{
		Transport: g.transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: endpoint})
			p.Out.Host = p.In.Host
			p.SetXForwarded()
			for _, edit := range []table.HeaderEdit{rule.Edits.Request, to.Edits.Request} {
				applyEdit(p.Out.Header, edit)
				if host, ok := hostOf(edit); ok {
					p.Out.Host = host
				}
			}
		},
		ModifyResponse: func(answer *http.Response) error {
			w.version = answer.Header.Get(httpmetrics.VersionHeader)
			applyEdit(answer.Header, to.Edits.Response)
			applyEdit(answer.Header, rule.Edits.Response)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { g.failed(w, r, to.Name, err) },
		// A copy that breaks because the client left is counted, not logged.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	proxy.ServeHTTP(w, r)
}

// failed answers for a backend that did not.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, backend string, err error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "gateway: "+backend+" did not answer in the rule's timeout", http.StatusGatewayTimeout)
	case errors.Is(r.Context().Err(), context.Canceled):
		w.WriteHeader(statusClientClosed)
	default:
		g.log.Warn("backend did not answer", "backend", backend, "error", err)
		http.Error(w, "gateway: "+backend+" can't be reached: "+err.Error(), http.StatusBadGateway)
	}
}

func matchable(r *http.Request) table.Request {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return table.Request{Host: host, Method: r.Method, Path: r.URL.Path, Header: r.Header, Query: r.URL.Query()}
}

func applyEdit(header http.Header, edit table.HeaderEdit) {
	for _, h := range edit.Set {
		header.Set(h.Name, h.Value)
	}
	for _, h := range edit.Add {
		header.Add(h.Name, h.Value)
	}
	for _, name := range edit.Remove {
		header.Del(name)
	}
}

// hostOf is the Host that an edit sets; Go keeps it out of the header map.
func hostOf(edit table.HeaderEdit) (host string, ok bool) {
	for _, h := range edit.Set {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			return h.Value, true
		}
	}
	return "", false
}
