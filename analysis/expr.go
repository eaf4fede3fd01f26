package analysis

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// compileExpr compiles for Argo's environment. The error is a *SyntaxError. Numbers
// says that the provider gives lists of numbers and nothing else.
//
// Argo compiles for the value that was measured, so that comparing a number with text
// is an error, not false; so the condition is compiled twice: here, to refuse what no
// value can mend, and for each value.
func compileExpr(text string, numbers bool) (*condition, error) {
	if _, err := compileGuarded(text, &workBudget{}, expr.Env(exprTypes()), expr.AsBool()); err != nil {
		return nil, err
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, exprSyntax(err)
	}
	return &condition{text: text, mentions: exprMentions(tree.Node), run: func(value any, at time.Time) (bool, error) {
		if numbers {
			value = exprNumbers(value)
		}
		return evaluateExpr(text, value, at)
	}}, nil
}

// evaluateExpr takes no data for a value of any type, where Argo's checker refuses
// result == nil || result < 1 for what is never reached: the guard is the user's word.
func evaluateExpr(text string, value any, at time.Time) (bool, error) {
	env := exprEnv(value, at)
	known := expr.Env(env)
	if value == nil {
		known = expr.Env(exprTypes())
	}
	program, err := compileGuarded(text, &workBudget{left: maxWork}, known)
	if err != nil {
		return false, exprMismatch(err)
	}
	machine := vm.VM{MemoryBudget: exprMemory}
	out, err := machine.Run(program, env)
	if err != nil {
		return false, exprRuntime(err)
	}
	ok, isBool := out.(bool)
	if !isBool {
		return false, fmt.Errorf("%w but a %s", ErrNotBool, kindOf(out))
	}
	return ok, nil
}

// exprEnv is Argo's environment: isNil and default speak of the result, whatever
// they are given.
func exprEnv(result any, at time.Time) map[string]any {
	return map[string]any{
		"result":  result,
		"asInt":   exprInt,
		"asFloat": exprFloat,
		"isNaN":   math.IsNaN,
		"isInf":   func(f float64) bool { return math.IsInf(f, 0) },
		"isNil":   func(any) bool { return result == nil },
		"default": func(_, otherwise any) any {
			if result == nil {
				return otherwise
			}
			return result
		},
		// Only the caller reads the clock.
		"now": func() time.Time { return at },
	}
}

// exprTypes is the environment without values: the type of the result is not known
// before it is measured.
func exprTypes() types.Map {
	env := types.Map{}
	for name, f := range exprEnv(nil, time.Time{}) {
		env[name] = types.TypeOf(f)
	}
	env["result"] = types.Any
	return env
}

// numbersOnly says that Argo gives the conditions of a provider lists of numbers. What
// JSON holds are lists of anything.
func numbersOnly(p v1alpha1.MetricProvider) bool {
	return p.Prometheus != nil || p.Graphite != nil || p.Wavefront != nil
}

// exprNumbers gives a list of numbers the type that it has in Argo.
func exprNumbers(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	numbers := make([]float64, len(list))
	for i, item := range list {
		f, ok := item.(float64)
		if !ok {
			return v
		}
		numbers[i] = f
	}
	return numbers
}

func exprInt(v any) (int64, error) {
	switch v := v.(type) {
	case string:
		return strconv.ParseInt(v, 10, 64)
	case int:
		return int64(v), nil
	case int64:
		return v, nil
	case float64:
		return wholeNumber(v)
	}
	return 0, fmt.Errorf("asInt wants a number or a string, got %s", kindOf(v))
}

func exprFloat(v any) (float64, error) {
	switch v := v.(type) {
	case string:
		return strconv.ParseFloat(v, 64)
	case int:
		return float64(v), nil
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	}
	return 0, fmt.Errorf("asFloat wants a number or a string, got %s", kindOf(v))
}

// wholeNumber cuts the fraction off. NaN, Inf and what no int64 holds are errors.
func wholeNumber(f float64) (int64, error) {
	if math.IsNaN(f) || f >= 1<<63 || f < -1<<63 {
		return 0, fmt.Errorf("%s is no integer", number(f))
	}
	return int64(f), nil
}

func exprSyntax(err error) error {
	var at *file.Error
	if errors.As(err, &at) {
		return &SyntaxError{Line: at.Line, Column: at.Column + 1, Message: at.Message}
	}
	return &SyntaxError{Message: err.Error()}
}

// exprMismatch is what the condition can't do with the value at hand. Its position is
// of no use: the condition is one that can be compiled.
func exprMismatch(err error) error {
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		return errors.New(syntax.Message)
	}
	return err
}

// exprRuntime leaves the excerpt of the source off.
func exprRuntime(err error) error {
	if errors.Is(err, ErrTooMuch) {
		return ErrTooMuch
	}
	var at *file.Error
	if errors.As(err, &at) {
		return errors.New(at.Message)
	}
	return err
}

func exprMentions(root ast.Node) mentions {
	v := &exprVisitor{}
	ast.Walk(&root, v)
	return v.mentions
}

type exprVisitor struct{ mentions }

// Visit notes what a node mentions.
func (v *exprVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.name(n.Value)
	case *ast.BuiltinNode:
		v.name(n.Name)
	case *ast.NilNode:
		v.guardsAbsence = true
	case *ast.BinaryNode:
		equality := n.Operator == "==" || n.Operator == "!="
		v.guardsAbsence = v.guardsAbsence || n.Operator == "??" || equality && (isEmptyList(n.Left) || isEmptyList(n.Right))
		v.guardsNaN = v.guardsNaN || equality && isPart(n.Left) && n.Left.String() == n.Right.String()
	}
}

// isPart says that a node reads the result, an item, or a part of them.
func isPart(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.MemberNode, *ast.PointerNode:
		return true
	default:
		return isResult(n)
	}
}

func isEmptyList(node ast.Node) bool {
	list, ok := node.(*ast.ArrayNode)
	return ok && len(list.Nodes) == 0
}

func (v *exprVisitor) name(name string) {
	switch name {
	case "result", "$env":
		v.usesResult = true
	case "len", "isNil", "default":
		v.guardsAbsence = true
		v.usesResult = true
	case "isNaN":
		v.guardsNaN = true
	}
}
