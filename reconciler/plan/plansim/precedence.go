package plansim

import (
	"slices"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// checkPrecedence: law 8, on what one decision made of all that spoke at once.
func (c *Cluster) checkPrecedence(in plan.In, p plan.Plan) {
	if in.Status.Attempt == 0 || in.Status.StableRS != p.Status.StableRS && in.Status.StableRS == "" {
		return // lost or just found: what held before isn't known
	}
	c.checkAbortVerb(in, p)
	if frozen(in, p.Status) {
		c.checkFrozen(in, p)
	}
	c.checkNewer(in, p)
	c.checkSuperseded(in, p)
}

func onItsWay(st v1alpha1.RolloutStatus) bool {
	return st.CurrentPodHash != "" && st.CurrentPodHash != st.StableRS && !st.Abort
}

func pausedBy(st v1alpha1.RolloutStatus, reason v1alpha1.PauseReason) bool {
	return slices.ContainsFunc(st.PauseConditions, func(p v1alpha1.PauseCondition) bool { return p.Reason == reason })
}

// frozen says that a person's pause held before a decision and holds after it.
func frozen(in plan.In, next v1alpha1.RolloutStatus) bool {
	byVerb := pausedBy(in.Status, v1alpha1.PauseReasonUser) && pausedBy(next, v1alpha1.PauseReasonUser)
	return in.Spec.Paused || byVerb
}

// checkAbortVerb: a person's abort of what is in progress goes through, whatever
// else is said or in trouble.
func (c *Cluster) checkAbortVerb(in plan.In, p plan.Plan) {
	parts := strings.Split(in.Verbs[v1alpha1.AbortAnnotation], "/")
	if len(parts) != 3 || !onItsWay(in.Status) || parts[0] != in.Status.CurrentPodHash || in.Status.Verbs["abort"].Token == parts[2] {
		return
	}
	if !p.Status.Abort || p.Status.CurrentPodHash != in.Status.CurrentPodHash {
		c.violated("8", "the abort %s of template %s was not carried out: %+v", parts[2], parts[0], p.Status.Verbs["abort"])
	}
}

// checkFrozen: under a person's pause no weight rises, and nothing newer starts.
func (c *Cluster) checkFrozen(in plan.In, p plan.Plan) {
	if in.Routing != nil && in.Routing.Err == "" && p.Split != nil && p.Split.Canary > in.Routing.Canary {
		c.violated("8", "the weight goes from %d to %d under a person's pause", in.Routing.Canary, p.Split.Canary)
	}
	if in.Routing != nil && in.Routing.Err == "" && p.Split != nil && len(added(in.Routing.Routes, p.Split.Routes)) > 0 {
		c.violated("8", "%s under a person's pause, after %s", routeNames(p.Split.Routes), routeNames(in.Routing.Routes))
	}
	if p.Status.Attempt != in.Status.Attempt || p.Status.CurrentPodHash != in.Status.CurrentPodHash {
		c.violated("8", "attempt %d of %s follows attempt %d of %s under a person's pause",
			p.Status.Attempt, p.Status.CurrentPodHash, in.Status.Attempt, in.Status.CurrentPodHash)
	}
	if onItsWay(in.Status) && onItsWay(p.Status) && at(p.Status) != at(in.Status) {
		c.violated("8", "the step goes from %d to %d under a person's pause", at(in.Status), at(p.Status))
	}
}

// checkNewer: a newer template that nothing of higher rank keeps back is taken
// up, whatever its predecessor was waiting for.
func (c *Cluster) checkNewer(in plan.In, p plan.Plan) {
	hash := in.Template.Hash
	kept := len(in.Invalid) > 0 || hash == "" || in.Spec.Paused || pausedBy(p.Status, v1alpha1.PauseReasonUser) ||
		p.Status.Abort && !in.Status.Abort || pausedBy(in.Status, v1alpha1.PauseReasonUser)
	if kept || c.mayWait(in, p) || hash != p.Status.StableRS && (len(in.Missing) > 0 || held(p.Status, hash)) {
		return
	}
	if p.Status.CurrentPodHash != hash {
		c.violated("8", "template %s is live and nothing keeps it back, and the current one is %s", hash, p.Status.CurrentPodHash)
	}
}

// mayWait says that supersede: Wait keeps a newer template back.
func (c *Cluster) mayWait(in plan.In, p plan.Plan) bool {
	return in.Spec.Supersede == v1alpha1.SupersedeWait && onItsWay(in.Status) && in.Template.Hash != p.Status.StableRS
}

func held(st v1alpha1.RolloutStatus, hash string) bool {
	return slices.ContainsFunc(st.Rejected, func(r v1alpha1.RejectedVersion) bool { return r.Hash == hash && !r.Cleared })
}

// checkSuperseded: a version that another one takes the place of before it came
// to an end counts once, and nothing else counts.
func (c *Cluster) checkSuperseded(in plan.In, p plan.Plan) {
	want := in.Status.Superseded
	if waiting := in.Spec.Supersede == v1alpha1.SupersedeWait && in.Template.Hash != p.Status.StableRS; waiting && onItsWay(in.Status) &&
		p.Status.CurrentPodHash != in.Status.CurrentPodHash && slices.ContainsFunc(in.ReplicaSets, func(rs plan.ReplicaSet) bool { return rs.Hash == in.Status.CurrentPodHash }) {
		c.violated("8", "template %s took the place of %s, for which it was to wait", p.Status.CurrentPodHash, in.Status.CurrentPodHash)
	}
	if onItsWay(in.Status) && p.Status.CurrentPodHash != in.Status.CurrentPodHash {
		want++
	}
	if p.Status.Superseded != want {
		c.violated("8", "%d superseded versions after %d, from %s (on its way: %v) to %s; want %d", p.Status.Superseded, in.Status.Superseded,
			in.Status.CurrentPodHash, onItsWay(in.Status), p.Status.CurrentPodHash, want)
	}
}
