package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/e2e/ports"
)

// table knows where the processes of pods really listen.
type table struct {
	pods       netip.Prefix
	addressing Addressing

	mu      sync.Mutex
	entries map[string]string // "podIP:containerPort" to "127.0.0.1:port"
	leases  map[types.UID]map[string]*ports.Lease
}

func newTable(pods netip.Prefix, a Addressing) *table {
	return &table{pods: pods, addressing: a, entries: map[string]string{}, leases: map[types.UID]map[string]*ports.Lease{}}
}

// listen says where the process of a pod must listen for a container port. A pod keeps its port until it is
// removed, over restarts.
func (t *table) listen(uid types.UID, podIP string, port int32) (string, error) {
	address := net.JoinHostPort(podIP, strconv.Itoa(int(port)))
	if t.addressing == Routed {
		return address, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.leases[uid][address]; ok {
		return l.Address(), nil
	}
	l, err := ports.Take()
	if err != nil {
		return "", fmt.Errorf("finding a port for %s: %w", address, err)
	}
	if t.leases[uid] == nil {
		t.leases[uid] = map[string]*ports.Lease{}
	}
	t.leases[uid][address] = l
	t.entries[address] = l.Address()
	return l.Address(), nil
}

// remove forgets a pod and gives its ports back.
func (t *table) remove(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for address, l := range t.leases[uid] {
		delete(t.entries, address)
		l.Release()
	}
	delete(t.leases, uid)
}

func (t *table) lookup(address string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	real, ok := t.entries[address]
	return real, ok
}

// dial dials pods where they really listen and everything else as it is.
func (t *table) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	if real, ok := t.lookup(address); ok {
		return dialer.DialContext(ctx, network, real)
	}
	if to, err := netip.ParseAddrPort(address); err == nil && t.addressing == Loopback && t.pods.Contains(to.Addr()) {
		// Nothing routes the range: dialing would end in a timeout, or on another network of the same addresses.
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(to), Err: syscall.ECONNREFUSED}
	}
	return dialer.DialContext(ctx, network, address)
}

// Dial is net.Dialer.DialContext for addresses of pods ("podIP:containerPort") as well. A pod address that no
// pod declares is refused at once.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.table.dial(ctx, network, address)
}

// Table is where the processes of pods really listen: "podIP:containerPort" to "127.0.0.1:port". It is empty
// with Routed addressing and in hollow mode.
func (n *Node) Table() map[string]string {
	n.table.mu.Lock()
	defer n.table.mu.Unlock()
	return maps.Clone(n.table.entries)
}

// Handler serves Table as a JSON object on every path; lab/dialtable.Table dials by it from another process.
func (n *Node) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// An error here is the client's going away.
		_ = json.NewEncoder(w).Encode(n.Table())
	})
}
