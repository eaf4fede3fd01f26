package analysis

import (
	"fmt"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// EvaluateTime evaluates an expr expression for a time, such as
// now() - duration("5m"), at the time that now() gives.
func EvaluateTime(text string, at time.Time) (time.Time, error) {
	program, err := compileTime(text, &workBudget{left: maxWork})
	if err != nil {
		return time.Time{}, err
	}
	machine := vm.VM{MemoryBudget: exprMemory}
	out, err := machine.Run(program, timeEnv(at))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", text, exprRuntime(err))
	}
	t, ok := out.(time.Time)
	if !ok {
		return time.Time{}, fmt.Errorf("%s gives a %T, not a time", text, out)
	}
	return t, nil
}

func compileTime(text string, budget *workBudget) (*vm.Program, error) {
	program, err := compileGuarded(text, budget, expr.Env(timeEnv(time.Time{})))
	if err != nil {
		return nil, fmt.Errorf("%q is no expression for a time such as now() - duration(\"5m\"): %w", Truncate(text, maxShown), err)
	}
	return program, nil
}

func timeEnv(at time.Time) map[string]any {
	return map[string]any{"now": func() time.Time { return at }}
}
