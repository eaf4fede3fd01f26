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
	"github.com/google/cel-go/interpreter"
)

// celSize is the most characters of a CEL condition.
const celSize = 16 << 10

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
		celMacros(), celTurnFunction(), celFieldsFunction(),
	}
	for _, a := range celArithmetic {
		opts = append(opts, a.declare())
	}
	for _, r := range celRelations {
		opts = append(opts, r.declare())
	}
	return cel.NewCustomEnv(append(opts, celFunctions()...)...)
})

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
	guard := &celGuard{}
	program, err := e.Program(checked, cel.CustomDecoratorV2(guard.decorate))
	if err != nil {
		return nil, &SyntaxError{Message: err.Error()}
	}
	mentioned, err := celMentions(text)
	if err != nil {
		return nil, err
	}
	var one sync.Mutex // the guard counts one evaluation at a time
	return &condition{text: text, mentions: mentioned, run: func(value any, _ time.Time) (bool, error) {
		one.Lock()
		defer one.Unlock()
		guard.start(value)
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
	var cancelled interpreter.EvalCancelledError
	if errors.Is(err, ErrTooMuch) || errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return ErrTooMuch
	}
	var unlike *mismatch
	if errors.As(err, &unlike) {
		return unlike
	}
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
		case ast.CallKind:
			t.call(x.AsCall().FunctionName(), x.AsCall().Args())
		}
	}))
	return t, nil
}

func (t *mentions) call(function string, args []ast.Expr) {
	switch function {
	case "len", "size", "isNil", "default":
		t.guardsAbsence = true
	case "isNaN":
		t.guardsNaN = true
	case operators.Equals, operators.NotEquals:
		t.guardsNaN = t.guardsNaN || args[0].Kind() != ast.LiteralKind && samePath(args[0], args[1])
		for _, arg := range args {
			t.guardsAbsence = t.guardsAbsence || arg.Kind() == ast.ListKind && arg.AsList().Size() == 0
		}
	}
}

// samePath says that two expressions read the same part of the result. What isn't equal
// to itself is NaN.
func samePath(a, b ast.Expr) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case ast.IdentKind:
		return a.AsIdent() == b.AsIdent()
	case ast.LiteralKind:
		return a.AsLiteral().Equal(b.AsLiteral()) == types.True
	case ast.SelectKind:
		return a.AsSelect().FieldName() == b.AsSelect().FieldName() && samePath(a.AsSelect().Operand(), b.AsSelect().Operand())
	case ast.CallKind:
		one, other := a.AsCall(), b.AsCall()
		return one.FunctionName() == operators.Index && other.FunctionName() == operators.Index &&
			samePath(one.Args()[0], other.Args()[0]) && samePath(one.Args()[1], other.Args()[1])
	}
	return false
}
