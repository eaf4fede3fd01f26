package plan

import (
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// wholeSize is the size of a side that takes all the traffic: spec.replicas.
// While the canary has traffic a scaler counts the pods of both versions, so the
// size may rise then and not fall, lest a canary beside a whole stable be taken for
// idle pods; only a size of 0 is a person's word. Where stable shrinks as the canary
// grows there is no such surplus.
func wholeSize(in In, st v1alpha1.RolloutStatus) int32 {
	if !routed(in) || dynamic(in) || !canaryTraffic(in, st) {
		return in.Replicas
	}
	return wholeUnderTraffic(in, st)
}

// wholeUnderTraffic is what wholeSize is as soon as the canary has traffic.
func wholeUnderTraffic(in In, st v1alpha1.RolloutStatus) int32 {
	if in.Replicas == 0 || dynamic(in) {
		return in.Replicas
	}
	return max(in.Replicas, desired(find(in, st.StableRS)))
}

// sizeRouted returns the pods of each version with a router, and the deadlines
// of those that are to go.
func sizeRouted(in In, st v1alpha1.RolloutStatus, b buckets) (sizes, map[string]time.Time) {
	want, deadlines := sizes{}, map[string]time.Time{}
	var smallerAt *time.Time
	if st.StableRS != "" && (b.stable != nil || st.StableRS == in.Template.Hash) {
		want[st.StableRS], smallerAt = sizeStable(in, st, b.stable)
	}
	if inProgress(st) && (b.candidate != nil || st.CurrentPodHash == in.Template.Hash && !confirmationPending(st)) {
		want[st.CurrentPodHash] = candidateSize(in, st, b.candidate)
	}
	leaving := b.others
	if takenBack(st) && b.candidate != nil && st.StableRS != "" {
		leaving = append(slices.Clone(leaving), *b.candidate)
	}
	for _, rs := range leaving {
		if rs.Desired == 0 || !replaced(in, st, b) || heldByStatus(in, rs.Hash) {
			continue
		}
		want[rs.Hash] = rs.Desired // an aborted or older version never grows
		at, due := leaveAt(in, st, rs)
		switch {
		case !due:
		case in.Now.Before(at) || named(in, rs.Hash):
			deadlines[rs.Hash] = at
		default:
			want[rs.Hash] = 0
		}
	}
	trimDelays(in, st, want, deadlines)
	if smallerAt != nil {
		deadlines[st.StableRS] = *smallerAt
	}
	return want, deadlines
}

// heldByStatus says that the persisted status still counts on a version: its pods
// stay until the status that lets them go is persisted itself.
func heldByStatus(in In, hash string) bool {
	return hash == in.Status.StableRS || inProgress(in.Status) && hash == in.Status.CurrentPodHash
}

// leaveAt is when a version that is not wanted any more may lose its pods; false
// while that can't be told.
func leaveAt(in In, st v1alpha1.RolloutStatus, rs ReplicaSet) (time.Time, bool) {
	_, aborted := abortedAt(st, rs.Hash)
	if given := rs.ScaleDownAt != nil && !named(in, rs.Hash); aborted && !given { // else another version followed, and its clock runs
		return abortScaleDown(in, st, rs)
	}
	if named(in, rs.Hash) {
		return time.Time{}, false // its clock starts when nothing names it
	}
	return retireAt(in, st, rs), true
}

// replaced says that something else than the older versions can serve.
func replaced(in In, st v1alpha1.RolloutStatus, b buckets) bool {
	if st.StableRS != "" {
		return b.stable != nil && (available(b.stable) > 0 || in.Replicas == 0)
	}
	return b.candidate != nil && available(b.candidate) >= in.Replicas
}

// retireAt is when a version that no Service names any more may lose its pods: a
// delay after it was seen to have no traffic. When nothing remembers what the
// Services were made to select last, they must have been seen for a while.
func retireAt(in In, st v1alpha1.RolloutStatus, rs ReplicaSet) time.Time {
	if rs.ScaleDownAt != nil {
		return *rs.ScaleDownAt
	}
	if since, zero := atZero(in, st); zero && in.Status.Canary.Weights != nil {
		return since.Add(scaleDownDelay(in))
	}
	delay := scaleDownDelay(in)
	if _, canary := written(in); canary == "" {
		delay = max(delay, settle)
	}
	return in.Now.Add(delay)
}
