package node

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func TestBackoffOfRuns(t *testing.T) {
	b := Backoff{Initial: 10 * time.Second, Max: 60 * time.Second, Reset: 10 * time.Minute}
	var d delay
	var got []time.Duration
	for _, ran := range []time.Duration{0, time.Second, 0, 0, 0, 0, 10 * time.Minute, 0} {
		got = append(got, d.afterRun(b, ran)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{0, 10, 20, 40, 60, 60, 0, 10}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
	d, got = delay{}, nil
	for range 4 {
		got = append(got, d.afterFailure(b)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{10, 20, 40, 60}, got); diff != "" {
		t.Errorf("seconds of attempts (-want +got):\n%s", diff)
	}
}

func TestPoolNeverGivesAnAddressTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := newPool(netip.MustParsePrefix("10.244.0.0/28"))
		if err != nil {
			t.Fatal(err)
		}
		held := map[netip.Addr]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "release") {
				for a := range held {
					p.release(a)
					delete(held, a)
					break
				}
				continue
			}
			a, err := p.take()
			if len(held) == 15 {
				if !errors.Is(err, ErrNoAddress) {
					t.Fatalf("err = %v with all of the range in use", err)
				}
				continue
			}
			if err != nil || held[a] || !p.whole.Contains(a) || a == p.whole.Addr() {
				t.Fatalf("took %s (%v) while %v are held", a, err, held)
			}
			held[a] = true
		}
	})
}

func TestPoolKeepsReserved(t *testing.T) {
	p, err := newPool(netip.MustParsePrefix("10.0.0.0/30"))
	if err != nil {
		t.Fatal(err)
	}
	p.reserve(netip.MustParseAddr("10.0.0.1"))
	p.reserve(netip.MustParseAddr("192.168.0.1"))
	for _, want := range []string{"10.0.0.2", "10.0.0.3"} {
		if got, err := p.take(); err != nil || got.String() != want {
			t.Errorf("took %s, %v; want %s", got, err, want)
		}
	}
}

func TestBehaviourOfTags(t *testing.T) {
	for image, want := range map[string]behaviour{
		"app":                                  {},
		"app:v1":                               {},
		"app:never-ready":                      {kind: "never-ready"},
		"localhost:5000/app:v2-crash":          {kind: "crash"},
		"localhost:5000/crash":                 {},
		"app:pull-error@sha256:0123":           {kind: "pull-error"},
		"app:v2-ready-after-3s":                {kind: "ready", after: 3 * time.Second, timed: true},
		"app:unready-after-1.5s":               {kind: "unready", after: 1500 * time.Millisecond, timed: true},
		"app:crash-after-500ms":                {kind: "crash", after: 500 * time.Millisecond, timed: true},
		"app:complete":                         {kind: "complete"},
		"app:complete-after-2m":                {kind: "complete", after: 2 * time.Minute, timed: true},
		"app:gcrash":                           {},
		"app:crash-after-1.2.3s":               {},
		"app:config-error":                     {kind: "config-error"},
		"app:v9-stubborn":                      {kind: "stubborn"},
		"registry.example/team/app:stubborn-1": {},
	} {
		if got := behaviourOf(image); got != want {
			t.Errorf("%s: %+v, want %+v", image, got, want)
		}
	}
}

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"app": "app", "app:v1": "app", "localhost:5000/app": "localhost:5000/app", "localhost:5000/app:v1": "localhost:5000/app",
		"ghcr.io/pushback-dev/pushback:v1@sha256:ab": "ghcr.io/pushback-dev/pushback", "app@sha256:ab": "app",
	} {
		if got := repository(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestPhase(t *testing.T) {
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ended := func(code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	creating := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	looping := corev1.ContainerStatus{State: creating.State, LastTerminationState: ended(1).State}
	for name, tc := range map[string]struct {
		policy     corev1.RestartPolicy
		containers []corev1.ContainerStatus
		want       corev1.PodPhase
	}{
		"creating":              {corev1.RestartPolicyAlways, []corev1.ContainerStatus{running, creating}, corev1.PodPending},
		"running":               {corev1.RestartPolicyAlways, []corev1.ContainerStatus{running, ended(1)}, corev1.PodRunning},
		"crash loop":            {corev1.RestartPolicyAlways, []corev1.ContainerStatus{looping}, corev1.PodRunning},
		"always ends never":     {corev1.RestartPolicyAlways, []corev1.ContainerStatus{ended(0)}, corev1.PodRunning},
		"all completed":         {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{ended(0), ended(0)}, corev1.PodSucceeded},
		"on failure, to repeat": {corev1.RestartPolicyOnFailure, []corev1.ContainerStatus{ended(0), ended(1)}, corev1.PodRunning},
		"never, one failed":     {corev1.RestartPolicyNever, []corev1.ContainerStatus{ended(0), ended(1)}, corev1.PodFailed},
		"never, one runs":       {corev1.RestartPolicyNever, []corev1.ContainerStatus{running, ended(1)}, corev1.PodRunning},
	} {
		t.Run(name, func(t *testing.T) {
			if got := phase(tc.policy, tc.containers); got != tc.want {
				t.Errorf("phase = %s, want %s", got, tc.want)
			}
		})
	}
}
