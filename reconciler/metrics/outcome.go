package metrics

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// outcome is how a rollout ended. The values are Argo's.
type outcome string

const (
	promoted   outcome = "Promoted"   // it became the stable version
	aborted    outcome = "Aborted"    // it was taken back
	superseded outcome = "Superseded" // a third template ended it
	rolledBack outcome = "RolledBack" // the template went back to the stable one
)

// ended says how the rollout that was in progress before a write ended with it,
// and how long it took. It is false while it goes on, also at another attempt of
// the same template, and when nothing was in progress.
func ended(before, after v1alpha1.RolloutStatus, now time.Time) (outcome, time.Duration, bool) {
	hash := before.CurrentPodHash
	if hash == "" || hash == before.StableRS || before.Abort || before.StartedAt == nil {
		return "", 0, false
	}
	how := outcome("")
	switch {
	case after.StableRS == hash:
		how = promoted
	case after.Abort && after.CurrentPodHash == hash:
		how = aborted
	case after.CurrentPodHash == hash:
		return "", 0, false
	case after.CurrentPodHash == after.StableRS:
		how = rolledBack
	default:
		how = superseded
	}
	return how, max(now.Sub(before.StartedAt.Time), 0), true
}

// abortedNow says that a write took the current attempt back. What is taken back
// already isn't again when a person aborts it too.
func abortedNow(before, after v1alpha1.RolloutStatus) bool {
	return after.Abort && (!before.Abort || before.Attempt != after.Attempt)
}

// zeroSince is since when the canary was seen without traffic; false when it
// wasn't, or when no router moves traffic.
func zeroSince(st v1alpha1.RolloutStatus) (time.Time, bool) {
	w := st.Canary.Weights
	if w == nil || w.Canary.Weight != 0 || w.Since == nil {
		return time.Time{}, false
	}
	return w.Since.Time, true
}
