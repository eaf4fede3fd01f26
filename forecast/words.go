package forecast

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// stepText says what a step or a stage does.
func stepText(spec v1alpha1.RolloutSpec, i int32) string {
	if bg := spec.Strategy.BlueGreen; bg != nil {
		return string(plan.Stages(*bg)[i])
	}
	return StepText(spec.Strategy.Canary.Steps[i])
}

// StepText says what a step of a canary does, as the documents name it.
func StepText(step v1alpha1.CanaryStep) string {
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

// asked is the share that the steps up to one ask for.
func asked(spec v1alpha1.RolloutSpec, i int32) float64 {
	if bg := spec.Strategy.BlueGreen; bg != nil {
		for _, stage := range plan.Stages(*bg)[:i+1] {
			if stage == plan.StageSwitch {
				return 1
			}
		}
		return 0
	}
	share := 0.0
	for _, step := range spec.Strategy.Canary.Steps[:i+1] {
		if step.SetWeight != nil {
			share = float64(*step.SetWeight) / float64(routers.Whole(spec.Strategy.Canary.TrafficRouting))
		}
	}
	return share
}

// roundingMatters is from what difference on a share is told as a lie.
const roundingMatters = 0.01

func notes(in Input, f Forecast) []string {
	var out []string
	for _, step := range f.Steps {
		if !f.Routed && strings.HasPrefix(step.Text, "setWeight") && math.Abs(step.Share-step.Asked) >= roundingMatters {
			out = append(out, fmt.Sprintf("step %d asks for %s and gets %s: %d pods of %d, and no router to split by weight",
				step.Index, Percent(step.Asked), Percent(step.Share), step.NewPods, step.NewPods+step.OldPods))
		}
	}
	for i, step := range stepsOf(in.Spec) {
		if step.Experiment != nil && experimentLasts(in.Spec, int32(i)) == 0 {
			out = append(out, fmt.Sprintf("step %d is an experiment without a duration: it is counted as no time", i+1))
		}
	}
	if len(f.Metrics) == 0 {
		out = append(out, "nothing is measured: a bad version is promoted")
	}
	for _, m := range f.Metrics {
		if !m.IfBad.Noticed && !m.DryRun {
			out = append(out, fmt.Sprintf("%s, metric %s: a version that fails it from the start is promoted all the same", m.Run, m.Metric))
		}
	}
	return out
}

// experimentLasts is the duration of a step's Experiment, without what its pods take to
// start; 0 for one that its analyses end.
func experimentLasts(spec v1alpha1.RolloutSpec, i int32) time.Duration {
	steps := stepsOf(spec)
	if int(i) >= len(steps) || steps[i].Experiment == nil {
		return 0
	}
	d, err := analysis.ParseDuration(steps[i].Experiment.Duration)
	if err != nil {
		return 0 // validation refuses it
	}
	return d
}

// Percent is a share for people: up to one decimal.
func Percent(share float64) string {
	text := fmt.Sprintf("%.1f", share*100)
	return strings.TrimSuffix(text, ".0") + "%"
}
