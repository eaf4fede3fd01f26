package analysis

import (
	"errors"
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ErrEmptyResult says that a condition used a result without data unguarded.
var ErrEmptyResult = errors.New("empty result; guard with len(result) > 0")

// ErrNotBool says that a condition gave something else than true or false.
var ErrNotBool = errors.New("the condition gives no bool")

// SyntaxError says that a condition can't be compiled.
type SyntaxError struct {
	// Field is successCondition or failureCondition.
	Field string
	// Line and Column begin at 1; 0 when unknown.
	Line, Column int
	Message      string
}

// Error has the position first.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Field, e.Message)
	}
	return fmt.Sprintf("%s: line %d, column %d: %s", e.Field, e.Line, e.Column, e.Message)
}

// Conditions of a metric, compiled. The zero value has none.
type Conditions struct {
	success, failure *condition
	redactor         Redactor
}

// Redacting are the same conditions, which judge values as they are and take secrets out
// of what is said of them.
func (c Conditions) Redacting(r Redactor) Conditions {
	c.redactor = r
	return c
}

// condition is one compiled condition.
type condition struct {
	text string
	// run evaluates it; at is the time that now() gives.
	run func(value any, at time.Time) (bool, error)
	mentions
}

// mentions are what a condition speaks of in its text.
type mentions struct {
	// usesResult is true when it looks at the result at all.
	usesResult bool
	// guardsAbsence is true when it speaks of no data: len, size, isNil, default, null
	// or a comparison with an empty list. What it says then is the user's word. A
	// field that has() asks for is no such word: in a loop over nothing it isn't asked.
	guardsAbsence bool
	// guardsNaN is true when it calls isNaN, or compares something with itself.
	guardsNaN bool
}

// Compile compiles the conditions of a metric whose arguments are put in. The
// language is CEL, with the variable result and Argo's functions len, asInt,
// asFloat, isNaN, isInf, isNil and default, or expr with exactly Argo's
// environment. An error is a *SyntaxError.
func Compile(m v1alpha1.Metric) (Conditions, error) {
	var c Conditions
	var err error
	if c.success, err = compile(m, "successCondition", m.SuccessCondition); err != nil {
		return Conditions{}, err
	}
	if c.failure, err = compile(m, "failureCondition", m.FailureCondition); err != nil {
		return Conditions{}, err
	}
	return c, nil
}

func compile(m v1alpha1.Metric, field, text string) (*condition, error) {
	if text == "" {
		return nil, nil
	}
	var c *condition
	var err error
	switch m.ConditionLanguage {
	case v1alpha1.ConditionExpr:
		c, err = compileExpr(text, numbersOnly(m.Provider))
	case v1alpha1.ConditionCEL, "":
		c, err = compileCEL(text)
	default:
		err = &SyntaxError{Message: fmt.Sprintf("conditionLanguage %q is neither CEL nor Expr", m.ConditionLanguage)}
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		syntax.Field = field
	}
	return c, err
}

// holds evaluates the condition. A value without data and a condition that does not
// speak of absence are an error whatever the condition would say: all() of nothing is
// true, and that must not pass.
func (c *condition) holds(value any, at time.Time) (bool, error) {
	if isEmpty(value) && c.usesResult && !c.guardsAbsence {
		return false, ErrEmptyResult
	}
	ok, err := c.run(value, at)
	if err == nil {
		return ok, nil
	}
	if isEmpty(value) {
		return false, fmt.Errorf("%w: %s", ErrEmptyResult, err)
	}
	return false, fmt.Errorf("result is a %s: %w", kindOf(value), err)
}

// SpeaksOfAbsence says that a condition of the metric speaks of a result without data,
// so that it is the user's word what becomes of that. Conditions that can't be compiled
// speak of nothing.
func SpeaksOfAbsence(m v1alpha1.Metric) bool {
	c, err := Compile(m)
	if err != nil {
		return false
	}
	return c.success != nil && c.success.guardsAbsence || c.failure != nil && c.failure.guardsAbsence
}
