package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// maxRejected is how many rejected versions the status keeps.
const maxRejected = 20

// maxLines is how many measurements a Revert carries.
const maxLines = 10

func findRejected(st v1alpha1.RolloutStatus, hash string) *v1alpha1.RejectedVersion {
	for i := range st.Rejected {
		if st.Rejected[i].Hash == hash {
			return &st.Rejected[i]
		}
	}
	return nil
}

// isRejected says that a hash failed and that no person has lifted the hold.
func isRejected(st v1alpha1.RolloutStatus, hash string) bool {
	entry := findRejected(st, hash)
	return entry != nil && !entry.Cleared
}

// cause is why a version is taken back.
type cause struct {
	reason  v1alpha1.AbortReason
	message string
	run     string
	keepGit bool
}

// reject records the version in progress as failed, newest last, and whether its
// commit is to be reverted.
func reject(in In, st v1alpha1.RolloutStatus, why cause) v1alpha1.RolloutStatus {
	entry := v1alpha1.RejectedVersion{
		Hash: st.CurrentPodHash, Attempt: st.Attempt, Reason: why.reason, Message: why.message,
		AnalysisRun: why.run, Time: metav1.NewTime(in.Now),
		Retried: retryMark(in, st.CurrentPodHash), // spoken before it failed
	}
	if in.Source != nil && in.Source.Hash == entry.Hash {
		entry.Commit = in.Source.Revision
	}
	entry.Revert, entry.RevertReason = revertWish(in, entry, why)
	kept := slices.DeleteFunc(slices.Clone(st.Rejected), func(r v1alpha1.RejectedVersion) bool { return r.Hash == entry.Hash })
	kept = append(kept, entry)
	st.Rejected = kept[max(0, len(kept)-maxRejected):]
	return st
}

// revertWish is empty when a Revert is wanted; otherwise None with the reason.
func revertWish(in In, entry v1alpha1.RejectedVersion, why cause) (v1alpha1.RevertPhase, string) {
	switch {
	case why.keepGit:
		return v1alpha1.RevertPhaseNone, "the person who aborted it asked to leave Git alone"
	case in.Source == nil:
		return v1alpha1.RevertPhaseNone, "the Rollout does not come from a GitSync"
	case !slices.Contains(in.RevertOn, why.reason):
		return v1alpha1.RevertPhaseNone, notReverted(why.reason)
	case in.Source.Hash != entry.Hash:
		return v1alpha1.RevertPhaseNone, "Git does not declare this template: the live one was edited"
	}
	return "", ""
}

func notReverted(reason v1alpha1.AbortReason) string {
	return fmt.Sprintf("revert.on does not include %s, or revert.mode is None", reason)
}

// retryMark identifies the trailer that speaks of a hash; empty when none does.
func retryMark(in In, hash string) string {
	if in.Source == nil || !slices.Contains(in.Source.RetryHashes, hash) {
		return ""
	}
	return in.Source.Revision + " " + strings.Join(in.Source.RetryHashes, ",")
}

// heedTrailers lifts the hold on hashes that a commit's Pushback-Retry trailer
// names, once for each commit: the trailer stays in Git when the version fails
// again, and must not start it for ever.
func heedTrailers(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	var events []Event
	for i := range st.Rejected {
		entry := &st.Rejected[i]
		mark := retryMark(in, entry.Hash)
		if mark == "" || mark == entry.Retried || entry.Cleared {
			continue
		}
		entry.Cleared, entry.Retried = true, mark
		events = append(events, Event{Reason: v1alpha1.ReasonRetry, Message: fmt.Sprintf(
			"Lifted the hold on template %s: a trailer of commit %s asks for it", entry.Hash, in.Source.Revision)})
	}
	return st, events
}

// lifted says that the hold on what the current, aborted attempt failed with was
// lifted by a trailer: its version is to start again.
func lifted(st v1alpha1.RolloutStatus) bool {
	entry := findRejected(st, st.CurrentPodHash)
	return takenBack(st) && entry != nil && entry.Cleared && entry.Attempt == st.Attempt
}

// followReverts copies what became of the Reverts into the status, and gives up
// those that are not needed any more before they were asked for.
func followReverts(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	var events []Event
	for i := range st.Rejected {
		entry := &st.Rejected[i]
		if revert := findRevert(in, *entry); revert != nil {
			if phase := seenPhase(*revert); phase != entry.Revert {
				entry.Revert = phase
				events = append(events, revertEvent(*entry, *revert)...)
			}
			entry.RevertReason = revert.Reason
			entry.RevertCommit = revert.Commit
			continue
		}
		if entry.Revert == v1alpha1.RevertPending || entry.Revert == v1alpha1.RevertBlocked {
			// Somebody deleted it before it was worked off: Git still claims the version.
			entry.Revert, entry.RevertReason = "", ""
		}
		if entry.Revert != "" {
			continue
		}
		switch {
		case entry.Cleared:
			entry.Revert, entry.RevertReason = v1alpha1.RevertPhaseNone, "a person lifted the hold first"
		case in.Source == nil:
			entry.Revert, entry.RevertReason = v1alpha1.RevertPhaseNone, "the Rollout does not come from a GitSync"
		case in.Source.Hash == st.StableRS && st.StableRS != "":
			entry.Revert, entry.RevertReason = v1alpha1.RevertAlreadyReverted, "Git declares the stable template"
		case in.Source.Hash != entry.Hash:
			entry.Revert, entry.RevertReason = v1alpha1.RevertSuperseded, "Git declares another template"
		case !slices.Contains(in.RevertOn, entry.Reason):
			entry.Revert, entry.RevertReason = v1alpha1.RevertPhaseNone, notReverted(entry.Reason)
		}
	}
	return st, events
}

func findRevert(in In, entry v1alpha1.RejectedVersion) *Revert {
	for i := range in.Reverts {
		if in.Reverts[i].Hash == entry.Hash && in.Reverts[i].Attempt == entry.Attempt {
			return &in.Reverts[i]
		}
	}
	return nil
}

// seenPhase is the phase of a Revert that exists: Pending until it says otherwise.
func seenPhase(revert Revert) v1alpha1.RevertPhase {
	if revert.Phase == "" {
		return v1alpha1.RevertPending
	}
	return revert.Phase
}

func revertEvent(entry v1alpha1.RejectedVersion, revert Revert) []Event {
	switch entry.Revert {
	case v1alpha1.RevertObserved, v1alpha1.RevertAlreadyReverted:
		return []Event{{Reason: v1alpha1.ReasonReverted, Message: fmt.Sprintf(
			"Git declares the stable template again; template %s is reverted%s", entry.Hash, inCommit(revert.Commit))}}
	case v1alpha1.RevertBlocked:
		return []Event{{Warning: true, Reason: v1alpha1.ReasonRevertBlocked, Message: fmt.Sprintf(
			"The revert of template %s is blocked (%s): %s", entry.Hash, revert.Reason, revert.Message)}}
	}
	return nil
}

func inCommit(commit string) string {
	if commit == "" {
		return ""
	}
	return " by commit " + commit
}

// wantRevert asks for the oldest revert that is still to be created. It is made
// from the status alone, so that a crash before it repeats it word for word; its
// name makes it one per hash and attempt (law 12).
func wantRevert(in In, st v1alpha1.RolloutStatus) *RevertWant {
	for _, entry := range st.Rejected {
		if entry.Revert != "" || in.Source == nil {
			continue
		}
		want := &RevertWant{
			Name: fmt.Sprintf("%s-%s-%d", in.Name, entry.Hash, entry.Attempt),
			Spec: v1alpha1.RevertRequest{
				Rollout:  v1alpha1.RevertRollout{Namespace: in.Namespace, Name: in.Name},
				GitSync:  v1alpha1.RevertGitSync{Namespace: in.Source.GitSyncNamespace, Name: in.Source.GitSyncName},
				Rejected: entry.Hash, Stable: st.StableRS, Attempt: entry.Attempt,
				Reason: entry.Reason, Message: entry.Message,
				RejectedRevision: entry.Commit, AnalysisRun: entry.AnalysisRun, AbortedAt: entry.Time,
			},
		}
		if in.Source.Hash == entry.Hash {
			want.Spec.RejectedSubject = in.Source.Subject
		}
		for _, run := range in.Runs {
			if run.Name == entry.AnalysisRun && run.Name != "" {
				want.Spec.Measurements = slices.Clone(run.Measurements[:min(len(run.Measurements), maxLines)])
			}
		}
		return want
	}
	return nil
}
