// Package bench measures fleets: hundreds of Rollouts on a real control plane and
// a node that runs no processes. It has benchmarks alone, which `make bench` runs;
// they print times, counts and ratios and assert nothing of them.
//
// It may import what the stories may: e2e/*, and of the product the API types only.
package bench
