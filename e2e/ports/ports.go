// Package ports hands out TCP ports of 127.0.0.1 that no two processes on this machine get at the same
// time. Asking the kernel for a free port and closing it again, as is usual, loses it to whoever asks next;
// here a lease is a locked file, and the ports lie below the range that the kernel uses for outgoing
// connections. It may import the standard library only.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The range that is leased from: below Linux's (32768) and macOS's (49152) ephemeral ports, above the usual servers'.
const (
	first = 18000
	last  = 31999
)

// ErrExhausted says that no port of the range is free.
var ErrExhausted = errors.New("no free port between " + strconv.Itoa(first) + " and " + strconv.Itoa(last))

// Lease is a port that is this process's until it is released or the process ends.
type Lease struct {
	port int
	lock *os.File
}

// Take leases a port of 127.0.0.1 that nobody listens on.
func Take() (*Lease, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("pushback-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of port leases: %w", err)
	}
	const size = last - first + 1
	for i, start := 0, rand.IntN(size); i < size; i++ {
		lease, err := try(dir, first+(start+i)%size)
		if err != nil || lease != nil {
			return lease, err
		}
	}
	return nil, ErrExhausted
}

// try leases one port; nil without an error means that it is taken.
func try(dir string, port int) (*Lease, error) {
	lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a port lease: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		lock.Close()
		return nil, nil
	}
	listener.Close()
	return &Lease{port: port, lock: lock}, nil
}

// Port is the leased port.
func (l *Lease) Port() int { return l.port }

// Address is 127.0.0.1 with the leased port.
func (l *Lease) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port)) }

// Release gives the port back. Releasing twice is harmless.
func (l *Lease) Release() { l.lock.Close() }
