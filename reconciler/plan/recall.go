package plan

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// recall returns the status to go on from: the persisted one, and what was lost
// of it derived again from the marks on the ReplicaSets and from the Services
// (law 7). It never goes further than what was persisted.
func recall(in In) (v1alpha1.RolloutStatus, []Event) {
	st := *in.Status.DeepCopy()
	st.Canary.Weights = rescaled(in)
	lost := st.Attempt == 0
	if lost {
		st.Rejected = append(st.Rejected, rejectedByMark(in, st)...)
	}
	if st.StableRS != "" {
		return st, nil
	}
	found := deriveStable(in, st)
	if found == "" {
		return st, nil
	}
	st.StableRS = found
	if found == st.CurrentPodHash && !st.Abort {
		// It was promoted, and the status that says so was lost: it waits for nothing but a person.
		waits := dropPause(st, v1alpha1.PauseReasonCanaryPauseStep, v1alpha1.PauseReasonInconclusiveAnalysis, v1alpha1.PauseReasonInconclusiveExperiment, v1alpha1.PauseReasonIrreversibleUnconfirmed)
		st = makeStable(in, st)
		st.PauseConditions = waits.PauseConditions
	}
	if inProgress(st) && len(steps(in)) > 0 && int(index(st)) >= len(steps(in)) {
		// It was taken for a first version, which it isn't: its steps count.
		st = restartSteps(in, st)
	}
	return st, []Event{{Reason: v1alpha1.ReasonRolloutUpdated, Message: fmt.Sprintf(
		"Took ReplicaSet %s for the stable version, as it serves", setName(in, found))}}
}

// deriveStable says which version is stable when the status doesn't: by its mark,
// else by the stable Service, else the one that serves with the most pods. The
// current version is only taken by mark or Service: pods alone don't say that
// its steps were taken.
func deriveStable(in In, st v1alpha1.RolloutStatus) string {
	sets := slices.Clone(in.ReplicaSets)
	slices.SortFunc(sets, func(a, b ReplicaSet) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Hash, b.Hash))
	})
	for _, rs := range sets {
		if rs.Role == v1alpha1.RoleStable && !rs.Deleting {
			return rs.Hash
		}
	}
	best := ""
	most := int32(0)
	for _, rs := range sets {
		if rs.Role == v1alpha1.RoleRejected || isRejected(st, rs.Hash) || rs.Deleting {
			continue
		}
		if in.Stable != nil && in.Stable.Hash == rs.Hash && size(&rs) > 0 {
			return rs.Hash
		}
		if rs.Hash != in.Template.Hash && rs.Hash != st.CurrentPodHash && available(&rs) > most {
			best, most = rs.Hash, available(&rs)
		}
	}
	return best
}

// rejectedByMark rebuilds status.rejected from the marks on ReplicaSets. Which
// attempt failed is known only while its Revert exists; otherwise no revert is
// asked for, lest there be a second one.
func rejectedByMark(in In, st v1alpha1.RolloutStatus) []v1alpha1.RejectedVersion {
	var out []v1alpha1.RejectedVersion
	for _, rs := range in.ReplicaSets {
		if rs.Role != v1alpha1.RoleRejected || findRejected(st, rs.Hash) != nil {
			continue
		}
		entry := v1alpha1.RejectedVersion{
			Hash: rs.Hash, Reason: v1alpha1.AbortFailed, Time: metav1.NewTime(in.Now),
			Message: "rejected before the status was lost; the mark on its ReplicaSet is what is left",
			Revert:  v1alpha1.RevertPhaseNone, RevertReason: "the status was lost",
		}
		for _, revert := range in.Reverts {
			if revert.Hash == rs.Hash && revert.Attempt >= entry.Attempt {
				entry.Attempt = revert.Attempt
				entry.Revert = seenPhase(revert)
				entry.RevertReason, entry.RevertCommit = revert.Reason, revert.Commit
			}
		}
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b v1alpha1.RejectedVersion) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Hash, b.Hash))
	})
	return out
}

// nextAttempt is higher than any attempt that left a trace, so that no verdict
// and no revert of an earlier one can be taken for its own (laws 11 and 12).
func nextAttempt(in In, st v1alpha1.RolloutStatus) int64 {
	last := st.Attempt
	for _, run := range in.Runs {
		last = max(last, run.Attempt)
	}
	for _, e := range in.Experiments {
		last = max(last, e.Attempt)
	}
	for _, revert := range in.Reverts {
		last = max(last, revert.Attempt)
	}
	for _, rejected := range st.Rejected {
		last = max(last, rejected.Attempt)
	}
	if st.Attempt == 0 { // lost: every revision was an attempt
		for _, rs := range in.ReplicaSets {
			made := rs.Revision
			if len(in.ReplicaSets) == 1 && rs.Hash == in.Template.Hash && rs.Role == "" {
				made-- // by the pass that starts this attempt, which then left no status
			}
			last = max(last, made)
		}
	}
	return last + 1
}

func setName(in In, hash string) string {
	if rs := find(in, hash); rs != nil && rs.Name != "" {
		return rs.Name
	}
	return in.Name + "-" + hash
}
