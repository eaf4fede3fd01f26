// Package plansim is a small simulated cluster around plan.Decide: ReplicaSets
// whose pods become available late or never, a route whose weights reach the data
// plane after a while, Services, AnalysisRuns and Reverts that end by script, a
// Git repository that is one template at a time, and a person with verbs.
//
// It carries a plan out effect by effect, in the order of the plan's fields, and
// can stop between any two (a crash). What Decide sees may lag behind what is
// there, each kind of object for itself and never going back in time, as an
// informer's cache does; a write to a ReplicaSet or to the Rollout that rests on
// an old read is refused. After each effect it checks the laws about traffic and
// pods against what is really there.
//
// PURE: time is a field that the caller moves; randomness comes in as functions.
package plansim
