package analysis

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// celItems is the most items of a list that + makes, and the most that a
	// comparison looks at, counted as often as they are there.
	celItems = 100_000
	// celBytes is the most bytes of a text that + makes.
	celBytes = 64 << 10
	// celLongText is the length from which a text makes each turn of a loop dearer.
	celLongText = 4 << 10
	// celSteps is how many steps of a regular expression are one unit of work.
	celSteps = 40
	// celTurn is the function that the loops of macros call. No condition can name it.
	celTurn = "@turn"
	// celFields is the one that has() calls.
	celFields = "@fields"
)

// celGuard makes one evaluation pay for its loops, and carries out what CEL does
// whatever it costs. CEL's own cost limit takes time that grows with its square.
type celGuard struct {
	budget workBudget
	// turn is what a turn of a loop costs for each node of its body.
	turn int
}

// start begins an evaluation over a value.
func (g *celGuard) start(value any) {
	g.budget.left = maxWork
	g.turn = 1 + longest(value, workDepth)/celLongText
}

// longest is the length of the longest text in a value.
func longest(v any, depth int) int {
	most := 0
	if depth == 0 {
		return most
	}
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, item := range v {
			most = max(most, longest(item, depth-1))
		}
	case map[string]any:
		for key, item := range v {
			most = max(most, len(key), longest(item, depth-1))
		}
	}
	return most
}

// decorate replaces the operators that CEL carries out whatever they cost, and makes
// == and != of two types an error, as < is: failureCondition: result == "false" would
// pass for ever over a bool. Null may be compared with anything.
func (g *celGuard) decorate(in interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := in.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return in, nil
	}
	switch call.Function() {
	case celTurn:
		return &guardedCall{call, g.pay}, nil
	case operators.Equals:
		return &guardedCall{call, g.equals}, nil
	case operators.NotEquals:
		return &guardedCall{call, g.differs}, nil
	case operators.In:
		return &guardedCall{call, g.in}, nil
	case overloads.Matches:
		return &guardedCall{call, g.matches}, nil
	}
	return in, nil
}

// pay ends the evaluation when there is nothing left.
func (g *celGuard) pay(going, nodes ref.Val) ref.Val {
	n, _ := nodes.(types.Int)
	if g.budget.spend(int(n)*g.turn) != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: ErrTooMuch.Error()})
	}
	return going
}

// guardedCall carries a call of two arguments out by a function of ours.
type guardedCall struct {
	interpreter.InterpretableCall
	carryOut func(a, b ref.Val) ref.Val
}

// Exec evaluates the arguments, of which an error is the result.
func (g *guardedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args := g.Args()
	a := args[0].Exec(frame)
	if types.IsUnknownOrError(a) {
		return a
	}
	b := args[1].Exec(frame)
	if types.IsUnknownOrError(b) {
		return b
	}
	return g.carryOut(a, b)
}

// Eval is Exec for callers of the older kind.
func (g *guardedCall) Eval(vars interpreter.Activation) ref.Val {
	return g.Exec(interpreter.AsFrame(vars))
}

func (g *celGuard) equals(a, b ref.Val) ref.Val {
	if a.Type() != types.NullType && b.Type() != types.NullType && celKind(a) != celKind(b) {
		return types.WrapErr(&mismatch{a.Type().TypeName(), b.Type().TypeName()})
	}
	if !g.within(a) || !g.within(b) {
		return types.WrapErr(ErrTooMuch)
	}
	return types.Equal(a, b)
}

func (g *celGuard) differs(a, b ref.Val) ref.Val {
	equal := g.equals(a, b)
	if same, ok := equal.(types.Bool); ok {
		return !same
	}
	return equal
}

// mismatch of the types of what is compared.
type mismatch struct{ left, right string }

// Error names both.
func (m *mismatch) Error() string {
	return "a " + m.left + " and a " + m.right + " can't be compared"
}

// celKind is the type of a value, in which all numbers are one.
func celKind(v ref.Val) string {
	switch v.(type) {
	case types.Int, types.Uint, types.Double:
		return "number"
	}
	return v.Type().TypeName()
}

// within pays for what a value holds, up to celItems.
func (g *celGuard) within(v ref.Val) bool {
	left := celItems
	return countItems(v, &left) && g.budget.spend(celItems-left) == nil
}

func countItems(v ref.Val, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	iterable, ok := v.(traits.Iterable)
	if !ok {
		return true
	}
	mapped, isMap := v.(traits.Mapper)
	for items := iterable.Iterator(); items.HasNext() == types.True; {
		item := items.Next()
		if isMap {
			item = mapped.Get(item)
		}
		if !countItems(item, left) {
			return false
		}
	}
	return true
}

func (g *celGuard) in(item, container ref.Val) ref.Val {
	holder, ok := container.(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(container)
	}
	if _, isMap := container.(traits.Mapper); !isMap && (!g.within(container) || !g.within(item)) {
		return types.WrapErr(ErrTooMuch)
	}
	return holder.Contains(item)
}

func (g *celGuard) matches(text, pattern ref.Val) ref.Val {
	s, isText := text.(types.String)
	p, isPattern := pattern.(types.String)
	if !isText || !isPattern {
		return types.MaybeNoSuchOverloadErr(text)
	}
	steps, err := patternSteps(string(p))
	if err != nil {
		return types.WrapErr(err)
	}
	if g.budget.spend(1+steps*(len(s)+1)/celSteps) != nil {
		return types.WrapErr(ErrTooMuch)
	}
	return s.Match(p)
}

// add is + on texts and lists. A chain of them would double without end.
func add(a, b ref.Val) ref.Val {
	left, _ := a.(traits.Sizer).Size().(types.Int)
	right, _ := b.(traits.Sizer).Size().(types.Int)
	most := types.Int(celItems)
	if _, isText := a.(types.String); isText {
		most = celBytes
	}
	if left+right > most {
		return types.WrapErr(ErrTooMuch)
	}
	return a.(traits.Adder).Add(b)
}
