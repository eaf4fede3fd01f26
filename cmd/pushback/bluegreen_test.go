package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func blueGreenRollout(index int32, active string) *v1alpha1.Rollout {
	analysis := &v1alpha1.RolloutAnalysis{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "quality"}}}
	r := &v1alpha1.Rollout{}
	r.Namespace, r.Name = "shop", "web"
	r.Spec.Strategy.BlueGreen = &v1alpha1.BlueGreenStrategy{
		ActiveService: "web", PreviewService: "web-preview", AutoPromotionSeconds: 20,
		PrePromotionAnalysis: analysis, PostPromotionAnalysis: analysis,
	}
	r.Status.Phase, r.Status.CurrentStepIndex = v1alpha1.RolloutPhasePaused, &index
	r.Status.StableRS, r.Status.CurrentPodHash = "aaa", "bbb"
	r.Status.BlueGreen = v1alpha1.BlueGreenStatus{ActiveSelector: active, PreviewSelector: "bbb"}
	r.Status.Canary.Weights = &v1alpha1.TrafficWeights{}
	return r
}

func TestBlueGreenView(t *testing.T) {
	v := summaryOf(blueGreenRollout(1, "aaa"))
	want := []stepView{
		{"pre-promotion analysis quality", "done"}, {"pause 20s", "current"},
		{"switch of the active Service", "todo"}, {"post-promotion analysis quality", "todo"},
	}
	if diff := cmp.Diff(want, v.Steps); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	text := renderView(v, style{})
	for _, line := range []string{"active   web selects aaa", "preview  web-preview selects bbb"} {
		if !strings.Contains(text, line) {
			t.Errorf("lacks %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "weights") {
		t.Errorf("a blue-green Rollout has no weights for a person:\n%s", text)
	}
}

func TestBlueGreenRoles(t *testing.T) {
	for active, want := range map[string]string{"aaa": "preview", "bbb": "active"} {
		if got := candidateRole(blueGreenRollout(3, active)); got != want {
			t.Errorf("while the active Service selects %s: %s, want %s", active, got, want)
		}
	}
	if got := candidateRole(&v1alpha1.Rollout{}); got != "canary" {
		t.Errorf("got %s, want canary", got)
	}
}
