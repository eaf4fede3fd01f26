//go:build !race

package plan_test

// caseEvery tries all cases.
const caseEvery = 1
