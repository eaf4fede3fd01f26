package main

import (
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// serviceView is a Service of a blue-green Rollout.
type serviceView struct {
	// Role is active or preview.
	Role string `json:"role"`
	Name string `json:"name"`
	// Hash of the template that it was seen to select; empty when it selects none.
	Hash string `json:"hash,omitempty"`
}

func servicesOf(rollout *v1alpha1.Rollout) []serviceView {
	bg := rollout.Spec.Strategy.BlueGreen
	if bg == nil {
		return nil
	}
	out := []serviceView{{Role: "active", Name: bg.ActiveService, Hash: rollout.Status.BlueGreen.ActiveSelector}}
	if bg.PreviewService != "" {
		out = append(out, serviceView{Role: "preview", Name: bg.PreviewService, Hash: rollout.Status.BlueGreen.PreviewSelector})
	}
	return out
}

// candidateRole is what the current version is called while it isn't stable.
func candidateRole(rollout *v1alpha1.Rollout) string {
	switch {
	case rollout.Spec.Strategy.BlueGreen == nil:
		return "canary"
	case rollout.Status.BlueGreen.ActiveSelector == rollout.Status.CurrentPodHash:
		return "active"
	}
	return "preview"
}

// stageTexts are the stages of a blue-green update for people.
func stageTexts(bg v1alpha1.BlueGreenStrategy) []string {
	var out []string
	for _, stage := range plan.Stages(bg) {
		text := string(stage)
		var analysis *v1alpha1.RolloutAnalysis
		switch stage {
		case plan.StagePre:
			analysis = bg.PrePromotionAnalysis
		case plan.StagePost:
			analysis = bg.PostPromotionAnalysis
		case plan.StagePause:
			text = "pause until promoted"
			if bg.AutoPromotionEnabled == nil || *bg.AutoPromotionEnabled {
				text = fmt.Sprintf("pause %ds", bg.AutoPromotionSeconds)
			}
		}
		if analysis != nil {
			for _, t := range analysis.Templates {
				text += " " + t.TemplateName
			}
		}
		out = append(out, text)
	}
	return out
}
