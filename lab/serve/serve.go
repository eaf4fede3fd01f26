// Package serve runs one HTTP server of the lab until its context ends, and
// closes it so that no request is cut off. It imports nothing of the project.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// DefaultGrace is how long requests in flight may take to finish after the
// server was told to stop.
const DefaultGrace = 30 * time.Second

// Options say where a server listens and how it stops.
type Options struct {
	// Listen is the TCP address, "host:port"; port 0 picks a free one.
	// It is not used when Listener is set.
	Listen string
	// Listener is used as it is when set, and closed at the end.
	Listener net.Listener
	// OnListen, if set, is told the address before the first request is served.
	OnListen func(net.Addr)
	// OnStop, if set, is called once when the context has ended, before Drain.
	OnStop func()
	// Drain is how long the server goes on accepting requests after the context
	// has ended, so that load balancers can see that it is leaving. Default 0.
	Drain time.Duration
	// Grace bounds how long requests in flight may take to finish after Drain.
	// Default DefaultGrace.
	Grace time.Duration
}

// Run serves handler until ctx ends, then drains, lets the requests in flight
// finish and returns nil. It returns an error if it can't listen, if serving
// fails, or if requests were still running after Grace; those are then cut off.
func Run(ctx context.Context, handler http.Handler, o Options) error {
	listener := o.Listener
	if listener == nil {
		var err error
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen); err != nil {
			return fmt.Errorf("listen on %q: %w", o.Listen, err)
		}
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	if o.OnListen != nil {
		o.OnListen(listener.Addr())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	if o.OnStop != nil {
		o.OnStop()
	}
	return stop(server, served, o)
}

// stop ends the server. Its clock starts after ctx has ended, so that it can't
// use ctx for its own deadlines.
func stop(server *http.Server, served <-chan error, o Options) error {
	select {
	case err := <-served:
		return fmt.Errorf("serve while draining: %w", err)
	case <-time.After(o.Drain):
	}
	grace := o.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	deadline, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := server.Shutdown(deadline); err != nil {
		return fmt.Errorf("requests were still running %s after the stop: %w", grace, errors.Join(err, server.Close()))
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
