package analysis

import (
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// relation orders integers and measured numbers in any mixture, and strings, bools,
// times and durations among themselves. It is CEL's own, but a pair that can't be
// compared is an error that names both types. NaN is in no relation to anything.
type relation struct {
	operator, id string
	holds        func(compared types.Int) bool
}

var celRelations = []relation{
	{operators.Less, "less", func(c types.Int) bool { return c < 0 }},
	{operators.LessEquals, "less_equals", func(c types.Int) bool { return c <= 0 }},
	{operators.Greater, "greater", func(c types.Int) bool { return c > 0 }},
	{operators.GreaterEquals, "greater_equals", func(c types.Int) bool { return c >= 0 }},
}

func (r relation) declare() cel.EnvOption {
	var opts []cel.FunctionOpt
	for suffix, pair := range map[string][]*cel.Type{
		"_int64":        {cel.IntType, cel.IntType},
		"_double":       {cel.DoubleType, cel.DoubleType},
		"_int64_double": {cel.IntType, cel.DoubleType},
		"_double_int64": {cel.DoubleType, cel.IntType},
		"_string":       {cel.StringType, cel.StringType},
		"_bool":         {cel.BoolType, cel.BoolType},
		"_timestamp":    {cel.TimestampType, cel.TimestampType},
		"_duration":     {cel.DurationType, cel.DurationType},
	} {
		opts = append(opts, cel.Overload(r.id+suffix, pair, cel.BoolType, cel.BinaryBinding(r.compare)))
	}
	return cel.Function(r.operator, opts...)
}

func (r relation) compare(a, b ref.Val) ref.Val {
	if notNumber(a) || notNumber(b) {
		return types.False
	}
	compared := a.(traits.Comparer).Compare(b)
	order, ok := compared.(types.Int)
	if !ok {
		return compared
	}
	return types.Bool(r.holds(order))
}

func notNumber(v ref.Val) bool {
	d, ok := v.(types.Double)
	return ok && math.IsNaN(float64(d))
}
