package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func phase(phase v1alpha1.RolloutPhase, message string) func(*v1alpha1.Rollout) {
	return func(o *v1alpha1.Rollout) {
		inCanary(o)
		o.Status.Phase, o.Status.Message = phase, message
	}
}

func TestStatusExitsByPhase(t *testing.T) {
	unobserved := func(o *v1alpha1.Rollout) {
		phase(v1alpha1.RolloutPhaseHealthy, "")(o)
		o.Generation = 2
	}
	tests := map[string]struct {
		status func(*v1alpha1.Rollout)
		watch  bool
		format string
		code   int
		want   string
	}{
		"Healthy":          {status: phase(v1alpha1.RolloutPhaseHealthy, ""), watch: true, want: "Healthy      step 1/3     weight  25\n"},
		"Healthy, by name": {status: phase(v1alpha1.RolloutPhaseHealthy, ""), watch: true, format: formatName, want: "rollout.pushback.dev/shop\n"},
		"Healthy, as YAML": {status: phase(v1alpha1.RolloutPhaseHealthy, ""), watch: true, format: formatYAML, want: "phase: Healthy\nstep: 1/3\nweight: 25\n"},
		"Healthy, wide": {status: phase(v1alpha1.RolloutPhaseHealthy, ""), watch: true, format: formatWide,
			want: "Healthy      step 1/3     weight  25  commit -        template -\n"},
		"Degraded":       {status: phase(v1alpha1.RolloutPhaseDegraded, "failed"), watch: true, code: 1, want: "Degraded     step 1/3     weight  25  failed\n"},
		"Degraded, once": {status: phase(v1alpha1.RolloutPhaseDegraded, "failed"), code: 1, want: "Degraded     step 1/3     weight  25  failed\n"},
		"Paused, once":   {status: phase(v1alpha1.RolloutPhasePaused, "waits"), want: "Paused       step 1/3     weight  25  waits\n"},
		"Paused, for ever": {status: phase(v1alpha1.RolloutPhasePaused, "waits"), watch: true, code: 2,
			want: "Paused       step 1/3     weight  25  waits\n"},
		"an outcome of an older spec": {status: unobserved, watch: true, code: 2,
			want: "Progressing  step -       weight   0  waiting for the controller to see the latest spec\n"},
		"never looked at": {status: func(*v1alpha1.Rollout) {}, watch: true, code: 2,
			want: "Progressing  step -       weight   0  the controller has not looked at it yet\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			var out bytes.Buffer
			err := watchStatus(ctx, &out, undisturbed(t, shop(tt.status)), shopKey, tt.watch, outputFlag{format: tt.format})
			if got := codeOf(err); got != tt.code {
				t.Errorf("exit code %d (%v), want %d", got, err, tt.code)
			}
			if out.String() != tt.want {
				t.Errorf("said %q, want %q", out.String(), tt.want)
			}
		})
	}
}

// undisturbed reads even when the context is over, so that a slow machine can't
// end the wait before the first read.
func undisturbed(t *testing.T, o *v1alpha1.Rollout) client.Client {
	t.Helper()
	return interceptor.NewClient(cluster(t, o), interceptor.Funcs{
		Get: func(_ context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return c.Get(context.Background(), key, object, options...)
		},
	})
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return exitCode(err)
}

func TestStatusPrintsEachChangeOnce(t *testing.T) {
	reads := 0
	c := interceptor.NewClient(cluster(t, shop(inCanary)), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := c.Get(ctx, key, object, options...); err != nil {
				return err
			}
			if reads++; reads > 2 {
				object.(*v1alpha1.Rollout).Status.Phase = v1alpha1.RolloutPhaseHealthy
			}
			return nil
		},
	})
	var out bytes.Buffer
	if err := watchStatus(t.Context(), &out, c, shopKey, true, outputFlag{format: formatJSON}); err != nil {
		t.Fatal(err)
	}
	want := `{"phase":"Paused","step":"1/3","weight":25,"message":"CanaryPauseStep"}
{"phase":"Healthy","step":"1/3","weight":25,"message":"CanaryPauseStep"}
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestStatusEndsByContext(t *testing.T) {
	broken := errors.New("connection refused")
	failing := interceptor.NewClient(cluster(t), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return errors.Join(broken, ctx.Err())
		},
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	tests := map[string]struct {
		ctx  context.Context
		code int
	}{
		"interrupted":        {ctx: over, code: 130},
		"the timeout passed": {ctx: late, code: 2},
		"unreachable":        {ctx: t.Context(), code: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := watchStatus(tt.ctx, &bytes.Buffer{}, failing, shopKey, true, outputFlag{})
			if got := codeOf(err); got != tt.code {
				t.Errorf("exit code %d (%v), want %d", got, err, tt.code)
			}
			if tt.code == 1 && !errors.Is(err, broken) {
				t.Errorf("%v does not wrap the cause", err)
			}
		})
	}
}
