package prom

import (
	"context"
	"errors"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/pushback-dev/pushback/lab/serve"
)

// Run opens a Server, scrapes, and serves its API until ctx ends.
func Run(ctx context.Context, o Options, listen ListenOptions) error {
	s, err := Open(o)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.Run(ctx) })
	group.Go(func() error {
		return serve.Run(ctx, s.Handler(), serve.Options{Listen: listen.Listen, Listener: listen.Listener, OnListen: listen.OnListen})
	})
	return errors.Join(group.Wait(), s.Close())
}

// ListenOptions are those of serve.Options.
type ListenOptions struct {
	Listen   string
	Listener net.Listener
	OnListen func(net.Addr)
}
