package plan_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

var start = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

func setWeight(w int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &w} }

func pause(seconds int) v1alpha1.CanaryStep {
	if seconds == 0 {
		return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{}}
	}
	return v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: ptr(intstr.FromInt32(int32(seconds)))}}
}

func analyse() v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{Analysis: &v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "success-rate"}}}}
}

func background(from int32) *v1alpha1.RolloutAnalysisBackground {
	return &v1alpha1.RolloutAnalysisBackground{RolloutAnalysis: *analyse().Analysis, StartingStep: &from}
}

// headerRoute and mirrorRoute remove the route for a value of "".
func headerRoute(name, value string) v1alpha1.CanaryStep {
	step := &v1alpha1.SetHeaderRoute{Name: name}
	if value != "" {
		step.Match = []v1alpha1.HeaderRoutingMatch{{HeaderName: "X-Tester", HeaderValue: &v1alpha1.StringMatch{Exact: value}}}
	}
	return v1alpha1.CanaryStep{SetHeaderRoute: step}
}

func mirrorRoute(name, path string) v1alpha1.CanaryStep {
	step := &v1alpha1.SetMirrorRoute{Name: name}
	if path != "" {
		step.Match = []v1alpha1.RouteMatch{{Path: &v1alpha1.StringMatch{Prefix: "/" + path}}}
	}
	return v1alpha1.CanaryStep{SetMirrorRoute: step}
}

// scaleTo pins the canary to a number of pods until matchWeight.
func scaleTo(pods int32) v1alpha1.CanaryStep {
	return v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{Replicas: &pods}}
}

var matchWeight = v1alpha1.CanaryStep{SetCanaryScale: &v1alpha1.SetCanaryScale{MatchTrafficWeight: true}}

// managed is a router with these managed routes.
func managed(names ...string) *v1alpha1.RolloutTrafficRouting {
	out := gateway.DeepCopy()
	for _, name := range names {
		out.ManagedRoutes = append(out.ManagedRoutes, v1alpha1.MangedRoutes{Name: name})
	}
	return out
}

var gateway = &v1alpha1.RolloutTrafficRouting{GatewayAPI: &v1alpha1.GatewayAPITrafficRouting{HTTPRoute: "web"}}

// withRouter is a canary with a router and these steps.
func withRouter(steps ...v1alpha1.CanaryStep) v1alpha1.CanaryStrategy {
	return v1alpha1.CanaryStrategy{Steps: steps, TrafficRouting: gateway}
}

// withoutRouter is a canary by pod counts, with one pod of surge and none missing.
func withoutRouter(steps ...v1alpha1.CanaryStep) v1alpha1.CanaryStrategy {
	return v1alpha1.CanaryStrategy{Steps: steps, MaxSurge: ptr(intstr.FromInt32(1)), MaxUnavailable: ptr(intstr.FromInt32(0))}
}

// cluster is one of 4 replicas whose pods take 3 seconds.
func cluster(strategy v1alpha1.CanaryStrategy) *plansim.Cluster {
	c := plansim.New(start, strategy, 4)
	c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, v := range []string{"v1", "v2", "v3", "v4"} {
		c.Behaviours[v] = plansim.Behaviour{ReadyAfter: 3 * time.Second}
	}
	c.DataPlaneDelay = 2 * time.Second
	c.RevertAfter = 5 * time.Second
	return c
}

// stableAt brings a version up as the first one, and past everything that follows.
func stableAt(t *testing.T, c *plansim.Cluster, hash string) {
	t.Helper()
	push(c, hash)
	mustReach(t, c, 60, "a healthy first version", healthyOn(hash))
	c.Run(60, nil)
}

func push(c *plansim.Cluster, hash string) {
	c.Commit(hash, "main@sha1:"+hash+"c0ffee", "Update web to "+hash)
}

func healthyOn(hash string) func(*plansim.Cluster) bool {
	return func(c *plansim.Cluster) bool {
		return c.Status.Phase == v1alpha1.RolloutPhaseHealthy && c.Status.StableRS == hash && c.Status.CurrentPodHash == hash
	}
}

func phase(want v1alpha1.RolloutPhase) func(*plansim.Cluster) bool {
	return func(c *plansim.Cluster) bool { return c.Status.Phase == want }
}

// atStep says that a version is at a step and that the step's clock runs.
func atStep(hash string, index int32) func(*plansim.Cluster) bool {
	return func(c *plansim.Cluster) bool {
		return c.Status.CurrentPodHash == hash && c.Status.CurrentStepIndex != nil && *c.Status.CurrentStepIndex == index
	}
}

func pausedAt(hash string, index int32) func(*plansim.Cluster) bool {
	return func(c *plansim.Cluster) bool { return atStep(hash, index)(c) && phase(v1alpha1.RolloutPhasePaused)(c) }
}

func mustReach(t *testing.T, c *plansim.Cluster, seconds int, what string, done func(*plansim.Cluster) bool) {
	t.Helper()
	if !c.Run(seconds, done) {
		t.Fatalf("did not reach %s within %d s; phase %s, message %q\n%s", what, seconds, c.Status.Phase, c.Status.Message, transcript(c))
	}
	noViolations(t, c)
}

func noViolations(t *testing.T, c *plansim.Cluster) {
	t.Helper()
	if len(c.Violations) > 0 {
		t.Fatalf("broke %v\n%s", c.Violations, transcript(c))
	}
}

func transcript(c *plansim.Cluster) string {
	out := ""
	for _, line := range c.Transcript {
		out += line + "\n"
	}
	return out
}

// verdicts gives runs a phase by hash and kind; all others succeed after 10 s.
func verdicts(hash string, kind plan.RunKind, s plansim.Script) func(plan.Run) plansim.Script {
	return func(run plan.Run) plansim.Script {
		if run.Hash == hash && run.Kind == kind {
			return s
		}
		return plansim.Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseSuccessful}
	}
}

const detail = `metric "success-rate" of step 2: value 0.5 failed (1) > failureLimit (0)`

var fails = plansim.Script{After: 10 * time.Second, Phase: v1alpha1.AnalysisPhaseFailed, Detail: detail}
