package podforward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// reasonWait is how long a broken connection waits for the node's reason.
const reasonWait = time.Second

// link is the shared connection to one pod.
type link struct {
	dialer *Dialer
	ip     netip.Addr
	ready  chan struct{} // closed when conn or err is set
	conn   httpstream.Connection
	err    error
	last   atomic.Int64 // the last request's number

	// Under the dialer's lock:
	streams int
	dropped bool
}

// open makes one connection: a pair of streams, one for data and one on which the node says what went wrong.
func (l *link) open(to netip.AddrPort) (net.Conn, error) {
	l.count(1)
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(to.Port())))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(l.last.Add(1), 10))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	reason, err := l.conn.CreateStream(headers)
	if err != nil {
		l.count(-1)
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	_ = reason.Close() // the client's direction: nothing is ever written
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := l.conn.CreateStream(headers)
	if err != nil {
		_ = reason.Reset()
		l.conn.RemoveStreams(reason)
		l.count(-1)
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	local, remote := net.Pipe()
	c := &conn{Conn: local, to: net.TCPAddrFromAddrPort(to), told: make(chan struct{})}
	go c.listen(l, reason)
	go c.receive(remote, data)
	go c.send(l, remote, data, reason)
	return c, nil
}

func (l *link) count(by int) {
	l.dialer.mu.Lock()
	defer l.dialer.mu.Unlock()
	l.streams += by
	l.dialer.endIdle(l)
}

// conn is the near end of a pipe whose far end is copied to and from a stream: a stream alone has no deadlines.
type conn struct {
	net.Conn
	to    net.Addr
	cause atomic.Pointer[error]
	told  chan struct{} // closed when the node can say no more
}

// listen reads the node's reason, if it ever gives one.
func (c *conn) listen(l *link, reason io.Reader) {
	defer close(c.told)
	text, _ := io.ReadAll(io.LimitReader(reason, 4<<10)) // a reset may follow the text
	if len(text) == 0 {
		return
	}
	err := fmt.Errorf("pod %s: %s", c.to, strings.TrimSpace(string(text)))
	c.cause.Store(&err)
	// The address may be another pod's by now.
	l.dialer.drop(l)
}

// receive copies what the pod sends.
func (c *conn) receive(remote net.Conn, data io.Reader) {
	_, _ = io.Copy(remote, data)
	c.awaitReason()
	_ = remote.Close()
}

// send copies what the client sends until either side closes, and then ends it all.
func (c *conn) send(l *link, remote net.Conn, data, reason httpstream.Stream) {
	if _, err := io.Copy(data, remote); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		c.awaitReason() // the pod's side broke
	}
	_, _ = data.Reset(), reason.Reset()
	_ = remote.Close()
	l.conn.RemoveStreams(data, reason)
	l.count(-1)
}

func (c *conn) awaitReason() {
	timer := time.NewTimer(reasonWait)
	defer timer.Stop()
	select {
	case <-c.told:
	case <-timer.C:
	}
}

// Read is net.Conn's; the node's reason takes the place of an end without one.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.explain(err)
}

// Write is net.Conn's.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.explain(err)
}

func (c *conn) explain(err error) error {
	if cause := c.cause.Load(); cause != nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe)) {
		return *cause
	}
	return err
}

// RemoteAddr is the pod's address.
func (c *conn) RemoteAddr() net.Addr { return c.to }
