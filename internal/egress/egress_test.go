package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	p := Policy{
		Deny:  []netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:443")},
		Allow: []netip.Prefix{netip.MustParsePrefix("169.254.20.10/32")},
	}
	for address, refused := range map[string]bool{
		"10.0.0.1:80":                 false,
		"127.0.0.1:9090":              false,
		"[::1]:9090":                  false,
		"169.254.169.254:80":          true,
		"[::ffff:169.254.169.254]:80": true,
		"[64:ff9b::a9fe:a9fe]:80":     true,
		"[fe80::1]:80":                true,
		"[fe80::1%eth0]:80":           true,
		"0.0.0.0:6443":                true,
		"[::]:6443":                   true,
		"224.0.0.1:80":                true,
		"10.96.0.1:443":               true,
		"[::ffff:10.96.0.1]:443":      true,
		"10.96.0.1:9090":              false,
		"169.254.20.10:53":            false,
		"169.254.20.11:53":            true,
	} {
		err := p.Check(netip.MustParseAddrPort(address))
		if got := errors.Is(err, ErrRefused); got != refused {
			t.Errorf("%s: got %v, want refused %t", address, err, refused)
		}
	}
}

// The check is on the address that is connected to, not on the name.
func TestDialChecksTheResolvedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := Policy{}.DialContext(context.Background(), "tcp4", net.JoinHostPort("localhost", port))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	denied := Policy{Deny: []netip.AddrPort{netip.MustParseAddrPort(l.Addr().String())}}
	if _, err := denied.DialContext(context.Background(), "tcp4", net.JoinHostPort("localhost", port)); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}
