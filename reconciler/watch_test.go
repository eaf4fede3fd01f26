package reconciler

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// soon is well under the 20 s after which a Rollout that waits looks again by itself.
const soon = 12 * time.Second

// At rest a Rollout asks for no pass, so that whatever is put right was seen by a watch.
func TestWatchesOfRoutingObjects(t *testing.T) {
	l := newLab(t)
	l.routed()
	l.watch()
	rollout := l.reach("healthy", patience, healthy)
	clustertest.Eventually(l, patience, func() error { return l.selects("web-canary", rollout.Status.StableRS) })
	l.settled()

	service := &corev1.Service{}
	if err := l.get("web-canary", service); err != nil {
		t.Fatal(err)
	}
	edited := service.DeepCopy()
	edited.Spec.Selector[v1alpha1.TemplateHashLabel] = "0123456789"
	if err := l.client.Patch(t.Context(), edited, client.MergeFrom(service)); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(l, soon, func() error { return l.selects("web-canary", rollout.Status.StableRS) })

	route := &gatewayv1.HTTPRoute{}
	if err := l.get("web", route); err != nil {
		t.Fatal(err)
	}
	before := route.DeepCopy()
	for i := range route.Spec.Rules[0].BackendRefs {
		route.Spec.Rules[0].BackendRefs[i].Weight = ptr.To[int32](50)
	}
	if err := l.client.Patch(t.Context(), route, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(l, soon, func() error {
		if w := l.canaryWeight(); w != 0 {
			return fmt.Errorf("the canary has weight %d", w)
		}
		return nil
	})
}

func (l *lab) selects(service, hash string) error {
	live := &corev1.Service{}
	if err := l.get(service, live); err != nil {
		return err
	}
	if got := live.Spec.Selector[v1alpha1.TemplateHashLabel]; got != hash || hash == "" {
		return fmt.Errorf("%s selects %q instead of %q", service, got, hash)
	}
	return nil
}

// settled waits until the Rollout was not written for some seconds.
func (l *lab) settled() {
	l.Helper()
	const quiet = 4 * time.Second
	version, since := "", time.Now()
	clustertest.Eventually(l, patience, func() error {
		if now := l.rollout().ResourceVersion; now != version {
			version, since = now, time.Now()
		}
		if left := quiet - time.Since(since); left > 0 {
			return fmt.Errorf("written less than %s ago", quiet)
		}
		return nil
	})
}

func TestWatchOfReverts(t *testing.T) {
	l := newLab(t)
	l.create(webRollout())
	l.watch()
	l.reach("healthy", patience, healthy)
	revert := &v1alpha1.Revert{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0123456789-7", Labels: map[string]string{v1alpha1.RolloutNameLabel: "web"}},
		Spec: v1alpha1.RevertRequest{
			Rollout: v1alpha1.RevertRollout{Namespace: l.namespace, Name: "web"}, GitSync: v1alpha1.RevertGitSync{Namespace: l.namespace, Name: "shop"},
			Rejected: "0123456789", Attempt: 7, Reason: v1alpha1.AbortFailed, AbortedAt: metav1.Now(),
		},
	}
	l.create(revert)
	clustertest.Eventually(l, patience, func() error {
		rollout := l.rollout()
		rollout.Status.Rejected = []v1alpha1.RejectedVersion{{
			Hash: "0123456789", Attempt: 7, Reason: v1alpha1.AbortFailed, Time: metav1.Now(), Revert: v1alpha1.RevertPending,
		}}
		return l.client.Status().Update(t.Context(), rollout)
	})
	l.settled()
	before := client.MergeFrom(revert.DeepCopy())
	revert.Status.Phase, revert.Status.Commit = v1alpha1.RevertObserved, "0123456789012345678901234567890123456789"
	if err := l.client.Status().Patch(t.Context(), revert, before); err != nil {
		t.Fatal(err)
	}
	l.reach("told of the revert", soon, func(r *v1alpha1.Rollout) bool {
		return len(r.Status.Rejected) == 1 && r.Status.Rejected[0].Revert == v1alpha1.RevertObserved &&
			r.Status.Rejected[0].RevertCommit == revert.Status.Commit
	})
}

func TestWatchOfAnalysisTemplates(t *testing.T) {
	for name, clusterScope := range map[string]bool{"AnalysisTemplate": false, "ClusterAnalysisTemplate": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			named := "rate-" + l.namespace
			l.create(webRollout(v1alpha1.CanaryStep{Analysis: &v1alpha1.RolloutAnalysis{
				Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: named, ClusterScope: clusterScope}},
			}}))
			l.watch()
			l.reach("waiting for the template", patience, func(r *v1alpha1.Rollout) bool {
				return r.Status.Phase == v1alpha1.RolloutPhaseProgressing && r.Status.ReadyReplicas == 0 && r.Status.Message != ""
			})
			l.settled()
			spec := v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{{
				Name: "rate", SuccessCondition: "result[0] > 0.9",
				Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus.example:9090", Query: "rate"}},
			}}}
			var template client.Object = &v1alpha1.AnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: named, Namespace: l.namespace}, Spec: spec}
			if clusterScope {
				template = &v1alpha1.ClusterAnalysisTemplate{ObjectMeta: metav1.ObjectMeta{Name: named}, Spec: spec}
				t.Cleanup(func() { _ = l.client.Delete(t.Context(), template) })
			}
			if err := l.client.Create(t.Context(), template); err != nil {
				t.Fatal(err)
			}
			l.reach("healthy", soon, healthy)
		})
	}
}

// A pass that is due at a time comes without any event.
func TestTimedPauseEndsByItself(t *testing.T) {
	l := newLab(t)
	l.routed(setWeight(50), pauseFor("3s"))
	l.watch()
	l.reach("healthy", patience, healthy)
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	want := l.hashOf(podTemplate("web:2"))
	rollout := l.reach("promoted", patience, func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == want })
	if rollout.Status.Attempt != 2 {
		t.Errorf("the second version is attempt %d", rollout.Status.Attempt)
	}
}
