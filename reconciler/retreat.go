package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// retreats remember for which attempts of Rollouts the traffic was taken back in a
// pass of its own, so that it is tried so once.
type retreats struct{ begun sync.Map }

type retreat struct {
	uid     types.UID
	attempt int64
}

// first says that this is the first retreat of an attempt.
func (r *retreats) first(rollout types.NamespacedName, of retreat) bool {
	before, known := r.begun.Swap(rollout, of)
	return !known || before != of
}

func (r *retreats) forget(rollout types.NamespacedName) { r.begun.Delete(rollout) }

// retreatOf cuts a plan that takes traffic back for a new abort down to just that,
// and says whether it is one. Where many Rollouts are condemned at once, the weights of
// all are written before the rest of any: the next pass decides on that as after a
// crash between the two.
func retreatOf(in plan.In, decided plan.Plan) (plan.Plan, bool) {
	out := plan.Plan{Status: in.Status, WakeAfter: gather}
	if !decided.Status.Abort || in.Status.Abort && in.Status.Attempt == decided.Status.Attempt {
		return out, false
	}
	out.Split = decided.Split
	for _, service := range decided.Services {
		if service.Routes {
			out.Services = append(out.Services, service)
		}
	}
	for _, e := range decided.Events { // once the weight is seen at 0 nobody tells of it
		if e.Reason == v1alpha1.ReasonTrafficWeightUpdated {
			out.Events = append(out.Events, e)
		}
	}
	return out, out.Split != nil || len(out.Services) > 0
}
