package plan

import (
	"math"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// wholeSize is the size of a side that takes all the traffic: spec.replicas.
// While the canary has traffic a scaler counts the pods of both versions, so the
// size may rise then and not fall; only a size of 0 is a person's word.
func wholeSize(in In, st v1alpha1.RolloutStatus) int32 {
	if !routed(in) || !canaryTraffic(in, st) {
		return in.Replicas
	}
	return wholeUnderTraffic(in, st)
}

// wholeUnderTraffic is what wholeSize is as soon as the canary has traffic.
func wholeUnderTraffic(in In, st v1alpha1.RolloutStatus) int32 {
	if in.Replicas == 0 {
		return 0
	}
	return max(in.Replicas, desired(find(in, st.StableRS)))
}

// sizeRouted returns the pods of each version with a router, and the deadlines
// of those that are to go.
func sizeRouted(in In, st v1alpha1.RolloutStatus, b buckets) (sizes, map[string]time.Time) {
	want, deadlines := sizes{}, map[string]time.Time{}
	if st.StableRS != "" && (b.stable != nil || st.StableRS == in.Template.Hash) {
		want[st.StableRS] = wholeSize(in, st) // law 3
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
	if _, aborted := abortedAt(st, rs.Hash); aborted {
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

// candidateSize is what the current step asks for, and at least what the weight
// that is seen or wanted needs. It never shrinks while the version is in progress,
// also not at a step with a lower weight: an observation from before it shrank
// would pass for pods that a later, higher weight could be given to (law 1). It
// grows by batches where maxSurge is set.
func candidateSize(in In, st v1alpha1.RolloutStatus, rs *ReplicaSet) int32 {
	if confirmationPending(st) {
		return desired(rs)
	}
	if st.StableRS == "" {
		return in.Replicas
	}
	whole := wholeSize(in, st)
	weight := stepWeight(in, index(st))
	need := podsFor(in, st, whole, weight)
	live := int32(0)
	if serviceHash(in.Canary) == st.CurrentPodHash {
		live = in.Routing.Canary
		if w := st.Canary.Weights; w != nil {
			live = max(live, w.Canary.Weight)
		}
	}
	if halted(in, st) { // no pods beyond what is there and what the live weight needs
		need = max(share(whole, min(weight, live), fullWeight(in)), min(need, desired(rs)))
	}
	if in.Replicas == 0 {
		return 0
	}
	return max(min(need, nextBatch(in, rs)), share(whole, live, fullWeight(in)), desired(rs))
}

// nextBatch is the size that a version may grow to now. A maxSurge that is set
// bounds how many pods start at a time, although stable stays whole: the next
// ones start when all that were asked for are available. Without one all start at
// once, and so does what the live weight needs, as when a scaler asks for it.
func nextBatch(in In, rs *ReplicaSet) int32 {
	set := canary(in).MaxSurge
	switch {
	case set == nil:
		return math.MaxInt32
	case available(rs) < desired(rs):
		return desired(rs)
	}
	batch := max(podCount(set, in.Replicas, true), 1)
	return int32(min(int64(desired(rs))+int64(batch), math.MaxInt32))
}
