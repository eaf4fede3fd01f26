package analysis

import (
	"math"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// arithmetic is an operator on integers and measured numbers in any mixture: two
// integers give an integer, everything else a double; / always gives a double, so
// that 1/2 is a half. Dividing by zero is an error, as CEL has it for integers: a
// share of nothing must not be judged.
type arithmetic struct {
	operator, id string
	ints         func(a, b types.Int) ref.Val
	doubles      func(a, b float64) ref.Val
	// others are the overloads on other types, and the function that carries them out.
	others []cel.FunctionOpt
}

var celArithmetic = []arithmetic{
	{
		operator: operators.Add, id: "add",
		ints:    func(a, b types.Int) ref.Val { return a.Add(b) },
		doubles: func(a, b float64) ref.Val { return types.Double(a + b) },
		others: []cel.FunctionOpt{
			cel.Overload(overloads.AddString, []*cel.Type{cel.StringType, cel.StringType}, cel.StringType, cel.BinaryBinding(add)),
			cel.Overload(overloads.AddList, []*cel.Type{listOf, listOf}, listOf, cel.BinaryBinding(add)),
		},
	},
	{
		operator: operators.Subtract, id: "subtract",
		ints:    func(a, b types.Int) ref.Val { return a.Subtract(b) },
		doubles: func(a, b float64) ref.Val { return types.Double(a - b) },
	},
	{
		operator: operators.Multiply, id: "multiply",
		ints:    func(a, b types.Int) ref.Val { return a.Multiply(b) },
		doubles: func(a, b float64) ref.Val { return types.Double(a * b) },
	},
	{operator: operators.Divide, id: "divide", doubles: divide},
	{
		operator: operators.Modulo, id: "modulo",
		ints:    func(a, b types.Int) ref.Val { return a.Modulo(b) },
		doubles: modulo,
	},
}

var listOf = cel.ListType(cel.TypeParamType("A"))

func divide(a, b float64) ref.Val {
	if b == 0 {
		return types.NewErr("division by zero")
	}
	return types.Double(a / b)
}

func modulo(a, b float64) ref.Val {
	if b == 0 {
		return types.NewErr("modulus by zero")
	}
	return types.Double(math.Mod(a, b))
}

func (a arithmetic) declare() cel.EnvOption {
	intResult := cel.IntType
	if a.ints == nil {
		intResult = cel.DoubleType
	}
	opts := []cel.FunctionOpt{
		a.overload("_int64", cel.IntType, cel.IntType, intResult),
		a.overload("_double", cel.DoubleType, cel.DoubleType, cel.DoubleType),
		a.overload("_int64_double", cel.IntType, cel.DoubleType, cel.DoubleType),
		a.overload("_double_int64", cel.DoubleType, cel.IntType, cel.DoubleType),
	}
	return cel.Function(a.operator, append(opts, a.others...)...)
}

func (a arithmetic) overload(suffix string, left, right, result *cel.Type) cel.FunctionOpt {
	return cel.Overload(a.id+suffix, []*cel.Type{left, right}, result, cel.BinaryBinding(func(x, y ref.Val) ref.Val {
		i, iInt := x.(types.Int)
		j, jInt := y.(types.Int)
		if iInt && jInt && a.ints != nil {
			return a.ints(i, j)
		}
		return a.doubles(double(x), double(y))
	}))
}

// double is the value of an int or a double.
func double(v ref.Val) float64 {
	if i, ok := v.(types.Int); ok {
		return float64(i)
	}
	return float64(v.(types.Double))
}

// celFunctions are Argo's functions. Unlike Argo's, isNil and default speak of their
// argument; len(null) is 0, so that one guard serves every provider.
func celFunctions() []cel.EnvOption {
	unary := func(name string, result *cel.Type, f func(ref.Val) ref.Val) cel.EnvOption {
		return cel.Function(name, cel.Overload(name+"_dyn", []*cel.Type{cel.DynType}, result, cel.UnaryBinding(f)))
	}
	return []cel.EnvOption{
		unary("len", cel.IntType, celLen),
		unary("asInt", cel.IntType, celInt),
		unary("asFloat", cel.DoubleType, celFloat),
		unary("isNaN", cel.BoolType, numeric("isNaN", math.IsNaN)),
		unary("isInf", cel.BoolType, numeric("isInf", func(f float64) bool { return math.IsInf(f, 0) })),
		unary("isNil", cel.BoolType, func(v ref.Val) ref.Val { return types.Bool(v == types.NullValue) }),
		cel.Function("default", cel.Overload("default_dyn", []*cel.Type{cel.DynType, cel.DynType}, cel.DynType,
			cel.BinaryBinding(func(v, otherwise ref.Val) ref.Val {
				if v == types.NullValue {
					return otherwise
				}
				return v
			}))),
	}
}

func celLen(v ref.Val) ref.Val {
	if v == types.NullValue {
		return types.IntZero
	}
	if sized, ok := v.(traits.Sizer); ok {
		return sized.Size()
	}
	return types.NewErr("len wants a list, a map or a string, got %s", v.Type().TypeName())
}

func numeric(name string, f func(float64) bool) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		switch v.(type) {
		case types.Int, types.Double:
			return types.Bool(f(double(v)))
		}
		return types.NewErr("%s wants a number, got %s", name, v.Type().TypeName())
	}
}

func celInt(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.Int:
		return v
	case types.Double:
		i, err := wholeNumber(float64(v))
		if err != nil {
			return types.NewErr("asInt: %v", err)
		}
		return types.Int(i)
	case types.String:
		i, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return types.NewErr("asInt: %q is no integer", string(v))
		}
		return types.Int(i)
	}
	return types.NewErr("asInt wants a number or a string, got %s", v.Type().TypeName())
}

func celFloat(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.Int:
		return types.Double(v)
	case types.Double:
		return v
	case types.String:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return types.NewErr("asFloat: %q is no number", string(v))
		}
		return types.Double(f)
	}
	return types.NewErr("asFloat wants a number or a string, got %s", v.Type().TypeName())
}
