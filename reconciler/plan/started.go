package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// keepStart notes when an attempt began. Steps that were edited on the way make
// another attempt of the same rollout, which has been going on since its own start.
func keepStart(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	was := in.Status
	goesOn := inProgress(was) && was.CurrentPodHash == st.CurrentPodHash && was.StartedAt != nil
	if st.Attempt == was.Attempt || goesOn {
		return st
	}
	now := metav1.NewTime(in.Now)
	st.StartedAt = &now
	return st
}
