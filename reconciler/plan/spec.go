package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// Defaults of the spec, as documented on its fields (Argo Rollouts v1.10).
const (
	defaultScaleDownDelay   = 30 * time.Second
	defaultProgressDeadline = 600 * time.Second
	defaultRevisionHistory  = 10
	defaultRunHistory       = 5
	defaultSurge            = "25%"
)

// canary is the strategy; empty when the spec has none, which validation refuses.
func canary(in In) v1alpha1.CanaryStrategy {
	if in.Spec.Strategy.Canary == nil {
		return v1alpha1.CanaryStrategy{}
	}
	return *in.Spec.Strategy.Canary
}

func steps(in In) []v1alpha1.CanaryStep { return canary(in).Steps }

// routed says that a router moves the traffic; without one pod counts do.
func routed(in In) bool { return in.Routing != nil }

// usable says that the spec can be acted on at all.
func usable(in In) bool { return len(in.Invalid) == 0 && in.Template.Hash != "" }

// ready says that the spec can be acted on and that everything it names is there.
func ready(in In) bool { return usable(in) && len(in.Missing) == 0 }

// surge is the number of pods above replicas, rounded up.
func surge(in In) int32 {
	up, _ := bounds(in)
	return up
}

// unavailable is the number of pods below replicas, rounded down; 1 when both
// bounds would be 0 (Argo 2.2), for then nothing could move.
func unavailable(in In) int32 {
	_, down := bounds(in)
	return down
}

func bounds(in In) (up, down int32) { return Bounds(canary(in), in.Replicas) }

// Bounds are maxSurge and maxUnavailable of a canary in pods, by the rules of surge
// and unavailable. Default 25% each.
func Bounds(canary v1alpha1.CanaryStrategy, replicas int32) (up, down int32) {
	up = podCount(canary.MaxSurge, replicas, true)
	down = podCount(canary.MaxUnavailable, replicas, false)
	if up == 0 && down == 0 {
		down = 1
	}
	return up, min(down, replicas)
}

// podCount reads a number or a percentage of replicas; a string without % is a percentage.
func podCount(value *intstr.IntOrString, replicas int32, roundUp bool) int32 {
	if value == nil {
		fallback := intstr.FromString(defaultSurge)
		value = &fallback
	}
	if value.Type == intstr.String && value.StrVal != "" && value.StrVal[len(value.StrVal)-1] != '%' {
		percent := intstr.FromString(value.StrVal + "%")
		value = &percent
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(replicas), roundUp)
	if err != nil || n < 0 {
		return 0 // validation has named the field
	}
	return int32(min(n, math.MaxInt32))
}

// fullWeight is what the weights of both sides add up to: maxTrafficWeight, or 100.
func fullWeight(in In) int32 { return routers.Whole(canary(in).TrafficRouting) }

// share is ceil(replicas * weight / full).
func share(replicas, weight, full int32) int32 {
	return int32((int64(replicas)*int64(weight) + int64(full) - 1) / int64(full))
}

func seconds(value *int32, fallback time.Duration) time.Duration {
	if value == nil {
		return fallback
	}
	return time.Duration(*value) * time.Second
}

func scaleDownDelay(in In) time.Duration {
	return seconds(canary(in).ScaleDownDelaySeconds, defaultScaleDownDelay)
}

// abortDelay is how long an aborted canary keeps its pods; 0 keeps them for good.
func abortDelay(in In) time.Duration {
	return seconds(canary(in).AbortScaleDownDelaySeconds, defaultScaleDownDelay)
}

func progressDeadline(in In) time.Duration {
	return seconds(in.Spec.ProgressDeadlineSeconds, defaultProgressDeadline)
}

// pauseLength returns the duration of a pause step, or false when it lasts until promoted.
func pauseLength(pause v1alpha1.RolloutPause) (time.Duration, bool) {
	if pause.Duration == nil {
		return 0, false
	}
	d, err := analysis.ParseDuration(v1alpha1.DurationString(pause.Duration.String()))
	return d, err == nil
}

// stepWeight is the weight that holds at a step: the last setWeight at or before
// it, 0 when there was none, and everything after the last step (Argo 2.3).
func stepWeight(in In, index int32) int32 {
	if int(index) >= len(steps(in)) {
		return fullWeight(in)
	}
	for i := index; i >= 0; i-- {
		if w := steps(in)[i].SetWeight; w != nil {
			return min(max(*w, 0), fullWeight(in))
		}
	}
	return 0
}

// hashSteps identifies steps. The same weight of another whole is another step.
func hashSteps(steps []v1alpha1.CanaryStep, full int32) string {
	text, err := json.Marshal(steps)
	if err != nil {
		return "" // steps came from JSON
	}
	if full != routers.MaxWeight {
		text = fmt.Appendf(text, "/%d", full)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:10]
}

// stepHash is what status.currentStepHash holds: the hash of all steps, and that
// of the steps up to and including the current one, so that an edit of later steps
// can be told from an edit of steps that were taken.
func stepHash(in In, index int32) string {
	all := steps(in)
	taken := min(int(index)+1, len(all))
	return hashSteps(all, fullWeight(in)) + "-" + hashSteps(all[:taken], fullWeight(in))
}
