package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/lab/proxy"
)

type proxyFlags struct {
	listen, admin, config, httpRoute, gateway string
	kube                                      kubeFlags
	dialTable                                 string
}

func newProxyCommand() *cobra.Command {
	var f proxyFlags
	cmd := &cobra.Command{
		Use:   "proxy [--config FILE | --httproute NAME]",
		Short: "Run a gateway that splits requests over versions exactly",
		Long: `proxy is an HTTP gateway. The split is exact and not random: with weights 25
and 75, any 100 requests in a row are 25 and 75.

It takes its backends from POST /admin/config (the first ones from --config), and
then a request with the header "X-Canary: always" goes to the backend named canary.
Or it obeys an HTTPRoute of the Gateway API: matches, header modifiers, timeouts and
weights, over the ready endpoints of the Services, and reports in the route's status
which generation it serves. What it can't honour it answers with 500 and says so in
that status.

  /admin/config  GET shows the routes, POST replaces them
  /metrics       http_requests_total and http_request_duration_seconds by code
                 and version, gateway_requests_total by backend and code
  /-/ready       200 once there are routes

These paths are not routed to backends, unless --admin gives them an address of
their own.`,
		Example: `  pushback proxy --listen :8000
  curl localhost:8000/admin/config -d '{"backends":[
    {"name":"stable","url":"http://127.0.0.1:8081","weight":75},
    {"name":"canary","url":"http://127.0.0.1:8082","weight":25}]}'
  curl -H 'X-Canary: always' localhost:8000/
  pushback proxy --httproute shop --namespace shop --gateway lab --admin :8001`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", ":8000", "address to listen on")
	flags.StringVar(&f.admin, "admin", "", "address for the admin API and the metrics, if they shall have one of their own")
	flags.StringVar(&f.config, "config", "", "file with the first configuration, as /admin/config takes it")
	flags.StringVar(&f.httpRoute, "httproute", "", "name of the HTTPRoute to obey")
	flags.StringVar(&f.gateway, "gateway", "", "name of the Gateway that this is for the route's parentRefs (default any)")
	f.kube.register(flags)
	registerDialTable(flags, &f.dialTable)
	cmd.MarkFlagsMutuallyExclusive("config", "httproute")
	return cmd
}

func (f *proxyFlags) run(cmd *cobra.Command) error {
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	o := proxy.Options{
		Listen: f.listen, Log: log, Admin: proxy.AdminOptions{Listen: f.admin},
		OnListen: func(address net.Addr) { fmt.Fprintf(cmd.OutOrStdout(), "gateway listens on %s\n", address) },
	}
	o.Admin.OnListen = func(address net.Addr) {
		fmt.Fprintf(cmd.OutOrStdout(), "admin API and metrics listen on %s\n", address)
	}
	if err := f.source(&o); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	o.Dial = followDialTable(ctx, f.dialTable, log)
	return proxy.Run(ctx, o)
}

func (f *proxyFlags) source(o *proxy.Options) error {
	switch {
	case f.config != "":
		text, err := os.ReadFile(f.config)
		if err != nil {
			return fmt.Errorf("--config: %w", err)
		}
		config, err := proxy.ParseConfig(text)
		if err != nil {
			return fmt.Errorf("--config %s: %w", f.config, err)
		}
		o.Config = &config
	case f.httpRoute != "":
		rest, namespace, err := f.kube.connect()
		if err != nil {
			return err
		}
		o.Route = &proxy.RouteSource{REST: rest, Namespace: namespace, Name: f.httpRoute, Gateway: f.gateway}
	case f.gateway != "" || f.kube.used():
		return errors.New("--gateway, --namespace, --kubeconfig and --context are for --httproute, which is not given")
	}
	return nil
}
