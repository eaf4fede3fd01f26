// Package plansim is a small simulated cluster around plan.Decide: ReplicaSets
// whose pods become available late or never, a route whose weights reach the data
// plane after a while, Services, AnalysisRuns that end by script, a Git branch with
// people who push to it and gitsync that applies its head late and pushes reverts,
// and a person with verbs.
//
// It carries a plan out effect by effect, in the order of the plan's fields, and
// can stop between any two (a crash), or let others act there: people, time, or a
// leader that was. What Decide sees may lag behind what is there, each kind of
// object for itself and never going back in time, as an informer's cache does. A
// write to the Rollout, a ReplicaSet or a run is refused if the object isn't as it
// was read. Weights and selectors are written over what the router reads just
// before, as the routers do, and so follow from what may be older.
//
// It holds the laws against every plan, and after each effect against what is
// really there.
//
// PURE: time is a field that the caller moves; randomness comes in as functions.
package plansim
