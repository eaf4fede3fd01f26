package analysis

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
)

// loopNames are the variables of predicates in predicates.
var loopNames = []string{"x", "y", "z"}

// celLoops are the builtins with a predicate, in CEL.
var celLoops = map[string]string{
	"all": "%s.all(%s, %s)", "any": "%s.exists(%s, %s)", "none": "!%s.exists(%s, %s)", "one": "%s.exists_one(%s, %s)",
	"filter": "%s.filter(%s, %s)", "map": "%s.map(%s, %s)",
}

func (t *celTranslator) builtin(n *ast.BuiltinNode) (celTerm, error) {
	if n.Name == "len" {
		return t.length(n)
	}
	if n.Name == "count" {
		return celTerm{}, t.no(n, "count; in CEL it needs size(), which is a word about no data")
	}
	format, ok := celLoops[n.Name]
	if !ok {
		return celTerm{}, t.no(n, "CEL has no %s", n.Name)
	}
	if len(n.Arguments) != 2 || len(t.loops) == len(loopNames) {
		return celTerm{}, t.no(n, "CEL has no such form of %s", n.Name)
	}
	list, err := t.value(n.Arguments[0])
	if err != nil {
		return celTerm{}, err
	}
	if list.path == "" && list.kind != list64 {
		return celTerm{}, t.no(n, "%s over something else than a list", n.Name)
	}
	name := loopNames[len(t.loops)]
	body, err := t.predicate(n, name)
	if err != nil {
		return celTerm{}, err
	}
	t.differs[DiffersOnItems] = true
	if list.path != "result" && list.path != "" && readsItem(n.Arguments[1]) {
		t.differs[DiffersOnTypes] = true // expr reads text by its bytes
	}
	out := celTerm{text: fmt.Sprintf(format, list.in(bindMember), name, body.text), binds: bindMember, kind: truth}
	switch n.Name {
	case "none":
		out.binds = bindUnary
	case "filter", "map":
		out.kind = list64
	}
	use := []string{"list " + list.path, "list? " + list.path, "sized " + list.path}
	out.needs = union(list.needs, append(use[:1:1], "items of "+out.text))
	out.fails = union(list.fails, use)
	return out, nil
}

// readsItem says that a predicate looks at its item itself, not at a field of it.
func readsItem(predicate ast.Node) bool {
	items := &itemVisitor{}
	ast.Walk(&predicate, items)
	return items.read > items.members
}

type itemVisitor struct{ read, members int }

// Visit counts items, and members of them.
func (v *itemVisitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PointerNode:
		v.read++
	case *ast.MemberNode:
		if _, ok := n.Node.(*ast.PointerNode); ok {
			v.members++
		}
	}
}

func (t *celTranslator) predicate(n *ast.BuiltinNode, name string) (celTerm, error) {
	predicate, ok := n.Arguments[1].(*ast.PredicateNode)
	if !ok {
		return celTerm{}, t.no(n, "%s without a predicate", n.Name)
	}
	t.loops = append(t.loops, name)
	defer func() { t.loops = t.loops[:len(t.loops)-1] }()
	if n.Name == "map" {
		return t.value(predicate.Node)
	}
	return t.truth(predicate.Node)
}

// length is that of a field, an item or a list that was filtered.
func (t *celTranslator) length(n *ast.BuiltinNode) (celTerm, error) {
	of, err := t.value(n.Arguments[0])
	if err != nil {
		return celTerm{}, err
	}
	switch {
	case of.path == "result" && t.demands.list:
		return celTerm{
			text: "size([] + result)", binds: bindMember, kind: integer64,
			needs: []string{"list result"}, fails: []string{"list result", "list? result", "sized result"},
		}, nil
	case of.path == "" && of.kind != list64:
		return celTerm{}, t.no(n, "the length of something that was not measured")
	}
	out := celTerm{text: "size(" + of.text + ")", binds: bindMember, kind: integer64, needs: of.needs, fails: of.fails}
	if of.path != "" {
		use := []string{"sized " + of.path}
		out.needs, out.fails = union(of.needs, use), union(of.fails, use)
	}
	return out, nil
}

func (t *celTranslator) sign(n *ast.UnaryNode) (celTerm, error) {
	if n.Operator != "-" {
		return t.truth(n)
	}
	of, err := t.value(n.Node)
	if err != nil {
		return celTerm{}, err
	}
	if of.kind == unknown {
		of.needs, of.fails = of.used("number")
		of.kind = float
	}
	if of.kind != integer64 && of.kind != float {
		return celTerm{}, t.no(n, "it is no number")
	}
	of.text, of.binds, of.path, of.field = "-"+of.in(bindUnary), bindUnary, "", false
	return of, nil
}

// arithmetic of numbers. Of what was measured it gives a float.
func (t *celTranslator) arithmetic(n *ast.BinaryNode) (celTerm, error) {
	left, right, err := t.sides(n)
	if err != nil {
		return celTerm{}, err
	}
	for _, side := range []celTerm{left, right} {
		if side.kind != unknown && side.kind != integer64 && side.kind != float {
			return celTerm{}, t.no(n, "CEL has %s for numbers only", n.Operator)
		}
	}
	whole := left.kind == integer64 && right.kind == integer64
	switch {
	case n.Operator == "+" && left.kind == unknown && right.kind == unknown:
		return celTerm{}, t.no(n, "+ of two things whose types aren't known: Expr adds no two lists, CEL does")
	case n.Operator == "%" && !(whole && right.literal && !right.zero):
		return celTerm{}, t.no(n, "Expr's %% takes integers only, CEL's takes every number")
	case whole && !left.literal && n.Operator != "%" && n.Operator != "/", whole && !right.literal:
		return celTerm{}, t.no(n, "Expr's integers wrap around, CEL's end with an Error")
	case n.Operator == "/" && right.literal && right.zero:
		return celTerm{}, t.no(n, "CEL divides nothing by zero")
	}
	if n.Operator == "/" && !right.literal {
		t.differs[DiffersOnZero] = true
	}
	binds := bindProduct
	if n.Operator == "+" || n.Operator == "-" {
		binds = bindSum
	}
	leftNeeds, leftFails := left.used("number")
	rightNeeds, rightFails := right.used("number")
	out := celTerm{
		text: left.in(binds) + " " + n.Operator + " " + right.in(binds+1), binds: binds, kind: float,
		needs: union(leftNeeds, rightNeeds), fails: union(leftFails, rightFails),
	}
	if whole && n.Operator != "/" {
		out.kind = integer64
	}
	return out, nil
}
