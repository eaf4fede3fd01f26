package analysis

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// celMacros are CEL's own, whose loops call celTurn in each turn, and equality with
// integer literals.
func celMacros() cel.EnvOption {
	macros := []cel.Macro{literalEquality(operators.Equals), literalEquality(operators.NotEquals)}
	for _, m := range cel.StandardMacros {
		macros = append(macros, paying(m))
	}
	return cel.Macros(append(macros, strictHas)...)
}

// strictHas is has(), but of something that has no fields, such as a number, it is an
// error rather than false: a wrong type is not an absent field.
var strictHas = cel.GlobalMacro(operators.Has, 1, func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
	test, err := cel.HasMacro.Expander()(f, nil, args)
	if err != nil {
		return nil, err
	}
	of := f.Copy(args[0].AsSelect().Operand())
	return f.NewCall(operators.Conditional, f.NewCall(celFields, of), test, f.NewLiteral(types.False)), nil
})

// celFieldsFunction is true of a map, and an error of everything else.
func celFieldsFunction() cel.EnvOption {
	return cel.Function(celFields, cel.Overload("fields_dyn", []*cel.Type{cel.DynType}, cel.BoolType,
		cel.UnaryBinding(func(of ref.Val) ref.Val {
			if _, ok := of.(traits.Mapper); !ok {
				return types.NewErr("has wants a field of a map, got one of a %s", of.Type().TypeName())
			}
			return types.True
		})))
}

// celTurnFunction gives its first argument back; the guard makes it pay.
func celTurnFunction() cel.EnvOption {
	return cel.Function(celTurn, cel.Overload("turn_bool_int", []*cel.Type{cel.BoolType, cel.IntType}, cel.BoolType,
		cel.BinaryBinding(func(going, _ ref.Val) ref.Val { return going })))
}

// paying is a macro whose loop pays for the nodes of its body in each turn.
func paying(m cel.Macro) cel.Macro {
	expand := func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		out, err := m.Expander()(f, target, args)
		if err != nil || out == nil || out.Kind() != ast.ComprehensionKind {
			return out, err
		}
		loop := out.AsComprehension()
		going := f.NewCall(celTurn, loop.LoopCondition(), f.NewLiteral(types.Int(nodes(args))))
		return f.NewComprehension(loop.IterRange(), loop.IterVar(), loop.AccuVar(), loop.AccuInit(), going, loop.LoopStep(), loop.Result()), nil
	}
	if m.IsReceiverStyle() {
		return cel.ReceiverMacro(m.Function(), m.ArgCount(), expand)
	}
	return cel.GlobalMacro(m.Function(), m.ArgCount(), expand)
}

func nodes(exprs []ast.Expr) int {
	n := 0
	for _, e := range exprs {
		ast.PreOrderVisit(e, ast.NewExprVisitor(func(ast.Expr) { n++ }))
	}
	return n
}

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
