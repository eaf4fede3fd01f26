package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// settle is how long a weight of 0 must have been seen before anything is done
// that only a weight of 0 allows: longer than a cache lags behind, so that an
// observation from before the last raise can't pass for one from after it.
const settle = 5 * time.Second

// weight is what is wanted of the routing in this pass.
type weight struct {
	// target for the canary Service, of fullWeight.
	target int32
	// routes are the managed routes beside it.
	routes []routers.ManagedRoute
	// extras take a part of stable's share.
	extras []routers.Extra
	// hold leaves the routing alone, for the reason given; target is what it has.
	hold bool
	why  string
	// stranded is true when traffic can't go back because no pod of stable is available.
	stranded bool
}

// noticeWeights notes in the status what is seen of the weights that were wanted.
func noticeWeights(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	if !routed(in) {
		st.Canary.Weights = nil
		return st
	}
	if st.Canary.Weights == nil || in.Routing.Err != "" {
		return st
	}
	w := st.Canary.Weights.DeepCopy()
	pending := in.Routing.Verification == routers.VerificationPending
	switch {
	case in.Routing.Canary != w.Canary.Weight || !in.Routing.Uniform || !routesInOrder(in, st):
		w.Since = nil
	case w.Since == nil && !pending:
		now := metav1.NewTime(in.Now)
		w.Since = &now
	}
	w.Verified = verified(in.Routing.Verification)
	st.Canary.Weights = w
	return st
}

// rescaled are the persisted weights as shares of today's whole: maxTrafficWeight
// may have been edited since. They have yet to be seen then.
func rescaled(in In) *v1alpha1.TrafficWeights {
	w := in.Status.Canary.Weights.DeepCopy()
	if w == nil {
		return nil
	}
	was, full := w.Canary.Weight+w.Stable.Weight, fullWeight(in)
	for _, more := range w.Additional {
		was += more.Weight
	}
	if was == full || was < 1 {
		return w
	}
	w.Canary.Weight = min(share(full, w.Canary.Weight, was), full)
	w.Stable.Weight, w.Additional = full-w.Canary.Weight, nil
	w.Since = nil
	return w
}

func verified(v routers.Verification) *bool {
	yes, no := true, false
	switch v {
	case routers.Verified:
		return &yes
	case routers.VerificationPending:
		return &no
	}
	return nil
}

// doubtWeights forgets when a weight was seen if the persisted status allowed a
// higher one, or another managed route, until now: a pass that crashed may have
// raised it without leaving a word, and an old observation must not pass for one
// from after that.
func doubtWeights(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	w := st.Canary.Weights
	if w == nil || w.Since == nil {
		return st
	}
	before := allowed(in, in.Status)
	if before > allowed(in, st) && before > w.Canary.Weight || routesDoubted(in, st) {
		w = w.DeepCopy()
		w.Since = nil
		st.Canary.Weights = w
	}
	return st
}

// allowed is the most that a status lets the canary have; all of it when its
// steps have been edited since.
func allowed(in In, st v1alpha1.RolloutStatus) int32 {
	switch {
	case !inProgress(st) || confirmationPending(st):
		return 0
	case st.CurrentStepHash != stepHash(in, index(st)):
		return fullWeight(in)
	}
	return stepWeight(in, index(st))
}

// atZero is since when the canary Service has been seen without traffic; false
// when it isn't.
func atZero(in In, st v1alpha1.RolloutStatus) (time.Time, bool) {
	if !weightSeen(st, 0) || in.Routing.Err != "" || in.Routing.Canary != 0 || !in.Routing.NoRoutes() || in.Routing.Verification == routers.VerificationPending {
		return time.Time{}, false
	}
	return st.Canary.Weights.Since.Time, true
}

// settledAtZero says that the canary Service certainly has no traffic.
func settledAtZero(in In, st v1alpha1.RolloutStatus) bool {
	since, zero := atZero(in, st)
	return zero && !in.Now.Before(since.Add(settle))
}

// decideWeight says what the canary Service is to get. Going back to stable
// needs little; raising needs every gate open.
func decideWeight(in In, st v1alpha1.RolloutStatus) weight {
	seen := in.Routing.Canary
	stay := weight{target: seen, hold: true}
	if in.Routing.Err != "" {
		stay.why = in.Routing.Err
		if w := st.Canary.Weights; w != nil {
			stay.target = w.Canary.Weight
		}
		// An abort is tried all the same: only writing tells.
		if takenBack(st) && !stranded(in, st) && leastWeight(in, st) == 0 {
			return weight{target: 0, why: in.Routing.Err}
		}
		return stay
	}
	if takenBack(st) {
		return goHome(in, st)
	}
	if !usable(in) || !ready(in) && inProgress(st) {
		return stay
	}
	if inProgress(st) && !firstVersion(in, st) && !confirmationPending(st) && serviceHash(in.Canary) == st.CurrentPodHash {
		return followStep(in, st)
	}
	return goHome(in, st)
}

// goHome gives everything to the stable Service, by the table of law 4.
func goHome(in In, st v1alpha1.RolloutStatus) weight {
	seen := in.Routing.Canary
	switch {
	case seen == 0 && in.Routing.NoRoutes():
		return weight{target: 0, hold: st.StableRS == ""}
	case st.StableRS == "":
		return weight{target: seen, hold: true, stranded: takenBack(st)}
	case serviceHash(in.Canary) == st.StableRS && stableComes(in, st):
		return weight{target: seen, hold: true, why: "the stable Service is to select the promoted version first"}
	case stranded(in, st):
		return stay(in, st)
	}
	return lowerTo(in, st, 0)
}

// stay leaves the weight where it is, for stable has no pod. Where stable may be
// small by rule that is nothing to be alarmed at, unless what serves was taken back.
func stay(in In, st v1alpha1.RolloutStatus) weight {
	w := weight{target: in.Routing.Canary, hold: true, stranded: true, why: "no pod of the stable version is available"}
	if dynamic(in) && !takenBack(st) {
		w.stranded, w.why = false, waitsForStable
	}
	return w
}

// lowerTo lowers the weight, as far as stable has the pods for what it gets.
func lowerTo(in In, st v1alpha1.RolloutStatus, limit int32) weight {
	if least := leastWeight(in, st); least > limit {
		return weight{target: min(least, in.Routing.Canary), why: waitsForStable}
	}
	return weight{target: limit}
}

// stableComes says that the stable Service is still to select the stable version,
// or to reach its pods. At a size of 0 a Service that was never taken over isn't.
func stableComes(in In, st v1alpha1.RolloutStatus) bool {
	if in.Replicas == 0 {
		now := serviceHash(in.Stable)
		return now != "" && now != st.StableRS
	}
	return !serves(in.Stable, st.StableRS)
}

// stranded says that stable has no pod to take the traffic back.
func stranded(in In, st v1alpha1.RolloutStatus) bool {
	return in.Replicas > 0 && available(find(in, st.StableRS)) == 0
}

// followStep moves the weight to that of the current step. A raise follows from
// the persisted status only, so that the live weight is never ahead of it.
func followStep(in In, st v1alpha1.RolloutStatus) weight {
	seen := in.Routing.Canary
	limit := min(stepWeight(in, index(st)), persistedWeight(in, st))
	if frozen(in, st) {
		limit = min(limit, seen)
	}
	routes := nextRoutes(in, st, seen)
	lower := seen > limit
	if lower && stranded(in, st) {
		return stay(in, st)
	}
	if lower {
		w := lowerTo(in, st, limit)
		w.routes = routes
		return w
	}
	if seen == limit && (in.Routing.Uniform || limit == 0) {
		return weight{target: limit, routes: routes}
	}
	if why := raiseGate(in, st, limit); why != "" {
		return weight{target: seen, routes: routes, hold: !in.Routing.Uniform, why: why}
	}
	return weight{target: limit, routes: routes}
}

// persistedWeight is the most that the persisted status allows the version in progress.
func persistedWeight(in In, st v1alpha1.RolloutStatus) int32 {
	was := in.Status
	switch {
	case !inProgress(was) || was.CurrentPodHash != st.CurrentPodHash || confirmationPending(was):
		return 0
	case was.Attempt == st.Attempt:
		return stepWeight(in, index(was))
	case was.Canary.Weights != nil:
		return rescaled(in).Canary.Weight // steps were edited: never above what it had
	}
	return 0
}

// raiseGate says why the weight can't be raised; empty when it can (law 1).
func raiseGate(in In, st v1alpha1.RolloutStatus, limit int32) string {
	b := sortOut(in, st)
	gates := []struct {
		open bool
		why  string
	}{
		{available(b.candidate) >= enough(in, podsFor(in, st, wholeUnderTraffic(in, st), limit)) && !shrinking(in, st, b.candidate), "updated replicas are still becoming available"},
		{serves(in.Canary, st.CurrentPodHash), "the canary Service does not reach the new version's pods yet"},
		{serves(in.Stable, st.StableRS) || available(b.stable) == 0, "the stable Service does not reach the stable version's pods only yet"},
	}
	for _, gate := range gates {
		if !gate.open {
			return gate.why
		}
	}
	return ""
}

// shrinking says that the version in progress is to give up pods, so that those
// that are seen can't be counted on.
func shrinking(in In, st v1alpha1.RolloutStatus, rs *ReplicaSet) bool {
	return scaling(in, st) && desired(rs) > candidateSize(in, st, rs)
}

// rememberWeights puts what is wanted of weights and selectors into the status.
func rememberWeights(in In, st v1alpha1.RolloutStatus, w weight, services []ServiceWant) v1alpha1.RolloutStatus {
	prior := st.Canary.Weights
	stable, canaryHash := written(in)
	if stable == "" {
		stable = serviceHash(in.Stable)
	}
	if canaryHash == "" && in.Canary != nil && in.Canary.Name != "" {
		canaryHash = in.Canary.Hash
	}
	for _, s := range services {
		if in.Stable != nil && s.Name == in.Stable.Name {
			stable = s.Hash
		}
		if in.Canary != nil && s.Name == in.Canary.Name {
			canaryHash = s.Hash
		}
	}
	if in.Routing.Err != "" && prior == nil {
		return st
	}
	next := &v1alpha1.TrafficWeights{
		Canary: v1alpha1.WeightDestination{Weight: w.target, ServiceName: canary(in).CanaryService, PodTemplateHash: canaryHash},
		Stable: v1alpha1.WeightDestination{Weight: fullWeight(in) - w.target - routers.SumExtras(w.extras), ServiceName: canary(in).StableService, PodTemplateHash: stable},
	}
	next.Additional = additional(in, w)
	if prior != nil {
		next.Verified = prior.Verified
		if prior.Canary.Weight == w.target && (w.hold || asItIs(in, w)) { // what is written now has yet to be seen
			next.Since = prior.Since
		}
	}
	st.Canary.Weights = next
	return st
}

// asItIs says that nothing of what the canary has is to change. The shares of an
// Experiment are stable's affair.
func asItIs(in In, w weight) bool {
	return in.Routing.Err == "" && in.Routing.Uniform && in.Routing.Canary == w.target && in.Routing.HasRoutes(w.routes)
}

// wantSplit is the write that brings the routing to the wanted weight and routes;
// nil when it has them, or is to be left alone.
func wantSplit(in In, w weight) *routers.Split {
	if w.hold || asItIs(in, w) && in.Routing.HasExtras(w.extras) {
		return nil
	}
	full := fullWeight(in)
	return &routers.Split{Stable: full - w.target, Canary: w.target, Max: full, Routes: w.routes, Extras: w.extras}
}
