package analysis

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// celCost bounds the evaluation of one condition, in CEL's units: about 10 ms.
	celCost = 1_000_000
	// celSize is the most characters of a CEL condition.
	celSize = 16 << 10
)

// celEnv is CEL in which integers and measured numbers mix. Arithmetic and
// comparisons are our own: see celArithmetic and celRelations.
var celEnv = sync.OnceValues(func() (*cel.Env, error) {
	replaced := make([]*env.Function, 0, len(celArithmetic))
	for _, a := range celArithmetic {
		replaced = append(replaced, env.NewFunction(a.operator))
	}
	for _, r := range celRelations {
		replaced = append(replaced, env.NewFunction(r.operator))
	}
	opts := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(env.NewLibrarySubset().AddExcludedFunctions(replaced...))),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(celSize),
		cel.Variable("result", cel.DynType),
		cel.Macros(literalEquality(operators.Equals), literalEquality(operators.NotEquals)),
	}
	for _, a := range celArithmetic {
		opts = append(opts, a.declare())
	}
	for _, r := range celRelations {
		opts = append(opts, r.declare())
	}
	return cel.NewCustomEnv(append(opts, celFunctions()...)...)
})

// literalEquality lets an integer literal be compared with a computed number for
// equality: the type checker, which knows the literal for an integer, is told to
// leave the comparison to the evaluation, where 1 equals 1.0.
func literalEquality(operator string) cel.Macro {
	return cel.GlobalMacro(operator, 2, func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		for i, arg := range args {
			if arg.Kind() != ast.LiteralKind {
				continue
			}
			if _, isInt := arg.AsLiteral().(types.Int); isInt {
				args[i] = f.NewCall("dyn", arg)
				return f.NewCall(operator, args...), nil
			}
		}
		return nil, nil // not expanded
	})
}

// compileCEL compiles a condition. The error is a *SyntaxError, or says that the
// environment can't be made.
func compileCEL(text string) (*condition, error) {
	e, err := celEnv()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	checked, issues := e.Compile(text)
	if issues.Err() != nil {
		return nil, celSyntax(issues)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, &SyntaxError{Message: fmt.Sprintf("it gives a %s, not a bool", t)}
	}
	program, err := e.Program(checked, cel.CostLimit(celCost))
	if err != nil {
		return nil, &SyntaxError{Message: err.Error()}
	}
	mentioned, err := celMentions(text)
	if err != nil {
		return nil, err
	}
	return &condition{text: text, mentions: mentioned, run: func(value any, _ time.Time) (bool, error) {
		out, _, err := program.Eval(map[string]any{"result": value})
		if err != nil {
			return false, celRuntime(err)
		}
		return boolOf(out)
	}}, nil
}

func boolOf(out ref.Val) (bool, error) {
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%w but a %s", ErrNotBool, out.Type().TypeName())
	}
	return bool(b), nil
}

func celSyntax(issues *cel.Issues) error {
	first := issues.Errors()[0]
	return &SyntaxError{
		Line: first.Location.Line(), Column: first.Location.Column() + 1,
		Message: celNames.Replace(first.Message),
	}
}

// celNames are CEL's inner names of operators, as people write them.
var celNames = strings.NewReplacer(
	"_==_", "==", "_!=_", "!=", "_<_", "<", "_<=_", "<=", "_>_", ">", "_>=_", ">=",
	"_+_", "+", "_-_", "-", "_*_", "*", "_/_", "/", "_%_", "%", "-_", "-", "!_", "!",
	"_&&_", "&&", "_||_", "||", "_?_:_", "?:", "_[_]", "[]", "@in", "in",
)

func celRuntime(err error) error {
	return errors.New(celNames.Replace(err.Error()))
}

// celPlain parses without macros, so that what the user wrote can be told from what
// a macro makes of it.
var celPlain = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(cel.ClearMacros(), cel.ParserExpressionSizeLimit(celSize))
})

func celMentions(text string) (mentions, error) {
	e, err := celPlain()
	if err != nil {
		return mentions{}, fmt.Errorf("set up CEL: %w", err)
	}
	parsed, issues := e.Parse(text)
	if issues.Err() != nil {
		return mentions{}, celSyntax(issues)
	}
	var t mentions
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.IdentKind:
			t.usesResult = t.usesResult || x.AsIdent() == "result"
		case ast.LiteralKind:
			t.guardsAbsence = t.guardsAbsence || x.AsLiteral() == types.NullValue
		case ast.ListKind:
			t.guardsAbsence = t.guardsAbsence || x.AsList().Size() == 0
		case ast.CallKind:
			t.call(x.AsCall().FunctionName())
		}
	}))
	return t, nil
}

func (t *mentions) call(function string) {
	switch function {
	case "len", "size", "isNil", "default", "has":
		t.guardsAbsence = true
	case "isNaN":
		t.guardsNaN = true
	}
}
