package forecast

import (
	"errors"
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// Input is a Rollout with what it names.
type Input struct {
	Name string
	Spec v1alpha1.RolloutSpec
	// Object is the Rollout as decoded JSON, for fieldRef.
	Object map[string]any
	// Lookup finds the templates that it names.
	Lookup analysis.Lookup
	// Replicas to count with. Default (0): spec.replicas, or 1.
	Replicas int32
	// ReadyDelay is how long a pod takes to become ready. minReadySeconds comes on top.
	ReadyDelay time.Duration
}

// Forecast of one update from a stable version to a new one.
type Forecast struct {
	Rollout  string `json:"rollout"`
	Strategy string `json:"strategy"`
	// Routed is false where only pod counts split the traffic.
	Routed   bool   `json:"routed"`
	Replicas int32  `json:"replicas"`
	Steps    []Step `json:"steps"`
	// PromotedAt is the time from the commit until the new version is stable, with no
	// time at pauses that wait for a person.
	PromotedAt Seconds  `json:"promotedAt"`
	Metrics    []Metric `json:"metrics,omitempty"`
	// Unnoticed is what a bad version gets when nothing notices: from the first request
	// to the promotion.
	Unnoticed Exposure `json:"unnoticed"`
	// Notes are what a reader would be surprised by.
	Notes []string `json:"notes,omitempty"`
}

// Step is a step of the strategy or a stage of a blue-green update.
type Step struct {
	Index int32  `json:"index"`
	Text  string `json:"text"`
	// From the commit until the step is current, and how long it is.
	From  Seconds `json:"from"`
	Lasts Seconds `json:"lasts"`
	// Waits is true for a pause that only a person ends. It is counted as no time.
	Waits bool `json:"waits,omitempty"`
	// Asked is the share that the last setWeight asks for, 0 to 1; Share is what the new
	// version has at the end of the step.
	Asked float64 `json:"asked"`
	Share float64 `json:"share"`
	// NewPods and OldPods are those that are available at the end of the step.
	NewPods int32 `json:"newPods"`
	OldPods int32 `json:"oldPods"`
}

// Metric is a metric of one of the runs.
type Metric struct {
	// Run says which: "background" or "step <index>", and for blue-green "pre-promotion"
	// or "post-promotion".
	Run    string `json:"run"`
	Metric string `json:"metric"`
	// First is the time from the commit to the first measurement; Interval is 0 for one
	// measurement, and Count 0 for no end.
	First    Seconds `json:"first"`
	Interval Seconds `json:"interval"`
	Count    int32   `json:"count"`
	// Measured is how often it is measured before the new version is promoted.
	Measured int32 `json:"measured"`
	// DryRun metrics decide nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// IfBad is what happens when this metric alone fails, from its first measurement on.
	IfBad Detection `json:"ifBad"`
}

// Detection is when and how a bad version is noticed.
type Detection struct {
	// Noticed is false when it is promoted all the same.
	Noticed bool `json:"noticed"`
	// At is the time from the commit until the traffic is back.
	At Seconds `json:"at"`
	Exposure
}

// Exposure is how much traffic met the new version.
type Exposure struct {
	// Most is the largest share, 0 to 1.
	Most float64 `json:"mostShare"`
	// Traffic is the share summed up over time: seconds of all of the traffic.
	Traffic Seconds `json:"trafficSeconds"`
}

// Seconds print as seconds in JSON.
type Seconds float64

// Duration of the seconds.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

func seconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// ErrEndless says that an analysis which a step waits for never ends: each of its
// metrics wants a count.
var ErrEndless = errors.New("the analysis never ends: a metric has an interval and no count")

// Compute tells what an update of the Rollout does. An error says what of the Rollout
// or its templates can't be used.
func Compute(in Input) (Forecast, error) {
	if in.Replicas == 0 {
		in.Replicas = 1
		if in.Spec.Replicas != nil {
			in.Replicas = *in.Spec.Replicas
		}
	}
	if in.Replicas < 1 {
		return Forecast{}, fmt.Errorf("rollout %s has no replicas: nothing would be updated", in.Name)
	}
	runs, err := prepareRuns(in)
	if err != nil {
		return Forecast{}, err
	}
	for _, r := range runs {
		if after, _ := r.outcome(nobody, 0); after == never && r.kind != plan.RunBackground {
			return Forecast{}, fmt.Errorf("%s: %w", r.name, ErrEndless)
		}
	}
	good, err := update(in, runs, nobody)
	if err != nil {
		return Forecast{}, err
	}
	out := Forecast{
		Rollout: in.Name, Strategy: strategyName(in.Spec), Routed: routed(in.Spec), Replicas: in.Replicas,
		Steps: good.steps, PromotedAt: good.end, Unnoticed: good.exposure,
	}
	for _, run := range runs {
		for _, metric := range run.metrics() {
			bad, err := update(in, runs, culprit{run.name, metric.Metric})
			if err != nil {
				return Forecast{}, err
			}
			metric.Measured = good.measured(run, metric)
			metric.First += good.started[run.name]
			metric.IfBad = Detection{Noticed: bad.aborted, At: bad.end, Exposure: bad.exposure}
			out.Metrics = append(out.Metrics, metric)
		}
	}
	out.Notes = notes(in, out)
	return out, nil
}

func routed(spec v1alpha1.RolloutSpec) bool {
	return spec.Strategy.BlueGreen != nil || spec.Strategy.Canary != nil && spec.Strategy.Canary.TrafficRouting != nil
}

func strategyName(spec v1alpha1.RolloutSpec) string {
	if spec.Strategy.BlueGreen != nil {
		return "blueGreen"
	}
	return "canary"
}

// stepsOf are the steps, or the stages as steps.
func stepsOf(spec v1alpha1.RolloutSpec) []v1alpha1.CanaryStep {
	if bg := spec.Strategy.BlueGreen; bg != nil {
		return plan.StageSteps(*bg)
	}
	if spec.Strategy.Canary == nil {
		return nil
	}
	return spec.Strategy.Canary.Steps
}
