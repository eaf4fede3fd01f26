package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/world"
	"github.com/pushback-dev/pushback/lab/load"
)

// namespace that the shop lives in.
const namespace = "shop"

// show is the walk-through and what it runs in.
type show struct {
	settings settings
	world    *world.World
	repo     *world.Repo
	gateway  string
	timeline *timeline
	load     *load.Generator
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	weight  int32         // the canary's weight as last told
	atThis  load.Snapshot // the counters when it was seen
	version string        // the version that is the canary now
}

// newShow builds and starts everything (step 1).
func newShow(ctx context.Context, s settings) (*show, error) {
	out := newTimeline(os.Stdout)
	out.chapter("1. Build and start a control plane, a node, a Git repository, a gateway, Prometheus and the controller")
	built, err := world.New(ctx, world.Options{Dir: s.dir, Progress: os.Stdout})
	if err != nil {
		return nil, err
	}
	made := &show{settings: s, world: built, timeline: out}
	if err := made.prepare(ctx); err != nil {
		return nil, errors.Join(err, made.stop())
	}
	return made, nil
}

func (s *show) prepare(ctx context.Context) error {
	var err error
	if s.repo, err = world.InitRepo(ctx, s.world.Dir); err != nil {
		return err
	}
	if err := s.world.AddTenant(ctx, namespace); err != nil {
		return err
	}
	if err := s.world.Cluster.WriteKubeconfig(s.kubeconfig()); err != nil {
		return err
	}
	if s.gateway, err = s.world.StartGateway(namespace, "shop"); err != nil {
		return err
	}
	if err := s.world.StartController(ctx, "controller"); err != nil {
		return err
	}
	inside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.follow(inside)
	if s.load, err = load.New(load.Options{URL: s.gateway + "/", RPS: s.settings.rps}); err != nil {
		return err
	}
	s.timeline.say("started", "repository %s, gateway %s", s.repo.Bare, s.gateway)
	return nil
}

func (s *show) kubeconfig() string { return filepath.Join(s.world.Dir, "kubeconfig") }

// startLoad sends requests until the show stops.
func (s *show) startLoad() {
	ctx, cancel := context.WithCancel(context.Background())
	inner := s.cancel
	s.cancel = func() { cancel(); inner() }
	s.running.Go(func() {
		if err := s.load.Run(ctx); err != nil && ctx.Err() == nil {
			s.timeline.say("load", "the load generator ended: %v", err)
		}
	})
}

// noteWeight tells a new weight, and what share the version got under the last one.
func (s *show) noteWeight(weight int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if weight == s.weight || s.version == "" {
		return
	}
	now := s.load.Snapshot()
	if since := now.Since(s.atThis); s.weight > 0 && since.Answered > 0 {
		got := since.Of(s.version)
		s.timeline.say("share", "%s was asked to get %d%% and got %.1f%% of %d requests", s.version, s.weight,
			100*float64(got.Requests)/float64(since.Answered), since.Answered)
	}
	s.timeline.say("weight", "canary %d%%", weight)
	s.weight, s.atThis = weight, now
}

// stop ends everything.
func (s *show) stop() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.running.Wait()
	return s.world.Stop()
}

func (s *show) gitSync() *v1alpha1.GitSync {
	return &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: v1alpha1.GitSyncSpec{
			URL: s.repo.URL(), Ref: &v1alpha1.GitRef{Branch: s.repo.Branch}, Path: "deploy",
			Interval: metav1.Duration{Duration: time.Second}, TargetNamespace: namespace, Prune: true,
		},
	}
}

// explain says how to go on by hand.
func (s *show) explain() {
	cli := filepath.Join(s.world.Root, "bin", "pushback")
	fmt.Printf(`
Everything is still running. In another terminal:

  export KUBECONFIG=%s
  %s -n %s get shop -w                 # watch the rollout
  curl %s/                             # ask the shop through the gateway

  cd %s
  sed -i 's/--version=[a-z0-9]*/--version=v4/' deploy/shop.yaml
  git commit -am "Release shop v4" && git push

Ctrl-C ends it all.
`, s.kubeconfig(), cli, namespace, s.gateway, s.repo.Work)
}
