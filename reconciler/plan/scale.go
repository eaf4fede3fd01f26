package plan

import (
	"math"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// canaryScale is the setCanaryScale that holds: the last one at or before the
// current step, for it outlives later steps. None holds after the last step, when
// promoted in full, and for a version that isn't in progress (Argo 2.4).
func canaryScale(in In, st v1alpha1.RolloutStatus) *v1alpha1.SetCanaryScale {
	if !routed(in) || !inProgress(st) || st.PromoteFull || int(index(st)) >= len(steps(in)) {
		return nil
	}
	for i := index(st); i >= 0; i-- {
		if set := steps(in)[i].SetCanaryScale; set != nil {
			return set
		}
	}
	return nil
}

// pinned says that a setCanaryScale sizes the canary apart from its traffic, which
// is the user's word (law 1).
func pinned(in In, st v1alpha1.RolloutStatus) bool {
	set := canaryScale(in, st)
	return set != nil && (set.Replicas != nil || set.Weight != nil)
}

// podsFor are the pods that the version in progress is to have at a weight, where
// a side with all of the traffic has whole. Traffic needs one pod in any case, and
// so does a managed route, which sends requests at any weight.
func podsFor(in In, st v1alpha1.RolloutStatus, whole, weight int32) int32 {
	if previewing(in, st) && weight == 0 {
		return previewSize(in, whole)
	}
	pods := floored(in, share(whole, weight, fullWeight(in)))
	if set := canaryScale(in, st); set != nil {
		switch {
		case set.Replicas != nil:
			pods = max(*set.Replicas, 0)
		case set.Weight != nil:
			pods = floored(in, share(whole, min(max(*set.Weight, 0), fullWeight(in)), fullWeight(in)))
		}
	}
	if weight > 0 && whole > 0 || len(wantRoutes(in, st)) > 0 {
		pods = max(pods, 1)
	}
	return pods
}

// floored holds a side that has pods to minPodsPerReplicaSet, at most spec.replicas.
func floored(in In, pods int32) int32 {
	least := canary(in).MinPodsPerReplicaSet
	if least == nil || pods == 0 || !routed(in) {
		return pods
	}
	return max(pods, min(*least, in.Replicas))
}

// enough is how many of a side's pods must be available to go on, by
// replicaProgressThreshold: a percentage is rounded up, and one pod is the least.
func enough(in In, pods int32) int32 {
	threshold := canary(in).ReplicaProgressThreshold
	if threshold == nil || pods == 0 {
		return pods
	}
	least := threshold.Value
	if threshold.Type != v1alpha1.ThresholdPods {
		least = share(pods, threshold.Value, 100)
	}
	return min(max(least, 1), pods)
}

// shrinkAt is when a side may give up pods that the weights which are wanted don't
// need: some time after these were seen, so that no traffic of before is left, nor
// an observation of before. Where the router can't verify, scaleDownDelaySeconds
// stands in. False while they aren't seen.
func shrinkAt(in In, st v1alpha1.RolloutStatus) (time.Time, bool) {
	w := st.Canary.Weights
	if in.Routing.Err != "" || w == nil || w.Since == nil || !in.Routing.Uniform ||
		in.Routing.Canary != w.Canary.Weight || in.Routing.Verification == routers.VerificationPending {
		return time.Time{}, false
	}
	wait := settle
	if in.Routing.Verification == routers.VerificationUnknown {
		wait = max(wait, scaleDownDelay(in))
	}
	return w.Since.Add(wait), true
}

// shrinkable says that shrinkAt has come.
func shrinkable(in In, st v1alpha1.RolloutStatus) bool {
	at, seen := shrinkAt(in, st)
	return seen && !in.Now.Before(at)
}

// candidateSize is what the current step asks for, and at least what the weight
// that is seen or wanted needs. It shrinks at a setCanaryScale step only, which is
// done when the smaller size was seen; not at a lower weight, for an observation
// from before it shrank would pass for pods that a later, higher weight could be
// given to (law 1). It grows by batches where maxSurge is set.
func candidateSize(in In, st v1alpha1.RolloutStatus, rs *ReplicaSet) int32 {
	if confirmationPending(st) {
		return desired(rs)
	}
	if st.StableRS == "" || in.Replicas == 0 {
		return in.Replicas
	}
	size := askedSize(in, st, rs)
	if scaling(in, st) && !halted(in, st) && shrinkable(in, st) {
		return size
	}
	return max(size, desired(rs))
}

// askedSize is what the current step asks for, and at least what the weight that is
// seen or wanted needs, whatever the version has now.
func askedSize(in In, st v1alpha1.RolloutStatus, rs *ReplicaSet) int32 {
	whole := wholeSize(in, st)
	weight, live := stepWeight(in, index(st)), int32(0)
	if serviceHash(in.Canary) == st.CurrentPodHash {
		live = liveWeight(in, st)
	}
	need, serving := podsFor(in, st, whole, weight), share(whole, live, fullWeight(in))
	if pinned(in, st) {
		serving = min(serving, desired(rs)) // traffic keeps the pods that it has, and asks for no more
	}
	if halted(in, st) { // no pods beyond what is there and what the live weight needs
		need = max(min(serving, podsFor(in, st, whole, min(weight, live))), min(need, desired(rs)))
	}
	return max(min(need, nextBatch(in, rs)), serving)
}

// scaling says that the current step is a setCanaryScale.
func scaling(in In, st v1alpha1.RolloutStatus) bool {
	return canaryScale(in, st) != nil && steps(in)[index(st)].SetCanaryScale != nil
}

// liveWeight is the larger of the canary's weight that is seen and that is wanted.
func liveWeight(in In, st v1alpha1.RolloutStatus) int32 {
	live := in.Routing.Canary
	if w := st.Canary.Weights; w != nil {
		live = max(live, w.Canary.Weight)
	}
	return live
}

// atScale says that the version in progress has the size that its step asks for.
func atScale(in In, st v1alpha1.RolloutStatus, rs *ReplicaSet) bool {
	if rs == nil || rs.Replicas != rs.Desired {
		return false
	}
	if st.StableRS == "" || in.Replicas == 0 {
		return rs.Desired == in.Replicas
	}
	return rs.Desired == askedSize(in, st, rs)
}

// nextBatch is the size that a version may grow to now. A maxSurge that is set
// bounds how many pods start at a time, although stable stays whole: the next
// ones start when enough that were asked for are available. Without one all start
// at once, and so does what the live weight needs, as when a scaler asks for it.
func nextBatch(in In, rs *ReplicaSet) int32 {
	set := canary(in).MaxSurge
	switch {
	case set == nil:
		return math.MaxInt32
	case available(rs) < enough(in, desired(rs)):
		return desired(rs)
	}
	batch := max(podCount(set, in.Replicas, true), 1)
	return int32(min(int64(desired(rs))+int64(batch), math.MaxInt32))
}
