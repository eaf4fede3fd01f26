package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pushback-dev/pushback/lab/dialtable"
	"github.com/pushback-dev/pushback/lab/serve"
)

// Options describe a gateway.
type Options struct {
	// Config is the first configuration; nil means none until one is posted.
	// It can't be combined with Route.
	Config *Config
	// Route, if set, names the HTTPRoute to obey.
	Route *RouteSource

	// Dial reaches backends; nil dials their addresses as they are.
	Dial dialtable.DialFunc
	// Log hears of backends that don't answer and of trouble with the route.
	Log *slog.Logger

	// Listen, Listener, OnListen and Grace are those of serve.Options.
	Listen   string
	Listener net.Listener
	OnListen func(net.Addr)
	Grace    time.Duration
	// Admin is where the admin API and the metrics are served. The zero value
	// means: on the gateway's own address, where the paths /admin/config, /metrics
	// and /-/ready are then not routed to backends.
	Admin AdminOptions
}

// AdminOptions are an address of its own for the admin API, by listen address or
// by listener.
type AdminOptions struct {
	Listen   string
	Listener net.Listener
	OnListen func(net.Addr)
}

// ErrTwoSources says that a gateway was given both a Config and an HTTPRoute.
var ErrTwoSources = errors.New("a gateway obeys an HTTPRoute or a configuration, not both")

// Run serves a gateway until ctx ends; requests in flight then finish within
// Grace. It returns early with an error if it can't listen or can't watch.
func Run(ctx context.Context, o Options) error {
	if o.Config != nil && o.Route != nil {
		return ErrTwoSources
	}
	g := NewGateway(o.Dial, o.Log)
	defer g.Close()
	if o.Config != nil {
		if err := g.Configure(*o.Config); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	httpRoute := ""
	if o.Route != nil {
		httpRoute = o.Route.Namespace + "/" + o.Route.Name
		group.Go(func() error { return g.Follow(ctx, *o.Route) })
	}
	admin := g.AdminHandler(httpRoute)
	var handler http.Handler = g
	if o.Admin.Listen == "" && o.Admin.Listener == nil {
		handler = adminFirst(admin, g)
	} else {
		group.Go(func() error {
			return serve.Run(ctx, admin, serve.Options{Listen: o.Admin.Listen, Listener: o.Admin.Listener, OnListen: o.Admin.OnListen})
		})
	}
	group.Go(func() error {
		return serve.Run(ctx, handler, serve.Options{Listen: o.Listen, Listener: o.Listener, OnListen: o.OnListen, Grace: o.Grace})
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// adminFirst keeps the gateway's own paths on the gateway's own address.
func adminFirst(admin, gateway http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.HasPrefix(p, "/admin/") || p == "/metrics" || p == "/-/ready" {
			admin.ServeHTTP(w, r)
			return
		}
		gateway.ServeHTTP(w, r)
	})
}
