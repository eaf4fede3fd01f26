package main

import (
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// stepsOf tells what each step does and how far the update is.
func stepsOf(rollout *v1alpha1.Rollout) []stepView {
	var texts []string
	switch strategy := rollout.Spec.Strategy; {
	case strategy.BlueGreen != nil:
		texts = stageTexts(*strategy.BlueGreen)
	case strategy.Canary != nil:
		for _, step := range strategy.Canary.Steps {
			texts = append(texts, stepText(step))
		}
	}
	current := int32(0)
	if rollout.Status.CurrentStepIndex != nil {
		current = *rollout.Status.CurrentStepIndex
	}
	var out []stepView
	for i, text := range texts {
		state := "todo"
		switch {
		case int32(i) < current:
			state = "done"
		case int32(i) == current && rollout.Status.StableRS != rollout.Status.CurrentPodHash && !rollout.Status.Abort:
			state = "current"
		}
		out = append(out, stepView{Text: text, State: state})
	}
	return out
}

func stepText(step v1alpha1.CanaryStep) string {
	switch {
	case step.SetWeight != nil:
		return fmt.Sprintf("setWeight %d", *step.SetWeight)
	case step.Pause != nil && step.Pause.Duration == nil:
		return "pause until promoted"
	case step.Pause != nil:
		return "pause " + step.Pause.Duration.String()
	case step.Analysis != nil:
		text := "analysis"
		for _, t := range step.Analysis.Templates {
			text += " " + t.TemplateName
		}
		return text
	case step.SetCanaryScale != nil:
		return "setCanaryScale"
	case step.Experiment != nil:
		return "experiment"
	case step.SetHeaderRoute != nil:
		return "setHeaderRoute " + step.SetHeaderRoute.Name
	case step.SetMirrorRoute != nil:
		return "setMirrorRoute " + step.SetMirrorRoute.Name
	}
	return "unknown step"
}
