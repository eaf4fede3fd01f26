package reconciler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Two promotions: the weight stays where it arrived, and the Services change roles.
func TestPingPong(t *testing.T) {
	l := newLab(t)
	rollout, route := routedRollout(setWeight(50), pauseFor("1s")), webRoute()
	canary := rollout.Spec.Strategy.Canary
	canary.StableService, canary.CanaryService = "", ""
	canary.PingPong = &v1alpha1.PingPongSpec{PingService: "web-ping", PongService: "web-pong"}
	route.Spec.Rules[0].BackendRefs[0].Name, route.Spec.Rules[0].BackendRefs[1].Name = "web-ping", "web-pong"
	l.create(webService("web-ping"), webService("web-pong"), route, rollout)
	l.watch()
	l.reach("healthy", patience, healthy)
	for _, step := range []struct {
		image, side, stable string
		ping, pong          int32
	}{
		{"web:2", v1alpha1.PingPongPong, "web-pong", 0, 100},
		{"web:3", v1alpha1.PingPongPing, "web-ping", 100, 0},
	} {
		l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate(step.image)) })
		want := l.hashOf(podTemplate(step.image))
		now := l.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == want })
		if now.Status.Canary.StablePingPong != step.side || now.Status.Canary.Weights.Stable.ServiceName != step.stable {
			t.Errorf("%s: the status says %q is stable, with weights %+v", step.image, now.Status.Canary.StablePingPong, now.Status.Canary.Weights)
		}
		live := &gatewayv1.HTTPRoute{}
		if err := l.get("web", live); err != nil {
			t.Fatal(err)
		}
		refs := live.Spec.Rules[0].BackendRefs
		if *refs[0].Weight != step.ping || *refs[1].Weight != step.pong {
			t.Errorf("%s: weights %d and %d, want %d and %d", step.image, *refs[0].Weight, *refs[1].Weight, step.ping, step.pong)
		}
		service := &corev1.Service{}
		if err := l.get(step.stable, service); err != nil {
			t.Fatal(err)
		}
		if got := service.Spec.Selector[v1alpha1.TemplateHashLabel]; got != want {
			t.Errorf("%s: %s selects %q, want %q", step.image, step.stable, got, want)
		}
	}
}
