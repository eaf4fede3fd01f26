package plan

import (
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// addExtras adds to what is wanted of the routing the shares of the step's Experiment.
// They are taken from stable's, follow nobody's weight, and go at once when the
// Experiment, its step or its attempt is over.
func addExtras(in In, st v1alpha1.RolloutStatus, w weight) weight {
	if w.hold || in.Routing.Err != "" {
		w.extras = in.Routing.Extras // the routing is left alone
		return w
	}
	w.extras = wantExtras(in, st, w.target)
	return w
}

// wantExtras are the shares that may be there beside the canary's weight. To add one is
// a raise: it follows from the persisted status only, needs all of its pods, and the
// way to them (law 1). One that is there stays while a pod is available.
func wantExtras(in In, st v1alpha1.RolloutStatus, target int32) []routers.Extra {
	e := currentExperiment(in, st)
	if e == nil || e.Terminating || e.Phase != v1alpha1.AnalysisPhaseRunning || takenBack(st) || !usable(in) {
		return nil
	}
	may := ready(in) && !frozen(in, st) && in.Status.Attempt == st.Attempt && in.Status.Canary.CurrentExperiment == e.Name && e.Routed
	var out []routers.Extra
	for _, d := range e.Destinations {
		live := slices.ContainsFunc(in.Routing.Extras, func(x routers.Extra) bool { return x.Service == d.Service && x.Weight >= d.Weight })
		if live && d.Available > 0 || may && d.Ready {
			out = append(out, d.Extra)
		}
	}
	if routers.SumExtras(out) > fullWeight(in)-target {
		return nil // the weight was edited by hand, or can't be lowered
	}
	return out
}

// additional is what the status shows of them.
func additional(in In, w weight) []v1alpha1.WeightDestination {
	var out []v1alpha1.WeightDestination
	for _, x := range w.extras {
		next := v1alpha1.WeightDestination{Weight: x.Weight, ServiceName: x.Service}
		for _, e := range in.Experiments {
			for _, d := range e.Destinations {
				if d.Service == x.Service {
					next.PodTemplateHash = d.Hash
				}
			}
		}
		out = append(out, next)
	}
	return out
}

// freeExperiments names the Experiments that keep their pods because traffic may be sent
// to them, and to which none is any more: they have ended, the routing was seen without
// them for longer than a cache lags behind, and the data plane has that (law 2).
func freeExperiments(in In) []string {
	var out []string
	for _, e := range in.Experiments {
		end, ok := freedAt(in, e)
		if ok && !in.Now.Before(end) && !sentTo(in, e) {
			out = append(out, e.Name)
		}
	}
	slices.Sort(out)
	return out
}

// freedAt is when the pods of an Experiment that has ended may be let go at the
// earliest; false for one that goes on or keeps none.
func freedAt(in In, e Experiment) (time.Time, bool) {
	if !e.Routed || !e.Phase.Completed() || e.Completed == nil {
		return time.Time{}, false
	}
	return e.Completed.Add(settle), true
}

// sentTo says that the routing names a version of an Experiment, or may.
func sentTo(in In, e Experiment) bool {
	if !routed(in) {
		return false
	}
	if in.Routing.Err != "" || in.Routing.Verification == routers.VerificationPending {
		return true
	}
	return slices.ContainsFunc(e.Destinations, func(d Destination) bool {
		inStatus := in.Status.Canary.Weights != nil && slices.ContainsFunc(in.Status.Canary.Weights.Additional, func(w v1alpha1.WeightDestination) bool { return w.ServiceName == d.Service })
		live := slices.ContainsFunc(in.Routing.Extras, func(x routers.Extra) bool { return x.Service == d.Service })
		return inStatus || live || in.Routing.RoutesDiffer && len(in.Routing.Extras) > 0
	})
}

// freesLater is when an Experiment's pods can be let go that can't be yet.
func freesLater(in In, p Plan) (time.Time, bool) {
	for _, e := range in.Experiments {
		if end, ok := freedAt(in, e); ok && !slices.Contains(p.FreeExperiments, e.Name) {
			return end, true
		}
	}
	return time.Time{}, false
}
