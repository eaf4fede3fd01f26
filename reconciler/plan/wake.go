package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// How soon to look again where no event of the cluster is sure to come.
const (
	wakeSoon    = 250 * time.Millisecond // the next stage follows from what this one wrote
	wakeTraffic = 2 * time.Second        // weights and endpoints on their way
	wakeRetry   = 5 * time.Second        // a router in trouble
	wakeMissing = 20 * time.Second       // what the spec names isn't there, or can't be used
)

// wake is when to decide again: the earliest of all that is due.
func wake(in In, p Plan, changed bool) time.Duration {
	st := p.Status
	var due []time.Duration
	at := func(t time.Time) {
		if !t.After(in.Now) {
			t = in.Now.Add(wakeTraffic) // overdue: something else is being waited for
		}
		due = append(due, t.Sub(in.Now))
	}
	if changed || len(p.Services) > 0 {
		due = append(due, wakeSoon)
	}
	if p.Split != nil || len(p.ReplicaSets) > 0 || len(p.Runs) > 0 || len(p.Experiments) > 0 || p.Revert != nil {
		due = append(due, wakeTraffic)
	}
	if !ready(in) {
		due = append(due, wakeMissing)
	}
	if routed(in) {
		if in.Routing.Err != "" {
			due = append(due, wakeRetry)
		} else if onTheMove(in, st) || in.Routing.Verification == routers.VerificationPending {
			due = append(due, wakeTraffic)
		}
	}
	if end, later := freesLater(in, p); later {
		at(end)
	}
	if end, later := shrinksLater(in, st); later {
		at(end)
	}
	if st.Progress != nil && !overdue(in, st) {
		at(st.Progress.Since.Add(progressDeadline(in)))
	}
	if end, timed := pauseEnd(in, st); timed {
		at(end)
	}
	for _, rs := range in.ReplicaSets {
		if rs.Desired > 0 && rs.ScaleDownAt != nil && (rs.Hash != st.StableRS || dynamic(in)) {
			at(*rs.ScaleDownAt)
		}
	}
	for _, set := range p.ReplicaSets {
		if set.ScaleDownAt != nil {
			at(*set.ScaleDownAt)
		}
	}
	if len(due) == 0 {
		return 0
	}
	earliest := due[0]
	for _, d := range due {
		earliest = min(earliest, d)
	}
	return earliest
}

// onTheMove says that traffic or endpoints are on their way somewhere.
func onTheMove(in In, st v1alpha1.RolloutStatus) bool {
	switch {
	case inProgress(st) && !frozen(in, st) && !confirmationPending(st):
		return !atWeight(in, st) || serviceHash(in.Canary) != st.CurrentPodHash
	case st.StableRS == "":
		return false
	}
	wrong := in.Replicas > 0 && in.Stable != nil && in.Stable.Hash != st.StableRS
	for _, name := range canaryNames(in, st) {
		movable := in.Replicas > 0 || in.Canary.Hash == st.StableRS // or only what was remembered of it is wrong
		wrong = wrong || movable && name != st.StableRS && !lingers(in, st, in.Canary.Hash)
	}
	return wrong || in.Routing.Canary > 0 || !in.Routing.NoRoutes() || len(in.Routing.Extras) > 0 || !in.Routing.Uniform || st.Canary.Weights == nil || st.Canary.Weights.Since == nil
}

// canaryNames are the hashes that the canary Service is seen to select, or was to
// select last.
func canaryNames(in In, st v1alpha1.RolloutStatus) []string {
	if in.Canary == nil {
		return nil
	}
	names := []string{in.Canary.Hash}
	if w := st.Canary.Weights; w != nil && w.Canary.PodTemplateHash != "" {
		names = append(names, w.Canary.PodTemplateHash)
	}
	return names
}

func pauseEnd(in In, st v1alpha1.RolloutStatus) (time.Time, bool) {
	i := int(index(st))
	if !inProgress(st) || i >= len(steps(in)) || steps(in)[i].Pause == nil || st.StepStartedAt == nil || frozen(in, st) ||
		inconclusive(st) {
		return time.Time{}, false
	}
	length, timed := pauseLength(*steps(in)[i].Pause)
	return st.StepStartedAt.Add(length), timed
}

// shrinksLater is when the version in progress, or a stable one beside it, may give
// up pods that its step doesn't ask for any more; false when it has none.
func shrinksLater(in In, st v1alpha1.RolloutStatus) (time.Time, bool) {
	if dynamic(in) && inProgress(st) && desired(find(in, st.StableRS)) > stableNeeds(in, st) {
		end, seen := shrinkAt(in, st)
		return end, seen && end.After(in.Now)
	}
	if !scaling(in, st) || desired(find(in, st.CurrentPodHash)) <= stepSize(in, st) {
		return time.Time{}, false
	}
	end, seen := shrinkAt(in, st)
	return end, seen && end.After(in.Now)
}
