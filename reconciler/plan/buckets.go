package plan

import (
	"cmp"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// buckets sorts the ReplicaSets by what they are to the status.
type buckets struct {
	// stable is the ReplicaSet of status.stableRS; nil when it doesn't exist.
	stable *ReplicaSet
	// candidate is the ReplicaSet of status.currentPodHash while that isn't
	// stable, also after an abort; nil when it doesn't exist.
	candidate *ReplicaSet
	// others are the rest, oldest first.
	others []ReplicaSet
}

func sortOut(in In, st v1alpha1.RolloutStatus) buckets {
	var b buckets
	for _, rs := range in.ReplicaSets {
		switch rs.Hash {
		case st.StableRS:
			b.stable = &rs
		case st.CurrentPodHash:
			b.candidate = &rs
		default:
			b.others = append(b.others, rs)
		}
	}
	slices.SortFunc(b.others, func(a, c ReplicaSet) int {
		return cmp.Or(cmp.Compare(a.Revision, c.Revision), cmp.Compare(a.Hash, c.Hash))
	})
	return b
}

// inProgress says that a version is on its way to become stable.
func inProgress(st v1alpha1.RolloutStatus) bool {
	return st.CurrentPodHash != "" && st.CurrentPodHash != st.StableRS && !st.Abort
}

// takenBack says that the current version was aborted.
func takenBack(st v1alpha1.RolloutStatus) bool {
	return st.Abort && st.CurrentPodHash != st.StableRS
}

// available is how many pods of a ReplicaSet can be counted on: pods above its
// wanted size are about to go.
func available(rs *ReplicaSet) int32 {
	if rs == nil || rs.Deleting {
		return 0
	}
	return max(min(rs.Available, rs.Desired), 0)
}

// size is how many pods a ReplicaSet has or is to have, whichever is more.
func size(rs *ReplicaSet) int32 {
	if rs == nil {
		return 0
	}
	return max(rs.Desired, rs.Replicas)
}

func find(in In, hash string) *ReplicaSet {
	for _, rs := range in.ReplicaSets {
		if rs.Hash == hash && hash != "" {
			return &rs
		}
	}
	return nil
}

// isNew says that nothing but hash can be serving: no other ReplicaSet has pods
// and no Service with endpoints names another hash (law 7). Only then are a
// version's steps skipped.
func isNew(in In, hash string) bool {
	for _, rs := range in.ReplicaSets {
		if rs.Hash != hash && size(&rs) > 0 {
			return false
		}
	}
	return !namesAnother(in.Stable, hash) && !namesAnother(in.Canary, hash)
}

// namesAnother says that a Service selects another hash and isn't known to have
// no endpoint there.
func namesAnother(service *Service, hash string) bool {
	if service == nil || service.Hash == "" || service.Hash == hash {
		return false
	}
	return service.ReadyHashes == nil || service.ReadyHashes[service.Hash] > 0
}

// named says that a Service sends what it gets to this hash: by its selector, by
// endpoints that are left from it, or by the selector that was written last and
// may not be seen yet.
func named(in In, hash string) bool {
	for _, service := range []*Service{in.Stable, in.Canary, in.Active, in.Preview} {
		if service == nil || service.Hash == "" {
			continue
		}
		if service.Hash == hash || service.ReadyHashes[hash] > 0 {
			return true
		}
	}
	stable, canary := written(in)
	return hash != "" && (stable == hash || canary == hash)
}

// written are the hashes that the Services were made to select last, as the
// persisted status remembers; empty when it doesn't.
func written(in In) (stable, canary string) {
	w := in.Status.Canary.Weights
	if w == nil || !routed(in) {
		return "", ""
	}
	return w.Stable.PodTemplateHash, w.Canary.PodTemplateHash
}

// confirmationPending says that a person is to be asked before the first pod.
func confirmationPending(st v1alpha1.RolloutStatus) bool {
	return hasPause(st, v1alpha1.PauseReasonIrreversibleUnconfirmed)
}

// frozen says that a person or Git has paused the Rollout.
func frozen(in In, st v1alpha1.RolloutStatus) bool {
	return in.Spec.Paused || hasPause(st, v1alpha1.PauseReasonUser)
}

// halted says that a version in progress may not go on for now.
func halted(in In, st v1alpha1.RolloutStatus) bool { return frozen(in, st) || !ready(in) }

func hasPause(st v1alpha1.RolloutStatus, reason v1alpha1.PauseReason) bool {
	return slices.ContainsFunc(st.PauseConditions, func(p v1alpha1.PauseCondition) bool { return p.Reason == reason })
}

func index(st v1alpha1.RolloutStatus) int32 {
	if st.CurrentStepIndex == nil {
		return 0
	}
	return max(*st.CurrentStepIndex, 0)
}
