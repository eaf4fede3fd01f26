package plan

import (
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// waits says that the live template waits for the end of the version in progress,
// by supersede: Wait. A return to the stable template doesn't, for that is how a
// rollout is called off in Git; nor does one wait for a version without a
// ReplicaSet, which nobody could make any more.
func waits(in In, st v1alpha1.RolloutStatus) bool {
	hash := in.Template.Hash
	return in.Spec.Supersede == v1alpha1.SupersedeWait && inProgress(st) && hash != st.CurrentPodHash && hash != st.StableRS &&
		find(in, st.CurrentPodHash) != nil
}

// inRollbackWindow says that the live template is a recent version to which the
// rollout goes back without steps and analyses: its ReplicaSet is there, is older
// than stable's, and fewer than rollbackWindow.revisions lie between. Age is the
// revision counter; creation times are equal within a second, and older for a
// version that was used again since (Argo 2.10).
func inRollbackWindow(in In, st v1alpha1.RolloutStatus) bool {
	window := in.Spec.RollbackWindow
	target, stable := find(in, in.Template.Hash), find(in, st.StableRS)
	if window == nil || target == nil || stable == nil || target.Deleting || target.Revision < 1 || target.Revision >= stable.Revision {
		return false
	}
	between := int32(0)
	for _, rs := range in.ReplicaSets {
		if rs.Revision > target.Revision && rs.Revision < stable.Revision {
			between++
		}
	}
	return between < window.Revisions
}

func whySkipped(in In, st v1alpha1.RolloutStatus) string {
	if inRollbackWindow(in, st) {
		return fmt.Sprintf("template %s is at most %d revisions older than the stable one (rollbackWindow)", in.Template.Hash, in.Spec.RollbackWindow.Revisions)
	}
	return "this is the first version"
}
