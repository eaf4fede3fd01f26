package analysis

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// CELForm is an expr condition in CEL.
type CELForm struct {
	// Condition gives the verdict of the expr condition for each value, errors
	// included, but for the Differences.
	Condition string
	// Differences are in the order of their constants; most forms have none.
	Differences []Difference
}

// Difference is where the two languages part, though the form means the same.
type Difference string

// Differences of forms.
const (
	// DiffersOnTypes: expr takes a field or an item for unequal to what has another
	// type; CEL says Error.
	DiffersOnTypes Difference = "types"
	// DiffersOnItems: expr stops at the first item that can't be evaluated, with an
	// Error; CEL's all and exists read on for one that decides. CEL reads the keys of a
	// map too.
	DiffersOnItems Difference = "items"
	// DiffersOnZero: expr goes on with Inf or NaN where it divides by zero; CEL says
	// Error.
	DiffersOnZero Difference = "zero"
)

// allDifferences in their order.
var allDifferences = []Difference{DiffersOnTypes, DiffersOnItems, DiffersOnZero}

// NoCELForm says why an expr condition has no equal in CEL.
type NoCELForm struct {
	// Line and Column, from 1, of what has none.
	Line, Column int
	Reason       string
}

// Error has the position first.
func (e *NoCELForm) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// CELFormOf offers the CEL form of an expr condition whose arguments are put in. The
// error is a *SyntaxError for what is no condition, or a *NoCELForm.
func CELFormOf(condition string) (CELForm, error) {
	if _, err := compileExpr(condition, false); err != nil {
		return CELForm{}, err
	}
	tree, err := parser.Parse(condition)
	if err != nil {
		return CELForm{}, exprSyntax(err)
	}
	t := &celTranslator{source: tree.Source, differs: map[Difference]bool{}, guarded: exprMentions(tree.Node).guardsAbsence}
	t.demands.collect(tree.Node)
	if reason := t.demands.conflict(); reason != "" {
		return CELForm{}, t.no(tree.Node, "%s", reason)
	}
	term, err := t.truth(tree.Node)
	if err != nil {
		return CELForm{}, err
	}
	if !t.looked(term) {
		return CELForm{}, t.no(tree.Node, "it can be told without a look at the result's type, which Expr checks beforehand")
	}
	form := CELForm{Condition: term.text}
	for _, d := range allDifferences {
		if t.differs[d] {
			form.Differences = append(form.Differences, d)
		}
	}
	return form, nil
}

// celTranslator walks the tree of one condition.
type celTranslator struct {
	source file.Source
	// loops are the variables of the predicates around a node, the innermost last.
	loops   []string
	differs map[Difference]bool
	demands demands
	// guarded is true when the condition speaks of no data.
	guarded bool
}

func (t *celTranslator) no(node ast.Node, format string, args ...any) error {
	at := (&file.Error{Location: node.Location()}).Bind(t.source)
	return &NoCELForm{Line: at.Line, Column: at.Column + 1, Reason: fmt.Sprintf(format, args...)}
}

// demands are the types that a condition takes the result for. Expr checks them all
// for the value at hand before it evaluates anything.
type demands struct{ number, text, truth, list, fields, sized bool }

func (d *demands) collect(root ast.Node) { ast.Walk(&root, d) }

// Visit notes what a node wants of the result.
func (d *demands) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		if isResult(n.Node) {
			_, byName := n.Property.(*ast.StringNode)
			d.fields = d.fields || byName
			d.list = d.list || !byName
		}
	case *ast.BuiltinNode:
		if len(n.Arguments) > 0 && isResult(n.Arguments[0]) {
			d.sized = d.sized || n.Name == "len"
			d.list = d.list || byPredicate(n)
		}
	case *ast.CallNode:
		f, _ := n.Callee.(*ast.IdentifierNode)
		if f != nil && (f.Value == "isNaN" || f.Value == "isInf") && isResult(n.Arguments[0]) {
			d.number = true
		}
	case *ast.UnaryNode:
		d.number = d.number || n.Operator == "-" && isResult(n.Node)
		d.truth = d.truth || (n.Operator == "!" || n.Operator == "not") && isResult(n.Node)
	case *ast.BinaryNode:
		d.binary(n)
	}
}

func (d *demands) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "in", "not in":
		d.list = d.list || isResult(n.Right)
		d.text = d.text || isResult(n.Left)
		return
	case "&&", "||", "and", "or":
		d.truth = d.truth || isResult(n.Left) || isResult(n.Right)
		return
	}
	other := n.Right
	if !isResult(n.Left) {
		if other = n.Left; !isResult(n.Right) {
			return
		}
	}
	switch other.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		d.number = true
	case *ast.StringNode:
		d.text = true
	case *ast.BoolNode:
		d.truth = true
	}
}

// looked says that a term is an error over each result of another type than the
// condition takes it for.
func (t *celTranslator) looked(c celTerm) bool {
	d := t.demands
	if c.looked || d == (demands{}) {
		return true
	}
	for _, wanted := range []struct {
		demanded bool
		uses     []string
	}{
		{d.number, []string{"number", "eqnumber"}},
		{d.text, []string{"string", "eqstring"}},
		{d.truth, []string{"bool", "eqbool"}},
		{d.list, []string{"list", "list?", "items"}},
		{d.fields, []string{"fields"}},
		{d.sized && !d.list, []string{"sized"}},
	} {
		for _, use := range wanted.uses {
			if wanted.demanded && slices.Contains(c.fails, use+" result") {
				return true
			}
		}
	}
	return false
}

// conflict says why no value can satisfy all demands.
func (d *demands) conflict() string {
	wanted := 0
	for _, one := range []bool{d.number, d.text, d.truth, d.list, d.fields} {
		if one {
			wanted++
		}
	}
	switch {
	case wanted > 1, d.sized && (d.number || d.truth):
		return "it takes the result for two types at once, which Expr refuses for each value"
	case d.sized && (d.text || d.fields):
		return "it asks for the length of what it takes for text or a map, whose type CEL looks at only where it gets to it"
	}
	return ""
}

func isResult(node ast.Node) bool {
	ident, ok := node.(*ast.IdentifierNode)
	return ok && ident.Value == "result"
}
