package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Deadlines of the waits: far more than they take, so that a busy machine doesn't
// fail the demo, and an end for one where something doesn't happen.
const (
	shortWait = 90 * time.Second
	longWait  = 4 * time.Minute
)

// walk is steps 2 to 5.
func (s *show) walk(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.first, s.good, s.bad, s.report} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// first commits v1 (step 2).
func (s *show) first(ctx context.Context) error {
	s.timeline.chapter("2. Commit v1: a first version has nothing to be compared with, so it takes no steps")
	shop, err := os.ReadFile(filepath.Join(s.world.Root, "manifests", "samples", "shop", "shop.yaml"))
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(shop), "image: "+sampleImage+"\n", "image: "+s.settings.image+"\n")
	if !strings.Contains(text, "image: "+s.settings.image+"\n") {
		return fmt.Errorf("the sample does not name the image %s", sampleImage)
	}
	if err := s.commit(ctx, "Add shop v1", text); err != nil {
		return err
	}
	if err := s.world.Client.Create(ctx, s.gitSync()); err != nil {
		return fmt.Errorf("creating the GitSync: %w", err)
	}
	limit := shortWait
	if s.settings.target != nil {
		limit = longWait // nodes pull the image first
	}
	if _, err := s.await(ctx, limit, "v1 to be Healthy", healthy); err != nil {
		return err
	}
	s.startLoad()
	return nil
}

// good pushes v2 (step 3).
func (s *show) good(ctx context.Context) error {
	s.timeline.chapter("3. Push v2: 25%%, analysis, 50%%, pause, analysis, promoted")
	before, err := s.await(ctx, shortWait, "v1 to be Healthy", healthy)
	if err != nil {
		return err
	}
	if err := s.push(ctx, "Release shop v2", "--version=v1", "--version=v2"); err != nil {
		return err
	}
	old := before.Status.StableRS
	after, err := s.await(ctx, longWait, "v2 to be promoted", func(o *v1alpha1.Rollout) (bool, error) {
		if o.Status.Abort {
			return false, fmt.Errorf("v2 was aborted: %s", o.Status.Message)
		}
		return o.Status.StableRS != old && o.Status.Phase == v1alpha1.RolloutPhaseHealthy, nil
	})
	if err != nil {
		return err
	}
	s.timeline.say("promoted", "v2 (%s) is stable", after.Status.StableRS)
	return nil
}

// bad pushes v3 (step 4).
func (s *show) bad(ctx context.Context) error {
	s.timeline.chapter("4. Push v3, whose every second request fails")
	stable, err := s.stablePods(ctx)
	if err != nil {
		return err
	}
	if err := s.push(ctx, "Release shop v3: faster checkout", "--version=v2\", \"--error-rate=0\"", "--version=v3\", \"--error-rate=0.5\""); err != nil {
		return err
	}
	bad, err := s.repo.Head(ctx)
	if err != nil {
		return err
	}
	degraded, err := s.await(ctx, longWait, "v3 to fail its analysis", func(o *v1alpha1.Rollout) (bool, error) {
		return o.Status.Abort && o.Status.Phase == v1alpha1.RolloutPhaseDegraded, nil
	})
	if err != nil {
		return err
	}
	for _, want := range []string{"success-rate", "failureLimit"} {
		if !strings.Contains(degraded.Status.Message, want) {
			return fmt.Errorf("the message of the abort does not name %s: %q", want, degraded.Status.Message)
		}
	}
	if _, err := s.await(ctx, shortWait, "the revert to be pushed and the Rollout to be Healthy again", healthy); err != nil {
		return err
	}
	return s.checkRevert(ctx, bad, stable)
}

// checkRevert looks at what the revert left: Git as it was before v3, and every
// stable pod untouched.
func (s *show) checkRevert(ctx context.Context, bad string, stable []string) error {
	head, err := s.repo.Head(ctx)
	if err != nil {
		return err
	}
	if head == bad {
		return fmt.Errorf("the branch still ends with the bad commit %s", bad)
	}
	before, err := s.repo.Read(ctx, "deploy/shop.yaml")
	if err != nil {
		return err
	}
	if !strings.Contains(before, `"--version=v2", "--error-rate=0"`) {
		return fmt.Errorf("the reverted file does not declare v2:\n%s", before)
	}
	now, err := s.stablePods(ctx)
	if err != nil {
		return err
	}
	if strings.Join(now, " ") != strings.Join(stable, " ") {
		return fmt.Errorf("stable pods were touched: before %v, after %v", stable, now)
	}
	s.timeline.say("untouched", "the %d pods of v2 are the ones from before, with no restart", len(stable))
	return nil
}

// stablePods are the stable version's pods with their restart counts.
func (s *show) stablePods(ctx context.Context) ([]string, error) {
	rollout := &v1alpha1.Rollout{}
	if err := s.world.Client.Get(ctx, shopKey, rollout); err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := s.world.Client.List(ctx, &pods, client.InNamespace(namespace),
		client.MatchingLabels{v1alpha1.TemplateHashLabel: rollout.Status.StableRS}); err != nil {
		return nil, err
	}
	var out []string
	for _, pod := range pods.Items {
		restarts := int32(0)
		for _, status := range pod.Status.ContainerStatuses {
			restarts += status.RestartCount
		}
		out = append(out, fmt.Sprintf("%s/%s:%d", pod.Name, pod.UID, restarts))
	}
	sort.Strings(out)
	return out, nil
}

// report prints what is left in Git, and what v3 cost (step 5).
func (s *show) report(ctx context.Context) error {
	s.timeline.chapter("5. What Git says now, and what v3 cost")
	text, err := s.repo.Log(ctx, "-1", "--stat", "-p", s.repo.Branch)
	if err != nil {
		return err
	}
	fmt.Println(text)
	total := s.load.Snapshot()
	v3 := total.Of("v3")
	fmt.Printf("%d requests in %.0f s; %d met v3 (%.1f%%), %d of them failed\n", total.Answered, total.Seconds,
		v3.Requests, 100*float64(v3.Requests)/float64(max(total.Answered, 1)), v3.Errors)
	if lost := total.Of("none"); lost.Requests > 0 {
		fmt.Printf("%d requests reached no version %v: %s\n", lost.Requests, lost.Codes, total.LastError)
	}
	if v3.Requests == 0 || v3.Errors == 0 {
		return fmt.Errorf("no request met v3: nothing was shown")
	}
	return nil
}

var shopKey = types.NamespacedName{Namespace: namespace, Name: "shop"}

func healthy(o *v1alpha1.Rollout) (bool, error) {
	return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.ObservedGeneration == o.Generation, nil
}

// push changes the shop's file.
func (s *show) push(ctx context.Context, subject, before, after string) error {
	text, err := s.repo.Read(ctx, "deploy/shop.yaml")
	if err != nil {
		return err
	}
	if !strings.Contains(text, before) {
		return fmt.Errorf("deploy/shop.yaml does not hold %s", before)
	}
	return s.commit(ctx, subject, strings.Replace(text, before, after, 1))
}

func (s *show) commit(ctx context.Context, subject, content string) error {
	commit, err := s.repo.Commit(ctx, subject, map[string][]byte{"deploy/shop.yaml": []byte(content)})
	if err != nil {
		return err
	}
	s.timeline.say("commit", "%s  %s", commit[:7], subject)
	return nil
}

// await waits until the Rollout is as wanted.
func (s *show) await(ctx context.Context, limit time.Duration, what string, want func(*v1alpha1.Rollout) (bool, error)) (*v1alpha1.Rollout, error) {
	rollout := &v1alpha1.Rollout{}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		select {
		case failed := <-s.world.Failed():
			return false, failed
		default:
		}
		if err := s.world.Client.Get(ctx, shopKey, rollout); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return want(rollout)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("waited %s in vain for %s: the Rollout is %q with the message %q; the controller's log is %s",
			limit, what, rollout.Status.Phase, rollout.Status.Message, s.world.ControllerLog("controller"))
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for %s: %w", what, err)
	}
	return rollout, nil
}
