package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// looksEvery is how often at most a status is written for what is only there to be
// looked at: counts of pods and the wording of messages.
const looksEvery = time.Second

// lastWrites are the times of the last status write of each Rollout, by the
// controller's clock. They are a matter of economy: what is lost with the process is
// written once more often.
type lastWrites struct{ times sync.Map }

func (l *lastWrites) note(rollout types.NamespacedName, at time.Time) { l.times.Store(rollout, at) }

func (l *lastWrites) forget(rollout types.NamespacedName) { l.times.Delete(rollout) }

// recent says that the last write was less than looksEvery ago.
func (l *lastWrites) recent(rollout types.NamespacedName, now time.Time) bool {
	at, known := l.times.Load(rollout)
	if !known {
		return false
	}
	age := now.Sub(at.(time.Time))
	return age >= 0 && age < looksEvery
}

// looksOnly says that two statuses differ in nothing that a decision, a scaler or a
// script goes by: only in counts of pods and in texts.
func looksOnly(a, b v1alpha1.RolloutStatus) bool {
	return equality.Semantic.DeepEqual(withoutLooks(a), withoutLooks(b))
}

func withoutLooks(st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	st.Message = ""
	st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas = 0, 0, 0, 0
	conditions := make([]metav1.Condition, len(st.Conditions))
	for i, c := range st.Conditions {
		conditions[i] = c
		conditions[i].Message = ""
	}
	st.Conditions = conditions
	return st
}
