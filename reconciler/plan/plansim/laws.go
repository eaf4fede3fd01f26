package plansim

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

func (c *Cluster) violated(law, format string, args ...any) {
	text := fmt.Sprintf("%s law %s: %s", c.clock(), law, fmt.Sprintf(format, args...))
	c.Violations = append(c.Violations, text)
	c.note("BROKEN", "law %s: %s", law, fmt.Sprintf(format, args...))
}

// share are the pods that a weight needs, rounded up.
func (c *Cluster) share(replicas, weight int32) int32 {
	whole := c.Whole()
	return int32((int64(replicas)*int64(weight) + int64(whole) - 1) / int64(whole))
}

// checkPlan holds what can be said of one decision. What takes a decision more is
// asked of every third one, or as PurityEvery says.
func (c *Cluster) checkPlan(in plan.In, p plan.Plan) {
	c.passes++
	every := c.PurityEvery
	if every == 0 {
		every = 3
	}
	if c.passes%every == 0 {
		c.checkPure(in, p)
	}
	if in.Deleting {
		return
	}
	if c.blueGreen() {
		c.checkBlueGreen(in, p)
	}
	c.checkAbort(in, p)
	c.checkClock(in, p)
	c.checkHeld(in, p)
	c.checkPrecedence(in, p)
	if c.passes%every == 1 {
		c.checkUnrelated(in, p)
	}
	if c.passes%every == 2 {
		c.checkEndpoints(in, p)
	}
	if len(p.Runs) > 0 && (len(in.Invalid) > 0 || len(in.Missing) > 0) {
		c.violated("8", "a run was made under a spec that can't be acted on")
	}
}

// checkPure: Decide leaves its input alone, and decides the same on the same.
func (c *Cluster) checkPure(in plan.In, p plan.Plan) {
	again, _ := c.Observe()
	if !reflect.DeepEqual(in, again) {
		c.violated("purity", "Decide changed its input")
	}
	if field := differs(p, plan.Decide(again)); field != "" {
		c.violated("purity", "deciding twice gave two plans: %s differs", field)
	}
}

// checkEndpoints: endpoints that are said not to matter make no difference.
func (c *Cluster) checkEndpoints(in plan.In, p plan.Plan) {
	unread := in
	for _, s := range []**plan.Service{&unread.Stable, &unread.Canary, &unread.Active, &unread.Preview} {
		if *s != nil {
			*s = &plan.Service{Name: (*s).Name, Hash: (*s).Hash}
		}
	}
	if plan.EndpointsMatter(unread) {
		return
	}
	if field := differs(p, plan.Decide(unread)); field != "" {
		c.violated("purity", "endpoints that don't matter change %s of the plan", field)
	}
}

// checkAbort: law 4, by its table.
func (c *Cluster) checkAbort(in plan.In, p plan.Plan) {
	st := p.Status
	if in.Routing == nil || !st.Abort || in.Routing.Err != "" || in.Routing.Canary == 0 && in.Routing.NoRoutes() || st.StableRS == "" {
		return
	}
	if in.Canary != nil && in.Canary.Hash == st.StableRS {
		return // the canary Service's traffic is stable's
	}
	stable := int32(0)
	for _, rs := range in.ReplicaSets {
		if rs.Hash == st.StableRS && !rs.Deleting {
			stable = min(rs.Available, rs.Desired)
		}
	}
	if c.dynamic() {
		c.checkWalkHome(in, p)
		return
	}
	switch {
	case stable > 0 && (p.Split == nil || p.Split.Canary != 0 || len(p.Split.Routes) > 0):
		c.violated("4", "aborted with %d stable pods available, and the weight was not taken back: %+v", stable, p.Split)
	case stable == 0 && in.Replicas > 0 && p.Split != nil:
		c.violated("4", "aborted with no stable pod available, and the weight was moved to %d", p.Split.Canary)
	}
}

// checkClock: law 5, a step's clock starts when its weight is seen.
func (c *Cluster) checkClock(in plan.In, p plan.Plan) {
	if in.Routing == nil || in.Replicas == 0 || p.Status.StepStartedAt == nil || in.Status.StepStartedAt != nil {
		return
	}
	w := p.Status.Canary.Weights
	if w == nil || w.Since == nil || in.Routing.Canary != w.Canary.Weight {
		c.violated("5", "the clock of step %s started before its weight was seen", p.Status.Step)
	}
}

// checkHeld: law 14, a rejected hash gets no attempt and no weight.
func (c *Cluster) checkHeld(in plan.In, p plan.Plan) {
	for _, r := range p.Status.Rejected {
		if r.Cleared || r.Hash != p.Status.CurrentPodHash || r.Hash == p.Status.StableRS {
			continue
		}
		if !p.Status.Abort {
			c.violated("14", "template %s is rejected and in progress", r.Hash)
		}
	}
}

// checkRaise: law 1, no weight without pods.
func (c *Cluster) checkRaise(weight int32) {
	if weight <= c.route.weight {
		return
	}
	hash := c.Selects("canary")
	if c.Calm && c.AvailablePods(hash) < c.needs(weight) {
		c.violated("1", "the weight was raised to %d with %d of %d pods of %q available", weight, c.AvailablePods(hash), c.needs(weight), hash)
	}
	if hash == "" {
		c.violated("1", "the weight was raised to %d while the canary Service selects everything", weight)
	}
}

// checkSwitch: the canary Service is moved only without traffic, the stable one
// never to fewer pods than it takes.
func (c *Cluster) checkSwitch(want plan.ServiceWant, next v1alpha1.RolloutStatus) {
	switch {
	case want.Hash == "":
		c.checkUnhash(want.Name)
		return
	case c.blueGreen() && c.Deleting:
		return // the way home
	case c.blueGreen():
		c.checkSelector(want, next)
		return
	}
	name, hash := want.Name, want.Hash
	if !c.Calm {
		return
	}
	if name == c.services[1].Name {
		if w := max(c.DataPlane(), c.route.weight); w > 0 && hash != c.Status.StableRS && c.AvailablePods(hash) < c.share(c.rests.Replicas, w) {
			c.violated("1", "the canary Service was moved to %s while it has %d%s of the traffic", hash, w, c.unit())
		}
		if c.hasRoutes() && hash != c.Status.StableRS && c.AvailablePods(hash) == 0 {
			c.violated("1", "the canary Service was moved to %s while a managed route leads to it", hash)
		}
		return
	}
	if c.AvailablePods(hash) == 0 && c.rests.Replicas > 0 && c.serving() > 0 {
		c.violated("1", "the stable Service was moved to %s, which has no pod", hash)
	}
}

// serving are the pods that the stable Service reaches.
func (c *Cluster) serving() int32 {
	if now := c.Selects("stable"); now != "" {
		return c.AvailablePods(now)
	}
	sum := int32(0)
	for hash := range c.sets {
		sum += c.AvailablePods(hash)
	}
	return sum
}

// checkResize: laws 2 and 3, with a router; the bounds of the basic canary without.
func (c *Cluster) checkResize(in plan.In, next v1alpha1.RolloutStatus, hash string, from, to int32) {
	if !c.Routed {
		c.checkBounds(hash, from, to)
		return
	}
	if to >= from {
		c.checkBatch(in, next, hash, from, to)
		return
	}
	if c.blueGreen() {
		c.checkVersionSize(next, hash, to)
		return
	}
	need := int32(0)
	if w := max(c.DataPlane(), c.route.weight); c.Selects("canary") == hash {
		need = max(need, c.share(c.rests.Replicas, w))
		if c.hasRoutes() {
			need = max(need, min(1, c.rests.Replicas))
		}
	}
	if w := c.Whole() - min(c.DataPlane(), c.route.weight); c.Selects("stable") == hash && w > 0 {
		need = max(need, min(c.rests.Replicas, c.share(c.rests.Replicas, w)))
	}
	if to < need {
		c.violated("2", "%s was scaled down to %d, and its traffic needs %d", hash, to, need)
	}
	if hash == c.Status.StableRS && to < c.rests.Replicas && !c.dynamic() {
		c.violated("3", "stable %s was scaled down to %d of %d", hash, to, c.rests.Replicas)
	}
	old := hash != next.StableRS && (hash != next.CurrentPodHash || next.Abort)
	if old && (c.Selects("canary") == hash || c.Selects("stable") == hash) {
		c.violated("2", "%s was scaled down while a Service names it", hash)
	}
}

// checkBatch: a maxSurge that is set bounds how many pods of a new version start
// at a time, but for those that its traffic needs (C104).
func (c *Cluster) checkBatch(in plan.In, next v1alpha1.RolloutStatus, hash string, from, to int32) {
	set := c.rests.Spec.Strategy.Canary.MaxSurge
	if set == nil || next.StableRS == "" || hash == next.StableRS || hash != next.CurrentPodHash {
		return
	}
	live := max(c.DataPlane(), c.route.weight, in.Routing.Canary)
	for _, st := range []v1alpha1.RolloutStatus{c.Status, next} { // next: what is sent in this pass, though the router may refuse it
		if w := st.Canary.Weights; w != nil {
			live = max(live, w.Canary.Weight)
		}
	}
	serving := int32(0)
	if s := c.sets[hash]; s != nil {
		serving = min(s.Available, from)
	}
	if serving >= c.enough(from) {
		serving = from
	}
	whole := max(c.rests.Replicas, c.Desired(next.StableRS))
	batch, err := intstr.GetScaledValueFromIntOrPercent(set, int(c.rests.Replicas), true)
	if err != nil || to > max(serving+max(int32(batch), 1), c.share(whole, live)) {
		c.violated("C104", "%s was scaled up from %d to %d with %d available, and maxSurge is %s", hash, from, to, serving, set)
	}
}

// checkBounds: never more than replicas + maxSurge wanted, and never fewer than
// replicas - maxUnavailable available by our doing.
func (c *Cluster) checkBounds(hash string, from, to int32) {
	own := min(c.sets[hash].Available, from) // as reported last: what changed since is nobody's doing
	wanted, serving, before := to, min(own, to), own
	for other, s := range c.sets {
		if other == hash {
			continue
		}
		wanted += max(s.Desired, int32(len(s.pods)))
		serving += min(s.Available, s.Desired)
		before += min(s.Available, s.Desired)
	}
	surge, unavailable := c.bounds()
	if to > from && wanted > c.rests.Replicas+surge {
		c.violated("surge", "%s was scaled up to %d: %d pods in all, and %d + %d are allowed", hash, to, wanted, c.rests.Replicas, surge)
	}
	if to < from && serving < c.rests.Replicas-unavailable && serving < before && c.Calm {
		c.violated("unavailable", "%s was scaled down to %d: %d pods are left available, and %d - %d are needed", hash, to, serving, c.rests.Replicas, unavailable)
	}
}

// bounds are maxSurge and maxUnavailable in pods; the strategy must give numbers.
func (c *Cluster) bounds() (surge, unavailable int32) {
	canary := c.rests.Spec.Strategy.Canary
	surge, unavailable = canary.MaxSurge.IntVal, min(canary.MaxUnavailable.IntVal, c.rests.Replicas)
	if surge == 0 && unavailable == 0 {
		unavailable = min(1, c.rests.Replicas)
	}
	return surge, unavailable
}

// checkCreate: no pod of a template that nobody declares, and none before an
// irreversible one was confirmed.
func (c *Cluster) checkCreate(in plan.In, next v1alpha1.RolloutStatus, want plan.ReplicaSetWant) {
	if want.Hash != in.Template.Hash {
		c.violated("6", "a ReplicaSet was made for %s, and the template is %s", want.Hash, in.Template.Hash)
	}
	if want.Replicas > 0 && in.Template.Irreversible {
		for _, p := range next.PauseConditions {
			if p.Reason == v1alpha1.PauseReasonIrreversibleUnconfirmed {
				c.violated("irreversible", "pods of %s were started before a person confirmed", want.Hash)
			}
		}
	}
}

func (c *Cluster) checkPrune(hash string) {
	if c.editUnseen() {
		return
	}
	if len(c.sets[hash].pods) > 0 || hash == c.Status.StableRS || c.Selects("stable") == hash || c.Selects("canary") == hash {
		c.violated("2", "ReplicaSet %s was deleted while it is in use", hash)
	}
}

// checkStatus: laws 7 and 10 on what is persisted.
func (c *Cluster) checkStatus(in plan.In, next v1alpha1.RolloutStatus) {
	was := c.Status
	if next.Attempt < was.Attempt {
		c.violated("7", "the attempt went back from %d to %d", was.Attempt, next.Attempt)
	}
	c.checkAttempt(in, was, next)
	if next.StableRS != was.StableRS {
		c.checkPromotion(in, was, next)
	}
	if next.Attempt == was.Attempt && !next.Abort && !was.Abort {
		c.checkSteps(was, next)
	}
	for name, v := range was.Verbs {
		if next.Verbs[name].Token == "" {
			c.violated("verbs", "the answer to %s %s was dropped", name, v.Token)
		}
	}
	if in.Status.Attempt != was.Attempt {
		c.violated("17", "a status was persisted from an older one")
	}
}

func (c *Cluster) checkPromotion(in plan.In, was, next v1alpha1.RolloutStatus) {
	if was.Attempt == 0 || was.StableRS == "" && (was.CurrentPodHash != next.StableRS || next.CurrentPodHash != next.StableRS) {
		return // recalled or adopted
	}
	for _, rs := range in.ReplicaSets {
		if rs.Hash == next.StableRS && rs.Role == v1alpha1.RoleStable {
			return // it was stable before: a crash lost the status
		}
	}
	if c.Calm && c.AvailablePods(next.StableRS) < c.enough(c.rests.Replicas) {
		c.violated("7", "%s became stable with %d of %d pods available", next.StableRS, c.AvailablePods(next.StableRS), c.rests.Replicas)
	}
	if was.StableRS != "" && was.Abort {
		c.violated("4", "%s became stable although it was aborted", next.StableRS)
	}
}

// checkSteps: a step is never skipped but by a person's word or for a first version.
func (c *Cluster) checkSteps(was, next v1alpha1.RolloutStatus) {
	from, to := at(was), at(next)
	byWord := next.PromoteFull || was.StableRS == "" || len(next.Verbs) > 0 && !reflect.DeepEqual(next.Verbs, was.Verbs)
	if byWord || to <= from || was.CurrentPodHash != next.CurrentPodHash || was.CurrentPodHash == was.StableRS {
		return
	}
	if to != from+1 {
		c.violated("7", "the step index went from %d to %d", from, to)
	}
	steps := c.rests.Spec.Strategy.Canary.Steps
	if int(from) < len(steps) && steps[from].Experiment != nil {
		c.checkExperiment(was, from)
	}
	if int(from) >= len(steps) || steps[from].Analysis == nil {
		return
	}
	for _, run := range c.runs {
		if run.Kind.OfStage() && run.Hash == was.CurrentPodHash && run.Attempt == was.Attempt && run.Step == from &&
			run.Phase == v1alpha1.AnalysisPhaseSuccessful {
			return
		}
	}
	c.violated("11", "step %d was left without a successful run of its own", from)
}

func at(st v1alpha1.RolloutStatus) int32 {
	if st.CurrentStepIndex == nil {
		return 0
	}
	return *st.CurrentStepIndex
}

// checkRevert: law 12, one per hash and attempt, and law 10.
func (c *Cluster) checkRevert(want plan.RevertWant) {
	for _, name := range c.asked {
		if name == want.Name {
			c.violated("12", "revert %s was asked for twice", want.Name)
		}
	}
	c.asked = append(c.asked, want.Name)
	if want.Spec.Reason == v1alpha1.AbortError && !slices.Contains(c.RevertOn, v1alpha1.AbortError) {
		c.violated("10", "a version that could not be measured is reverted")
	}
}
