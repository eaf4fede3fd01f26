package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	options := world.Options{Dir: s.dir, Progress: os.Stdout}
	if s.target != nil {
		out.chapter("1. Build the controller, prepare the cluster, and start a Git repository, a gateway, Prometheus and the controller")
		s.target.announce(s.keep)
		options.Existing = s.target.existing(s.keep)
	} else {
		out.chapter("1. Build and start a control plane, a node, a Git repository, a gateway, Prometheus and the controller")
	}
	built, err := world.New(ctx, options)
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
	if s.settings.target == nil {
		if err := s.world.Cluster.WriteKubeconfig(s.kubeconfig()); err != nil {
			return err
		}
	}
	if s.gateway, err = s.world.StartGateway(namespace, "shop"); err != nil {
		return err
	}
	if s.load, err = load.New(load.Options{URL: s.gateway + "/", RPS: s.settings.rps}); err != nil {
		return err
	}
	if err := s.world.StartController(ctx, "controller"); err != nil {
		return err
	}
	inside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.follow(inside)
	s.timeline.say("started", "repository %s, gateway %s", s.repo.Bare, s.gateway)
	return nil
}

// kubeconfig is the path of the cluster's kubeconfig: the user's own with --cluster.
func (s *show) kubeconfig() string {
	if s.settings.target != nil {
		return os.Getenv("KUBECONFIG")
	}
	return filepath.Join(s.world.Dir, "kubeconfig")
}

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
func (s *show) noteWeight(o *v1alpha1.Rollout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	weight, done := o.Status.Canary.Weights.Canary.Weight, o.Status.StableRS == o.Status.CurrentPodHash
	if s.weight == weight {
		if !done && weight == 0 {
			s.version = declaredVersion(o)
		}
		return
	}
	now := s.load.Snapshot()
	if since := now.Since(s.atThis); s.weight > 0 && since.Answered > 0 {
		got := since.Of(s.version)
		s.timeline.say("share", "%s was asked to get %d%% and got %.1f%% of %d requests", s.version, s.weight,
			100*float64(got.Requests)/float64(since.Answered), since.Answered)
	}
	switch {
	case weight == 0 && done:
		s.timeline.say("weight", "stable 100%%: %s is the stable version now", declaredVersion(o))
	case weight == 0:
		s.timeline.say("weight", "canary 0%%: all traffic is back at the stable version")
	default:
		s.version = declaredVersion(o)
		s.timeline.say("weight", "canary %d%%", weight)
	}
	s.weight, s.atThis = weight, now
}

var versionArgument = regexp.MustCompile(`--version=([A-Za-z0-9.-]+)`)

// declaredVersion is what the Rollout's template tells the shop to call itself.
func declaredVersion(o *v1alpha1.Rollout) string {
	if o.Spec.Template != nil {
		if found := versionArgument.FindSubmatch(o.Spec.Template.Raw); found != nil {
			return string(found[1])
		}
	}
	return "the new version"
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
	budget := int32(100)
	return &v1alpha1.GitSync{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: v1alpha1.GitSyncSpec{
			URL: s.repo.URL(), Ref: &v1alpha1.GitRef{Branch: s.repo.Branch}, Path: "deploy",
			Interval: metav1.Duration{Duration: time.Second}, TargetNamespace: namespace, Prune: true,
			// the default of 3 a day would be spent by a person who plays with --keep
			Revert: &v1alpha1.RevertSpec{Budget: &v1alpha1.RevertBudget{PerRollout: &budget, PerRepository: &budget}},
		},
	}
}

// linger says how to go on by hand and waits for Ctrl-C.
func (s *show) linger(ctx context.Context) error {
	// The revert is in the repository; without it the first push by hand would be refused.
	if err := s.repo.Pull(ctx); err != nil {
		return err
	}
	instructions := s.instructions()
	fmt.Print(instructions)
	if s.settings.kept != nil {
		s.settings.kept(instructions)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.world.Failed():
		return err
	}
}

// instructions say how to go on by hand.
func (s *show) instructions() string {
	end := "Ctrl-C ends it all."
	if s.settings.target != nil {
		end = "Ctrl-C ends what runs on this machine. What is on the cluster stays until the next run of the demo."
	}
	return fmt.Sprintf(`
Everything is still running, and this timeline goes on. In another terminal:

  export KUBECONFIG=%[1]s
  curl %[4]s/              # ask the shop through the gateway
  %[2]s -n %[3]s get shop -w    # watch the rollout

A good version:

  cd %[5]s
  sed -i 's/--version=[a-z0-9]*/--version=v4/' deploy/shop.yaml
  git commit -am "Release shop v4" && git push

A bad one, which Pushback reverts (git pull shows it):

  sed -i 's/--version=[a-z0-9]*/--version=v5/; s/--error-rate=[0-9.]*/--error-rate=0.5/' deploy/shop.yaml
  git commit -am "Release shop v5" && git push

%[6]s
`, s.kubeconfig(), filepath.Join(s.world.Root, "bin", "pushback"), namespace, s.gateway, s.repo.Work, end)
}
