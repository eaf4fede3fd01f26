package plansim

import (
	"reflect"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// checkUnrelated: law 6, a commit that leaves the template alone changes nothing
// but what is told of the commit.
func (c *Cluster) checkUnrelated(in plan.In, p plan.Plan) {
	if in.Source == nil || len(in.Source.RetryHashes) > 0 {
		return // a trailer counts once for each commit
	}
	moved := *in.Source
	moved.Revision, moved.Subject = moved.Revision+"-docs", "Update the docs"
	in.Source = &moved
	if field := differs(withoutCommits(p), withoutCommits(plan.Decide(in))); field != "" {
		c.violated("6", "a commit that leaves the template alone changes %s of the plan", field)
	}
}

// differs names the first field of two structs that isn't equal; empty when all are.
func differs[T any](a, b T) string {
	left, right := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range left.NumField() {
		if x, y := left.Field(i).Interface(), right.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return left.Type().Field(i).Name
		}
	}
	return ""
}

// withoutCommits drops the texts in a plan that name commits, and the wake-up
// that follows from persisting them.
func withoutCommits(p plan.Plan) plan.Plan {
	p.WakeAfter = 0
	p.Status = *p.Status.DeepCopy()
	p.Status.Git = v1alpha1.RolloutGitStatus{}
	for i := range p.Status.Rejected {
		p.Status.Rejected[i].Commit = ""
	}
	p.Status.Message = ""
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].Message = ""
	}
	events := make([]plan.Event, len(p.Events))
	for i, e := range p.Events {
		events[i] = plan.Event{Warning: e.Warning, Reason: e.Reason}
	}
	p.Events = events
	if p.Revert != nil {
		revert := *p.Revert
		revert.Spec.RejectedRevision, revert.Spec.RejectedSubject = "", ""
		p.Revert = &revert
	}
	return p
}

// checkAttempt: law 6, what a rollout is of. An attempt begins for a reason, is
// of the template that was live then, and is like no other.
func (c *Cluster) checkAttempt(in plan.In, was, next v1alpha1.RolloutStatus) {
	lost := was.Attempt == 0 || was.StableRS == "" && next.StableRS != ""
	if next.Attempt == was.Attempt {
		if next.CurrentPodHash != was.CurrentPodHash && !lost {
			c.violated("6", "attempt %d was of %s and is of %s", next.Attempt, was.CurrentPodHash, next.CurrentPodHash)
		}
		return
	}
	if why := c.attemptReason(was, next); why == "" && !lost {
		c.violated("6", "attempt %d of %s followed attempt %d for no reason", next.Attempt, next.CurrentPodHash, was.Attempt)
	}
	// While a newer template waits, edited steps begin anew for the version in progress.
	restarted := in.Spec.Supersede == v1alpha1.SupersedeWait && c.stepsEdited && next.CurrentPodHash == was.CurrentPodHash && onItsWay(was)
	if onItsWay(next) && next.CurrentPodHash != in.Template.Hash && !lost && !restarted {
		c.violated("6", "attempt %d is of %s, and the live template was %s", next.Attempt, next.CurrentPodHash, in.Template.Hash)
	}
	if before, taken := c.attempts[next.Attempt]; taken && was.Attempt != 0 {
		c.violated("6", "attempt %d of %s has the number of one of %s", next.Attempt, next.CurrentPodHash, before)
	}
	if was.Attempt == 0 {
		c.attempts = map[int64]string{} // numbers without a trace may come again
	}
	c.attempts[next.Attempt] = next.CurrentPodHash
	c.stepsEdited = false
	c.checkTraces(in, next)
}

// attemptReason is why a new attempt may begin; empty when nothing says so.
func (c *Cluster) attemptReason(was, next v1alpha1.RolloutStatus) string {
	switch {
	case next.CurrentPodHash != was.CurrentPodHash:
		return "another template"
	case next.Verbs["retry"] != was.Verbs["retry"] && next.Verbs["retry"].Refused == "":
		return "a person's retry"
	case c.providersBack(was):
		return "the return of its providers"
	case c.stepsEdited:
		return "edited steps"
	}
	for _, r := range next.Rejected {
		if r.Hash == next.CurrentPodHash && r.Cleared && r.Attempt == was.Attempt && was.Abort {
			return "a hold that was lifted"
		}
	}
	return ""
}

// checkTraces: laws 11 and 12, nothing that speaks of the new attempt exists yet.
func (c *Cluster) checkTraces(in plan.In, next v1alpha1.RolloutStatus) {
	if in.Status.Attempt == 0 {
		return // lost: the caches may lack what tells the number
	}
	for _, run := range c.runs {
		if run.Hash == next.CurrentPodHash && run.Attempt == next.Attempt {
			c.violated("11", "run %s speaks of an attempt that has just begun", run.Name)
		}
	}
	for _, revert := range c.reverts {
		if revert.Hash == next.CurrentPodHash && revert.Attempt == next.Attempt {
			c.violated("12", "revert %s speaks of an attempt that has just begun", revert.Name)
		}
	}
}
