// Package experiment is the shell around the decision core of an Experiment: it
// observes, calls plan.Decide of its own folder, and executes the plan. It decides
// nothing. All that it makes is owned by the Experiment and goes with it.
//
// It imports no router, no provider, nothing of gitsync and nothing of the Rollout's
// reconciler.
package experiment
