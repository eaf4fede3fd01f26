//go:build race

package plan_test

// caseEvery tries one of so many.
const caseEvery = 40
