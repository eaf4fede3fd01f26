package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// blueGreen is the Git content of a version: its preview measures 1, and after the
// switch it measures quality.
func blueGreen(version, quality string) map[string]string {
	text := webYAML[strings.Index(webYAML, "apiVersion: pushback.dev/v1alpha1"):strings.Index(webYAML, "    canary:")]
	for _, name := range []string{"web", "web-preview"} {
		text = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec:\n  selector: {app: web}\n  ports: [{name: http, port: 80, targetPort: 8080}]\n---\n", name) + text
	}
	return map[string]string{"deploy/web.yaml": fmt.Sprintf(text, version, quality) + `    blueGreen:
      activeService: web
      previewService: web-preview
      previewReplicaCount: 2
      scaleDownDelaySeconds: 5
      abortScaleDownDelaySeconds: 1
      prePromotionAnalysis: {templates: [{templateName: quality}], args: [{name: quality, value: "1"}]}
      postPromotionAnalysis: {templates: [{templateName: quality}], args: [{name: quality, valueFrom: {fieldRef: {fieldPath: spec.template.metadata.annotations.quality}}}]}
`}
}

// writesOf counts the controller's writes of one object so far.
func (s *tale) writesOf(object string) (n int) {
	s.Helper()
	for _, line := range s.writes() {
		_, rest, _ := strings.Cut(line, object)
		if strings.HasPrefix(rest, "?") || strings.HasPrefix(rest, " ") {
			n++
		}
	}
	return n
}

// selects is the hash that a Service selects.
func (s *tale) selects(name string) string {
	s.Helper()
	service := &corev1.Service{}
	s.must(shared.Client.Get(s.ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, service))
	if service.Spec.Selector["app"] != "web" {
		s.Errorf("Service %s lost what Git declares: %v", name, service.Spec.Selector)
	}
	return service.Spec.Selector[v1alpha1.TemplateHashLabel]
}

func (s *tale) awaitSelector(name, hash string) {
	s.Helper()
	s.awaitThat(name+" to select "+hash, func(context.Context) (bool, error) { return s.selects(name) == hash, nil })
}

func TestBlueGreenIsPromoted(t *testing.T) {
	t.Parallel()
	s := begin(t, "bluegreen")
	s.commit("Add web v1", blueGreen("v1", "1"))
	s.follow()
	v1 := s.healthyAs("v1").Status.StableRS
	s.awaitSelector("web", v1)
	if len(s.analysisRuns()) != 0 {
		t.Error("a first version was analysed")
	}
	s.commit("Release web v2", blueGreen("v2", "1"))
	preview := s.await("the preview", func(o *v1alpha1.Rollout) bool {
		run := o.Status.BlueGreen.PrePromotionAnalysisRunStatus
		return run != nil && run.Status == v1alpha1.AnalysisPhaseRunning
	})
	v2 := preview.Status.CurrentPodHash
	if got := s.selects("web"); got != v1 {
		t.Errorf("the active Service selects %s before the analysis is over, want %s", got, v1)
	}
	if got := s.selects("web-preview"); got != v2 {
		t.Errorf("the preview Service selects %s, want %s", got, v2)
	}
	if got := *s.replicaSet(v2).Spec.Replicas; got != 2 {
		t.Errorf("the preview has %d pods, want previewReplicaCount 2", got)
	}
	if got := s.podUIDs(v1); len(got) != 4 {
		t.Errorf("stable has %d pods beside the preview, want all 4", len(got))
	}
	done := s.healthyAs("v2")
	if done.Status.StableRS != v2 || s.selects("web") != v2 || done.Status.BlueGreen.ActiveSelector != v2 {
		t.Errorf("stable %s, active %s, status %+v; want %s", done.Status.StableRS, s.selects("web"), done.Status.BlueGreen, v2)
	}
	promoted := s.podUIDs(v2)
	if len(promoted) != 4 {
		t.Errorf("%d pods of the promoted version, want 4", len(promoted))
	}
	s.awaitThat("v1 to be scaled down", func(context.Context) (bool, error) { return *s.replicaSet(v1).Spec.Replicas == 0, nil })
	if now := s.podUIDs(v2); !sameKeys(promoted, now) {
		t.Errorf("promotion touched pods: %v, then %v", promoted, now)
	}
	names := map[string]string{}
	for _, run := range s.analysisRuns() {
		names[run.Labels[v1alpha1.RolloutTypeLabel]] = run.Name
	}
	if !strings.HasSuffix(names["PrePromotion"], "-pre") || !strings.HasSuffix(names["PostPromotion"], "-post") || len(names) != 2 {
		t.Errorf("runs by type: %v", names)
	}
}

func TestBlueGreenThatFailsAfterTheSwitchIsReverted(t *testing.T) {
	t.Parallel()
	s := begin(t, "greenfails")
	s.commit("Add web v1", blueGreen("v1", "1"))
	s.follow()
	v1 := s.healthyAs("v1").Status.StableRS
	s.awaitSelector("web", v1)
	stable, selected := s.podUIDs(v1), s.writesOf("/services/web")
	before, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	s.commit("Release web v2", blueGreen("v2", "0.5"))
	degraded := s.await("the abort", func(o *v1alpha1.Rollout) bool {
		return len(o.Status.Rejected) == 1 && strings.Contains(o.Status.Rejected[0].Message, "quality")
	})
	if run := degraded.Status.Rejected[0].AnalysisRun; !strings.HasSuffix(run, "-post") {
		t.Errorf("it was rejected by %s, want the analysis after the switch", run)
	}
	if got := s.selects("web"); got != v1 {
		t.Errorf("the active Service selects %s when the abort is persisted, want %s", got, v1)
	}
	if moves := s.writesOf("/services/web") - selected; moves != 2 {
		t.Errorf("the active Service was moved %d times, want to v2 and back", moves)
	}
	s.await("Healthy as v1 again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v1
	})
	after, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	if after != before {
		t.Errorf("the file differs from v1's:\n%s", after)
	}
	if now := s.podUIDs(v1); !sameKeys(stable, now) {
		t.Errorf("stable pods were touched: %v, then %v", stable, now)
	}
	s.awaitSelector("web-preview", v1)
	s.oneRevert(3)
}
