package node

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// ErrNoAddress says that every address of the pod range is in use.
var ErrNoAddress = errors.New("node: the pod range has no free address")

// pool hands out the addresses of a range, round and round, so that an address that was just given back is not
// the next that a slow client still knows for another pod.
type pool struct {
	mu    sync.Mutex
	whole netip.Prefix
	last  netip.Addr
	used  map[netip.Addr]bool
}

func newPool(whole netip.Prefix) (*pool, error) {
	if !whole.IsValid() || !whole.Addr().Is4() || whole.Bits() > 30 {
		return nil, fmt.Errorf("node: Options.PodRange %s: want an IPv4 range of /30 or larger", whole)
	}
	whole = whole.Masked()
	return &pool{whole: whole, last: whole.Addr(), used: map[netip.Addr]bool{}}, nil
}

// take gives a free address. The first of the range, its network's, is never given.
func (p *pool) take() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, wrapped := p.last.Next(), false; ; a = a.Next() {
		if !p.whole.Contains(a) {
			if wrapped {
				return netip.Addr{}, ErrNoAddress
			}
			a, wrapped = p.whole.Addr().Next(), true
		}
		if !p.used[a] {
			p.used[a], p.last = true, a
			return a, nil
		}
	}
}

// reserve marks an address as used; addresses outside of the range are not the pool's.
func (p *pool) reserve(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whole.Contains(a) {
		p.used[a] = true
	}
}

func (p *pool) release(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, a)
}
