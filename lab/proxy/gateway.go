// Package proxy is the lab's gateway: an HTTP reverse proxy that splits requests
// over backends exactly, either as its admin API says or as an HTTPRoute says, in
// which case it reports in the route's status which generation it serves.
//
// It may import client-go and controller-runtime to watch routes, and nothing of
// the project but the lab. What a route means is decided in the pure packages
// below it; here is the I/O around them.
package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pushback-dev/pushback/lab/dialtable"
	"github.com/pushback-dev/pushback/lab/exact"
	"github.com/pushback-dev/pushback/lab/httpmetrics"
	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// CanaryHeader with the value "always" sends a request to the backend that the
// configuration marks as the canary. Routes that come from an HTTPRoute say with
// header matches what headers do, so it has no meaning there.
const CanaryHeader = "X-Canary"

// Gateway sends requests to backends as its current table says. Make it with
// NewGateway; until Serve is called it answers 503.
type Gateway struct {
	log       *slog.Logger
	transport *http.Transport
	metrics   metrics
	registry  *prometheus.Registry

	swap sync.Mutex // one Serve at a time
	live atomic.Pointer[generation]
}

// generation is a table and the counters that go with it.
type generation struct {
	table  *table.Table
	splits []*exact.Split // one a rule
	turns  map[string]*atomic.Uint64
	keys   []string
}

// NewGateway returns a Gateway that dials backends with dial (nil means
// directly) and logs to log (nil means nowhere).
func NewGateway(dial dialtable.DialFunc, log *slog.Logger) *Gateway {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if dial == nil {
		dial = new(dialtable.Table).DialContext
	}
	registry := httpmetrics.NewRegistry()
	return &Gateway{
		log: log, registry: registry, metrics: newMetrics(registry),
		transport: &http.Transport{
			DialContext:         dial,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     30 * time.Second,
		},
	}
}

// Serve replaces the table. When it returns, every request that arrives is
// routed by the new one; requests in flight finish by the old one. A rule whose
// backends and weights are as before goes on where its sequence was, so that a
// change of endpoints does not disturb the split. An error means that weights
// can't be used (exact.ErrWeights); the old table then stays.
func (g *Gateway) Serve(t *table.Table) error {
	g.swap.Lock()
	defer g.swap.Unlock()
	old := g.live.Load()
	next := &generation{table: t, turns: map[string]*atomic.Uint64{}}
	for i, rule := range t.Rules() {
		key := splitKey(i, rule)
		split := old.split(key)
		if split == nil {
			var err error
			if split, err = exact.NewSplit(weights(rule)); err != nil {
				return fmt.Errorf("%s: %w", rule.Name, err)
			}
		}
		next.keys, next.splits = append(next.keys, key), append(next.splits, split)
		for _, b := range rule.Backends {
			next.turns[b.Name] = old.turn(b.Name)
		}
	}
	g.live.Store(next)
	return nil
}

// Table is the table being served, nil before the first Serve.
func (g *Gateway) Table() *table.Table {
	if live := g.live.Load(); live != nil {
		return live.table
	}
	return nil
}

// Close closes the idle connections to backends.
func (g *Gateway) Close() { g.transport.CloseIdleConnections() }

func splitKey(i int, rule table.Rule) string {
	key := fmt.Sprint(i)
	for _, b := range rule.Backends {
		key += fmt.Sprintf(" %q=%d", b.Name, b.Weight)
	}
	return key
}

func weights(rule table.Rule) []int64 {
	list := make([]int64, 0, len(rule.Backends))
	for _, b := range rule.Backends {
		list = append(list, b.Weight)
	}
	return list
}

func (g *generation) split(key string) *exact.Split {
	if g == nil {
		return nil
	}
	if i := slices.Index(g.keys, key); i >= 0 {
		return g.splits[i]
	}
	return nil
}

func (g *generation) turn(backend string) *atomic.Uint64 {
	if g != nil && g.turns[backend] != nil {
		return g.turns[backend]
	}
	return &atomic.Uint64{}
}
