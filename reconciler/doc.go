// Package reconciler is the shell around the decision core of a Rollout: it
// observes, calls plan.Decide, and executes the plan. It decides nothing.
//
// It imports no concrete router and no provider (cmd/controller hands them in)
// and nothing of gitsync.
package reconciler
