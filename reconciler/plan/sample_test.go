package plan_test

import "testing"

// sampled says that one of the many cases of a story is tried in this build. Without
// the race detector all are: it is what makes them eight times as slow, and finds
// nothing in code that has one goroutine.
func sampled(story string, number int) bool {
	every := caseEvery
	if testing.Short() {
		every *= 10
	}
	return (number+len(story))%every == 0
}
