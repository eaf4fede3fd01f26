package main

import (
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// stepsOf tells what each step does and how far the update is.
func stepsOf(rollout *v1alpha1.Rollout) []stepView {
	canary := rollout.Spec.Strategy.Canary
	if canary == nil {
		return nil
	}
	current := int32(0)
	if rollout.Status.CurrentStepIndex != nil {
		current = *rollout.Status.CurrentStepIndex
	}
	var out []stepView
	for i, step := range canary.Steps {
		state := "todo"
		switch {
		case int32(i) < current:
			state = "done"
		case int32(i) == current && rollout.Status.StableRS != rollout.Status.CurrentPodHash && !rollout.Status.Abort:
			state = "current"
		}
		out = append(out, stepView{Text: stepText(step), State: state})
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
