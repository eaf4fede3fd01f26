package analysis

import (
	"fmt"
	"strings"
)

// Problem is one thing that makes a spec unusable.
type Problem struct {
	// Field is the path of the field, such as spec.metrics[0].count.
	Field string
	// Message says what is wrong and what to do.
	Message string
}

// String is the field and the message.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Message
	}
	return p.Field + ": " + p.Message
}

// InvalidError says that templates, arguments or a spec can't be used. Trying
// again without a change of theirs is of no use.
type InvalidError struct {
	// Problems has at least one entry.
	Problems []Problem
}

// Error joins the problems.
func (e *InvalidError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}

// problems collects what is wrong.
type problems []Problem

func (ps *problems) add(field, format string, args ...any) {
	*ps = append(*ps, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// err is nil when nothing is wrong.
func (ps problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return &InvalidError{Problems: ps}
}
