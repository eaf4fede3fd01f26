// Package prom is a local Prometheus: it scrapes targets into the TSDB of
// github.com/prometheus/prometheus with that project's own scraper, and answers
// queries with its PromQL engine, in its JSON. What is made here is the wiring, so
// that a query that works here works on a Prometheus.
//
// It may import Prometheus' packages and client-go, and nothing of the project but
// the lab.
package prom

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"golang.org/x/sync/errgroup"

	"github.com/pushback-dev/pushback/lab/dialtable"
)

const (
	// DefaultInterval is how often a target is scraped.
	DefaultInterval = 500 * time.Millisecond
	// MinInterval is the shortest interval that is accepted.
	MinInterval = 50 * time.Millisecond

	// queryTimeout and maxSamples are Prometheus' own defaults.
	queryTimeout = 2 * time.Minute
	maxSamples   = 50_000_000

	// targetsReload is how soon a changed list of targets is acted on.
	targetsReload = 100 * time.Millisecond

	targetsJob = "targets"
	podsJob    = "pods"
)

// Options describe a Server.
type Options struct {
	// Interval is how often every target is scraped. Default DefaultInterval,
	// at least MinInterval. It is also the timeout of a scrape, up to 10 s.
	Interval time.Duration
	// Dir holds the TSDB, and keeps it afterwards. Empty means a temporary
	// directory that Close removes.
	Dir string
	// Targets are scraped from the start; SetTargets changes them.
	Targets []Target
	// Pods, if set, adds the annotated pods of a namespace.
	Pods *PodSource
	// Dial reaches targets; nil dials their addresses as they are.
	Dial dialtable.DialFunc
	// Log hears of failed scrapes (level debug) and of other trouble.
	Log *slog.Logger
}

// Server scrapes and answers. Make it with Open.
type Server struct {
	log     *slog.Logger
	dir     string
	tempDir bool
	pods    *PodSource
	db      *tsdb.DB
	engine  *promql.Engine
	scraper *scrape.Manager

	mu      sync.Mutex
	groups  map[string][]*targetgroup.Group // by job
	changed chan struct{}                   // one token stands for many changes
}

// Open opens the TSDB and prepares the scraper and the engine; nothing is
// scraped before Run. The Server must be closed.
func Open(o Options) (*Server, error) {
	s := &Server{
		log: o.Log, dir: o.Dir, pods: o.Pods,
		groups: map[string][]*targetgroup.Group{}, changed: make(chan struct{}, 1),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.SetTargets(o.Targets); err != nil {
		return nil, err
	}
	cfg, err := scrapeConfig(o.Interval)
	if err != nil {
		return nil, err
	}
	if err := s.openTSDB(); err != nil {
		return nil, err
	}
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger: s.log, MaxSamples: maxSamples, Timeout: queryTimeout,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Duration(cfg.GlobalConfig.EvaluationInterval).Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	if err := s.openScraper(o.Dial, cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) openTSDB() error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "pushback-prometheus-")
		if err != nil {
			return fmt.Errorf("directory for the TSDB: %w", err)
		}
		s.dir, s.tempDir = dir, true
	}
	db, err := tsdb.Open(s.dir, s.log, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		err = fmt.Errorf("open the TSDB in %s: %w", s.dir, err)
		if s.tempDir {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
		return err
	}
	s.db = db
	return nil
}

func (s *Server) openScraper(dial dialtable.DialFunc, cfg *config.Config) error {
	options := scrape.Options{
		DiscoveryReloadInterval:  model.Duration(targetsReload),
		DiscoveryReloadOnStartup: true,
	}
	if dial != nil {
		options.HTTPClientOptions = append(options.HTTPClientOptions,
			commonconfig.WithDialContextFunc(commonconfig.DialContextFunc(dial)))
	}
	// The scraper's own metrics go to a registry that nobody reads, as two
	// servers in one process would collide in the default one.
	scraper, err := scrape.NewManager(&options, s.log, nil, nil, s.db, prometheus.NewRegistry())
	if err != nil {
		return fmt.Errorf("prepare the scraper: %w", err)
	}
	if err := scraper.ApplyConfig(cfg); err != nil {
		return fmt.Errorf("configure the scraper: %w", err)
	}
	s.scraper = scraper
	return nil
}

// scrapeConfig goes through Prometheus' own loader, so that all that is not said
// here has Prometheus' defaults.
func scrapeConfig(interval time.Duration) (*config.Config, error) {
	if interval == 0 {
		interval = DefaultInterval
	}
	if interval < MinInterval {
		return nil, fmt.Errorf("the scrape interval is %s; the least is %s", interval, MinInterval)
	}
	text := fmt.Sprintf(`
global: {scrape_interval: %[1]s, scrape_timeout: %[2]s, evaluation_interval: %[1]s}
scrape_configs:
- {job_name: %[3]s, fallback_scrape_protocol: PrometheusText0.0.4}
- {job_name: %[4]s, fallback_scrape_protocol: PrometheusText0.0.4}
`, milliseconds(interval), milliseconds(min(interval, 10*time.Second)), targetsJob, podsJob)
	cfg, err := config.Load(text, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("scrape configuration: %w", err)
	}
	return cfg, nil
}

func milliseconds(d time.Duration) model.Duration { return model.Duration(d.Round(time.Millisecond)) }

// Run scrapes until ctx ends. It can be called once.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	sets := make(chan map[string][]*targetgroup.Group)
	group.Go(func() error { return s.scraper.Run(sets) })
	group.Go(func() error {
		defer s.scraper.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-s.changed:
			}
			select {
			case <-ctx.Done():
				return nil
			case sets <- s.targetGroups():
			}
		}
	})
	if s.pods != nil {
		group.Go(func() error { return s.followPods(ctx) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("scrape: %w", err)
	}
	return nil
}

// Close closes the TSDB, and removes it if it was temporary. Run must have ended.
func (s *Server) Close() error {
	err := errors.Join(s.db.Close(), s.engine.Close())
	if s.tempDir {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
