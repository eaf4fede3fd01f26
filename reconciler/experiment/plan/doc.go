// Package plan is the decision core of an Experiment: Decide takes everything that
// was observed and returns everything that is wanted, with the status to persist and
// the time to decide again.
//
// PURE: it imports no client, no net, no os and no logger, and never reads the clock
// or a random source. Deciding twice on the same input gives the same plan. It returns
// no error: bad input is an outcome in the plan.
package plan
