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
)

const (
	// exprNodes is the most nodes of an expr condition.
	exprNodes = 1000
	// exprMemory is the most cells that evaluating one may take.
	exprMemory = 1e6
)

// compileExpr compiles for Argo's environment. The error is a *SyntaxError.
func compileExpr(text string) (*condition, error) {
	program, err := expr.Compile(text, expr.Env(exprTypes()), expr.AsBool(),
		expr.MaxNodes(exprNodes), expr.DisableBuiltin("now"))
	if err != nil {
		return nil, exprSyntax(err)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, exprSyntax(err)
	}
	return &condition{text: text, mentions: exprMentions(tree.Node), run: func(value any, at time.Time) (bool, error) {
		machine := vm.VM{MemoryBudget: exprMemory}
		out, err := machine.Run(program, exprEnv(exprValue(value), at))
		if err != nil {
			return false, exprRuntime(err)
		}
		ok, isBool := out.(bool)
		if !isBool {
			return false, fmt.Errorf("%w but a %T", ErrNotBool, out)
		}
		return ok, nil
	}}, nil
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

// exprValue gives a list of numbers the type that it has in Argo.
func exprValue(v any) any {
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

// exprRuntime leaves the excerpt of the source off.
func exprRuntime(err error) error {
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
	case *ast.ArrayNode:
		v.guardsAbsence = v.guardsAbsence || len(n.Nodes) == 0
	case *ast.BinaryNode:
		v.guardsAbsence = v.guardsAbsence || n.Operator == "??"
	}
}

func (v *exprVisitor) name(name string) {
	switch name {
	case "result":
		v.usesResult = true
	case "len", "isNil", "default":
		v.guardsAbsence = true
		v.usesResult = true
	case "isNaN":
		v.guardsNaN = true
	}
}
