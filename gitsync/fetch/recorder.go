package fetch

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// recorder is a transport that caps every body and keeps what go-git drops: the
// Retry-After of a server that is too busy.
type recorder struct {
	base *http.Transport
	max  int64

	mu         sync.Mutex
	retryAfter time.Duration
}

// RoundTrip sends a request.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.retryAfter = 0
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		r.retryAfter = retryAfter(res.Header.Get("Retry-After"), res.Header.Get("Date"))
	}
	r.mu.Unlock()
	res.Body = &cappedBody{capped: capped{from: res.Body, left: r.max}, Closer: res.Body}
	return res, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (r *recorder) CloseIdleConnections() { r.base.CloseIdleConnections() }

// wait is what the last answer asked for, or 0.
func (r *recorder) wait() time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.retryAfter
}

// retryAfter reads seconds, or a date in relation to the server's own clock. A
// busy server that names neither is given a minute.
func retryAfter(value, date string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	now, errNow := http.ParseTime(date)
	if err == nil && errNow == nil && at.After(now) {
		return at.Sub(now)
	}
	return time.Minute
}

// errTooMuch stops an answer that is over a limit.
var errTooMuch = errors.New("the answer is larger than the limit")

// capped reads at most left bytes and then fails, where io.LimitReader would
// pretend that the stream had ended.
type capped struct {
	from io.Reader
	left int64
}

// Read reads.
func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.from.Read(p)
	c.left -= int64(n)
	return n, err
}

type cappedBody struct {
	capped
	io.Closer
}
