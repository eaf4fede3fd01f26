// Package dialtable maps the addresses that a cluster gives its pods to the
// addresses where the local node really runs them. EndpointSlices refuse loopback
// addresses, so the node gives each pod an address that nothing routes and
// publishes this table; gateways and scrapers dial through it. It imports nothing
// of the project.
package dialtable

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// DefaultInterval is how often Follow fetches the table.
const DefaultInterval = 250 * time.Millisecond

// maxTable bounds the answer that is read, in bytes; it holds 100 000 pods.
const maxTable = 8 << 20

// DialFunc is net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Table is a set of address mappings, replaced as a whole. The zero Table is
// empty and dials every address as it is. It is safe for concurrent use.
type Table struct {
	// URL, if set, answers with the table as a JSON object of strings. It must
	// not change once the table is in use.
	URL string

	entries atomic.Pointer[map[string]string]
}

// dialTimeout bounds one connection attempt: an address that nobody routes would
// otherwise hang for minutes.
const dialTimeout = 5 * time.Second

func connect(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, network, address)
}

// Set replaces the mappings, "ip:port" to "host:port".
func (t *Table) Set(entries map[string]string) {
	entries = maps.Clone(entries)
	t.entries.Store(&entries)
}

// Lookup is the address that really listens for the given one. One that is not
// in the table is returned as it is.
func (t *Table) Lookup(address string) string {
	if entries := t.entries.Load(); entries != nil {
		if real, ok := (*entries)[address]; ok {
			return real
		}
	}
	return address
}

// DialContext dials the address that the table has for the given one. A pod can
// be ready before the next fetch, or its address can have gone to another pod: so
// an address that is missing, or that refuses, is looked up once more at URL.
func (t *Table) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	real := t.Lookup(address)
	if real == address && t.URL != "" && !isLoopback(address) && t.Fetch(ctx) == nil {
		real = t.Lookup(address)
	}
	conn, err := connect(ctx, network, real)
	if err == nil || real == address || t.URL == "" || t.Fetch(ctx) != nil {
		return conn, err
	}
	if now := t.Lookup(address); now != real {
		return connect(ctx, network, now)
	}
	return nil, err
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false // the dialer says what is wrong with it
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Fetch reads the table once from URL and replaces the mappings. On an error
// they stay as they are.
func (t *Table) Fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return fmt.Errorf("dial table: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("dial table: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("dial table: %s answered %s", t.URL, response.Status)
	}
	var entries map[string]string
	if err := json.NewDecoder(io.LimitReader(response.Body, maxTable)).Decode(&entries); err != nil {
		return fmt.Errorf(`dial table: %s does not answer with a JSON object of "ip:port": "host:port": %w`, t.URL, err)
	}
	t.Set(entries)
	return nil
}

// Follow fetches the table at once and then at every interval (default
// DefaultInterval), until ctx ends. onError, if set, hears of a failure when it
// begins and of nil when it is over; meanwhile the last table stands.
func (t *Table) Follow(ctx context.Context, interval time.Duration, onError func(error)) {
	if interval <= 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failing := false
	for {
		err := t.Fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err != nil) != failing && onError != nil {
			onError(err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
