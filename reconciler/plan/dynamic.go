package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// dynamic says that stable shrinks as the canary grows (dynamicStableScale), the
// user's exception from law 3.
func dynamic(in In) bool { return routed(in) && canary(in).DynamicStableScale }

// stableNeeds are the pods that stable is to have beside the canary: those of the
// larger of the shares that it has, that are wanted for it and that its step asks
// for; and with a setCanaryScale no fewer than the canary's scale leaves to it. One
// that names replicas says nothing of a share, so that stable stays whole (Argo 2.4).
//
//	the version in progress             stable
//	none, taken back, or not named by
//	the canary Service yet              whole
//	setCanaryScale replicas             whole
//	setCanaryScale weight w             max(whole*(full-w)/full, share of its traffic)
//	otherwise                           share of its traffic
func stableNeeds(in In, st v1alpha1.RolloutStatus) int32 {
	whole, full := in.Replicas, fullWeight(in)
	if !inProgress(st) || confirmationPending(st) || serviceHash(in.Canary) != st.CurrentPodHash {
		return whole
	}
	least := stepWeight(in, index(st))
	if w := st.Canary.Weights; w != nil {
		least = min(least, w.Canary.Weight)
	}
	if in.Routing.Err == "" {
		least = min(least, in.Routing.Canary)
	}
	if set := canaryScale(in, st); set != nil {
		switch {
		case set.Replicas != nil:
			return whole
		case set.Weight != nil:
			least = min(least, max(*set.Weight, 0))
		}
	}
	return floored(in, share(whole, full-least, full))
}

// sizeStable is the size of stable, and when it is to become smaller if it waits
// for that. It grows at once. It shrinks in two passes: the first leaves a deadline
// on the ReplicaSet, the second takes the pods away after it. Between them the
// weights have settled, no observation from before the deadline is left, and who
// goes back to stable knows by the deadline which pods can't be counted on.
func sizeStable(in In, st v1alpha1.RolloutStatus, stable *ReplicaSet) (int32, *time.Time) {
	if !dynamic(in) || stable == nil || in.Replicas == 0 {
		return wholeSize(in, st), nil
	}
	need := stableNeeds(in, st)
	if need >= stable.Desired || !canaryTraffic(in, st) {
		return need, nil
	}
	at, seen := shrinkAt(in, st)
	if !seen || halted(in, st) {
		return stable.Desired, nil
	}
	marked := stable.ScaleDownAt
	if marked == nil {
		later := in.Now.Add(settle)
		if at.After(later) {
			later = at
		}
		return stable.Desired, &later
	}
	if in.Now.Before(*marked) || in.Now.Before(at) {
		return stable.Desired, marked
	}
	return need, nil
}

// countedOn are the pods of stable that can take traffic back. A deadline on it
// says that it may be losing those that the traffic which is seen doesn't need.
func countedOn(in In, st v1alpha1.RolloutStatus) int32 {
	stable := find(in, st.StableRS)
	pods := available(stable)
	if stable == nil || stable.ScaleDownAt == nil || !dynamic(in) {
		return pods
	}
	full := fullWeight(in)
	return min(pods, floored(in, share(in.Replicas, full-in.Routing.Canary, full)))
}

// leastWeight is how far the canary's weight can be lowered: what is taken from it
// must find pods of stable (law 4, second line). 0 where stable is whole by rule,
// and where the canary Service reaches stable itself.
func leastWeight(in In, st v1alpha1.RolloutStatus) int32 {
	if !dynamic(in) || in.Replicas == 0 || serviceHash(in.Canary) == st.StableRS {
		return 0
	}
	pods := countedOn(in, st)
	if pods >= enough(in, in.Replicas) {
		return 0
	}
	full := fullWeight(in)
	return full - int32(int64(full)*int64(pods)/int64(in.Replicas))
}

// waitsForStable is what is said while the weight is above what is wanted because
// stable's pods are still to come.
const waitsForStable = "the traffic goes back as the stable version's pods become available"
