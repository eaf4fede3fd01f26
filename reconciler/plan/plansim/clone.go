package plansim

import (
	"maps"
	"slices"

	"github.com/pushback-dev/pushback/reconciler/plan"
)

// Clone is a cluster of its own that goes on from here. What was given as functions
// is shared, and must hold nothing that changes.
func (c *Cluster) Clone() *Cluster {
	out := *c
	out.Spec = *c.Spec.DeepCopy() // pingPong turns the Services in it
	out.Behaviours, out.Lag = maps.Clone(c.Behaviours), maps.Clone(c.Lag)
	out.seenAt, out.rivalSeenAt = maps.Clone(c.seenAt), maps.Clone(c.rivalSeenAt)
	out.attempts, out.waiting = maps.Clone(c.attempts), maps.Clone(c.waiting)
	out.sets = map[string]*set{}
	for hash, s := range c.sets {
		own := *s
		own.pods = slices.Clone(s.pods)
		out.sets[hash] = &own
	}
	for i, s := range c.services {
		if s != nil {
			own := *s
			out.services[i] = &own
		}
	}
	out.working = map[string]*working{}
	for name, w := range c.working {
		own := *w
		out.working[name] = &own
	}
	out.runs, out.reverts = slices.Clone(c.runs), slices.Clone(c.reverts)
	out.experiments = slices.Clone(c.experiments)
	out.branch, out.asked = slices.Clone(c.branch), slices.Clone(c.asked)
	if c.Source != nil {
		out.Source = new(plan.Source)
		*out.Source = *c.Source
	}
	out.history, out.changedAt = copied(c.history), copied(c.changedAt)
	out.Transcript, out.Violations = slices.Clip(c.Transcript), slices.Clip(c.Violations)
	out.Promoted = slices.Clip(c.Promoted)
	return &out
}

func copied[T any](lists map[string][]T) map[string][]T {
	out := make(map[string][]T, len(lists))
	for kind, list := range lists {
		out[kind] = slices.Clone(list)
	}
	return out
}
