package main

import (
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/forecast"
)

// stepsOf tells what each step does and how far the update is.
func stepsOf(rollout *v1alpha1.Rollout) []stepView {
	var texts []string
	switch strategy := rollout.Spec.Strategy; {
	case strategy.BlueGreen != nil:
		texts = stageTexts(*strategy.BlueGreen)
	case strategy.Canary != nil:
		for _, step := range strategy.Canary.Steps {
			texts = append(texts, forecast.StepText(step))
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
