// Package egress decides to which addresses a client may connect on behalf of a
// user who names a URL. The decision is made when the connection is opened, on the
// address that it goes to, so that no name in DNS and no redirect gets around it.
//
// It imports no package of this module.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// ErrRefused says that an address may not be connected to.
var ErrRefused = errors.New("the address is refused")

// nat64 embeds IPv4 addresses.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// Policy says which addresses are refused: link-local ones (169.254.0.0/16, where
// clouds serve credentials, and fe80::/10), multicast, the unspecified address (which
// reaches the machine itself), and those that are denied by name.
type Policy struct {
	// Deny lists further addresses with their ports, such as the API server's.
	Deny []netip.AddrPort
	// Allow lists prefixes that are let through whatever else holds.
	Allow []netip.Prefix
}

// Check gives ErrRefused, wrapped with the reason, or nil.
func (p Policy) Check(to netip.AddrPort) error {
	addr := plain(to.Addr())
	for _, allowed := range p.Allow {
		if allowed.Contains(addr) {
			return nil
		}
	}
	switch {
	case addr.IsLinkLocalUnicast():
		return fmt.Errorf("%w: %s is link-local", ErrRefused, addr)
	case addr.IsMulticast(), addr.IsUnspecified():
		return fmt.Errorf("%w: %s names no host", ErrRefused, addr)
	}
	for _, denied := range p.Deny {
		if plain(denied.Addr()) == addr && denied.Port() == to.Port() {
			return fmt.Errorf("%w: %s is the API server", ErrRefused, to)
		}
	}
	return nil
}

// plain is the address without a zone and out of the forms that embed IPv4.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// DialContext connects to what the policy lets through. A connection takes at most
// 10 s to open.
func (p Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: p.control}
	return d.DialContext(ctx, network, address)
}

// control is called with the address that a name was resolved to.
func (p Policy) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is no address", ErrRefused, address)
	}
	return p.Check(to)
}
