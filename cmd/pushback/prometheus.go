package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/pushback-dev/pushback/lab/prom"
)

type prometheusFlags struct {
	listen    string
	scrape    []string
	interval  time.Duration
	dir       string
	pods      bool
	kube      kubeFlags
	dialTable string
	verbose   bool
}

func newPrometheusCommand() *cobra.Command {
	var f prometheusFlags
	cmd := &cobra.Command{
		Use:   "prometheus [--scrape URL,...] [--pods]",
		Short: "Run a local Prometheus API over the real TSDB and PromQL engine",
		Long: `prometheus scrapes targets, with the scraper of Prometheus, into its TSDB and
answers its query API with its PromQL engine:

  /api/v1/query, /api/v1/query_range   GET and POST
  /-/ready

With --pods it also scrapes the pods of a namespace that have the annotation
prometheus.io/scrape: "true", at prometheus.io/port and prometheus.io/path. Their
series carry the labels namespace, pod and template_hash.`,
		Example: `  pushback prometheus --scrape http://localhost:8080,http://localhost:8000/metrics
  pushback prometheus --pods --namespace shop --kubeconfig kubeconfig
  pushback query http://localhost:9090 'sum by (version, code) (rate(http_requests_total[10s]))'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", ":9090", "address to listen on")
	flags.StringSliceVar(&f.scrape, "scrape", nil, "URLs to scrape; without a path, /metrics is meant")
	flags.DurationVar(&f.interval, "interval", prom.DefaultInterval, "how often each target is scraped")
	flags.StringVar(&f.dir, "dir", "", "directory of the TSDB (default a temporary one)")
	flags.BoolVar(&f.pods, "pods", false, "scrape annotated pods")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log failed scrapes")
	f.kube.register(flags)
	registerDialTable(flags, &f.dialTable)
	return cmd
}

func (f *prometheusFlags) run(cmd *cobra.Command) error {
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	o := prom.Options{Interval: f.interval, Dir: f.dir, Log: log}
	for _, url := range f.scrape {
		o.Targets = append(o.Targets, prom.Target{URL: url})
	}
	switch {
	case f.pods:
		rest, namespace, err := f.kube.connect()
		if err != nil {
			return err
		}
		o.Pods = &prom.PodSource{REST: rest, Namespace: namespace}
	case f.kube.used():
		return errors.New("--namespace, --kubeconfig and --context are for --pods, which is not given")
	case len(f.scrape) == 0:
		return errors.New("there is nothing to scrape: give --scrape URL or --pods")
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	o.Dial = followDialTable(ctx, f.dialTable, log)
	return prom.Run(ctx, o, prom.ListenOptions{Listen: f.listen, OnListen: func(address net.Addr) {
		fmt.Fprintf(cmd.OutOrStdout(), "Prometheus API listens on %s\n", address)
	}})
}
