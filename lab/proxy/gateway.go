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

	mirrors sync.WaitGroup // copies on their way

	swap sync.Mutex // one Serve at a time
	live atomic.Pointer[generation]
}

// generation is a table and the counters that go with it.
type generation struct {
	table  *table.Table
	splits []*exact.Split // one a rule
	turns  map[string]*atomic.Uint64
	copies [][]*exact.Split // one a mirror of each rule
	byKey  map[string]*exact.Split
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
// matches, backends and weights are as before goes on where its sequence was, so
// that neither a change of endpoints nor another rule disturbs the split. An error means that weights
// can't be used (exact.ErrWeights); the old table then stays.
func (g *Gateway) Serve(t *table.Table) error {
	g.swap.Lock()
	defer g.swap.Unlock()
	old := g.live.Load()
	next := &generation{table: t, turns: map[string]*atomic.Uint64{}, byKey: map[string]*exact.Split{}}
	for _, rule := range t.Rules() {
		split, err := next.split(old, ruleKey(rule), weights(rule))
		if err != nil {
			return fmt.Errorf("%s: %w", rule.Name, err)
		}
		next.splits = append(next.splits, split)
		for _, b := range rule.Backends {
			next.turns[b.Name] = old.turn(b.Name)
		}
		var copies []*exact.Split
		for _, m := range rule.Mirrors {
			split, err := next.split(old, fmt.Sprintf("mirror %q=%d/%d of %s", m.Backend.Name, m.Part, m.Of, ruleKey(rule)), []int64{m.Part, m.Of - m.Part})
			if err != nil {
				return fmt.Errorf("%s: mirror: %w", rule.Name, err)
			}
			copies = append(copies, split)
			next.turns[m.Backend.Name] = old.turn(m.Backend.Name)
		}
		next.copies = append(next.copies, copies)
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

// Close waits for copies of requests that are on their way, and closes the idle
// connections to backends.
func (g *Gateway) Close() {
	g.mirrors.Wait()
	g.transport.CloseIdleConnections()
}

// ruleKey identifies a rule from one table to the next.
func ruleKey(rule table.Rule) string {
	key := rule.Refused
	for _, m := range rule.Matches {
		key += fmt.Sprintf(" %d%s", m.Path.Kind, m)
	}
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

// split goes on with the sequence that the old generation had under this key, or
// begins one. Rules that are alike are told apart by their order.
func (g *generation) split(old *generation, key string, weights []int64) (*exact.Split, error) {
	for g.byKey[key] != nil {
		key += " again"
	}
	var split *exact.Split
	if old != nil {
		split = old.byKey[key]
	}
	if split == nil {
		var err error
		if split, err = exact.NewSplit(weights); err != nil {
			return nil, err
		}
	}
	g.byKey[key] = split
	return split, nil
}

func (g *generation) turn(backend string) *atomic.Uint64 {
	if g != nil && g.turns[backend] != nil {
		return g.turns[backend]
	}
	return &atomic.Uint64{}
}
