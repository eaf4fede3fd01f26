// Package forecast tells what a Rollout will do before it does it: the pods and the
// true share of the traffic at each step, when each metric is measured, and how much
// traffic a bad version gets until a metric notices.
//
// It has no arithmetic of its own: the decision core and the folding of measurements
// are the controller's, run against a simulated cluster and clock.
//
// PURE: time is an argument; it does no I/O.
package forecast
