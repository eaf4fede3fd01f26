package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pushback-dev/pushback/lab/load"
	"github.com/pushback-dev/pushback/lab/serve"
)

type loadFlags struct {
	options load.Options
	report  load.Report
	headers []string
	output  outputFlag
	metrics string
}

func newLoadCommand() *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load URL",
		Short: "Send requests at a fixed rate and count shares and errors by version",
		Long: `load sends GET requests at a fixed rate, each on a connection of its own, and
prints each interval how many went to which version (by the header X-App-Version)
and how many of them failed; at the end, or on Ctrl-C, the total.

Requests are sent on time however long answers take. Errors are answers of 500 and
above, and requests without an answer. The exit status is 1 if not one request was
answered.`,
		Example: `  pushback load http://localhost:8000/ --rps 50 --duration 30s
  pushback load http://localhost:8000/ --rps 10 -H 'X-Canary: always'
  pushback load http://localhost:8000/ --rps 100 --requests 1000 -o json | tail -1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.options.URL = args[0]
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.options.RPS, "rps", 10, "requests a second")
	flags.DurationVar(&f.options.Duration, "duration", 0, "how long to send (default until interrupted)")
	flags.Int64Var(&f.options.Requests, "requests", 0, "how many to send (default without end)")
	flags.DurationVar(&f.report.Interval, "interval", 0, "how often a line is printed (default 1s)")
	flags.DurationVar(&f.options.Timeout, "timeout", load.DefaultTimeout, "how long one request may take")
	flags.IntVar(&f.options.MaxInFlight, "max-in-flight", load.DefaultMaxInFlight, "requests that may wait for an answer together")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, `header to send, "Name: value"; can be repeated`)
	flags.StringVar(&f.metrics, "metrics", "", "address to serve /metrics on, if wanted")
	f.output.register(cmd, formatJSON)
	return cmd
}

func (f *loadFlags) run(cmd *cobra.Command) error {
	f.options.Header = http.Header{}
	for _, line := range f.headers {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf(`--header %q is not of the form "Name: value"`, line)
		}
		f.options.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	f.report.Out, f.report.JSON = cmd.OutOrStdout(), f.output.json()
	generator, err := load.New(f.options)
	if err != nil {
		return err
	}
	if f.metrics == "" {
		return generator.RunAndReport(cmd.Context(), f.report)
	}
	group, ctx := errgroup.WithContext(cmd.Context())
	ctx, stop := context.WithCancel(ctx)
	group.Go(func() error {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", generator.MetricsHandler())
		return serve.Run(ctx, mux, serve.Options{Listen: f.metrics, OnListen: func(address net.Addr) {
			fmt.Fprintf(cmd.ErrOrStderr(), "metrics listen on %s\n", address)
		}})
	})
	group.Go(func() error {
		defer stop()
		return generator.RunAndReport(ctx, f.report)
	})
	return group.Wait()
}
