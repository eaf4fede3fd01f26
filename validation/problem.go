// Package validation says what is wrong with the specs of Pushback's kinds, as
// far as it can be told from one document: everything that the CRDs can't say,
// and every field whose behaviour isn't there yet.
//
// PURE: it imports no client, no net and no os.
package validation

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pushback-dev/pushback/analysis"
)

// Problem is one thing that makes a spec unusable: the field (such as
// "spec.strategy.canary.steps[2].setWeight"), what is wrong, and what to do.
type Problem = analysis.Problem

// collector gathers problems.
type collector struct{ problems []Problem }

func (c *collector) add(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// list returns the problems in the order of their fields, one for a field.
func (c *collector) list() []Problem {
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Field, b.Field) })
	return slices.CompactFunc(c.problems, func(a, b Problem) bool { return a.Field == b.Field && a.Field != "" })
}
