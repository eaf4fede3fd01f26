package analysis

import (
	"github.com/expr-lang/expr/ast"
)

// truth translates what must be true or false.
func (t *celTranslator) truth(node ast.Node) (celTerm, error) {
	switch n := node.(type) {
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			inner, err := t.truth(n.Node)
			return not(inner), err
		}
	case *ast.ConditionalNode:
		return t.ternary(n)
	case *ast.BinaryNode:
		return t.binary(n)
	}
	term, err := t.value(node)
	if err != nil || term.kind == truth {
		return term, err
	}
	if term.kind != unknown {
		return celTerm{}, t.no(node, "it is no bool")
	}
	term.needs, term.fails = term.used("bool")
	return term, nil
}

func not(c celTerm) celTerm {
	c.text, c.binds, c.short = "!"+c.in(bindUnary), bindUnary, nil
	c.guards = map[guards]guards{isAbsent: isThere, isThere: isAbsent}[c.guards]
	return c
}

func (t *celTranslator) ternary(n *ast.ConditionalNode) (celTerm, error) {
	var parts [3]celTerm
	for i, node := range []ast.Node{n.Cond, n.Exp1, n.Exp2} {
		var err error
		if parts[i], err = t.truth(node); err != nil {
			return celTerm{}, err
		}
	}
	if taken := parts[2]; parts[0].short != nil {
		if parts[0].nonempty {
			taken = parts[1]
		}
		parts[0] = parts[0].before(taken, parts[0].nonempty)
	}
	return celTerm{
		text:  parts[0].in(bindOr) + " ? " + parts[1].in(bindOr) + " : " + parts[2].in(bindOr),
		binds: bindTernary, kind: truth,
		needs: union(parts[0].needs, union(parts[1].needs, parts[2].needs)), fails: parts[0].fails,
		looked: t.looked(parts[0]) || (parts[0].guards == isAbsent || t.looked(parts[1])) && (parts[0].guards == isThere || t.looked(parts[2])),
	}, nil
}

func (t *celTranslator) binary(n *ast.BinaryNode) (celTerm, error) {
	switch n.Operator {
	case "&&", "and", "||", "or":
		left, err := t.truth(n.Left)
		if err != nil {
			return celTerm{}, err
		}
		right, err := t.truth(n.Right)
		if err != nil {
			return celTerm{}, err
		}
		if n.Operator == "&&" || n.Operator == "and" {
			return t.and(left, right), nil
		}
		return t.or(left, right), nil
	case "==", "!=":
		return t.equality(n)
	case "<", "<=", ">", ">=":
		return t.relation(n)
	case "in":
		return t.within(n)
	case "contains", "startsWith", "endsWith", "matches":
		return t.textual(n)
	case "+", "-", "*", "/", "%":
		return celTerm{}, t.no(n, "it is no bool")
	}
	return celTerm{}, t.no(n, "CEL has no operator %s", n.Operator)
}

// flipped are the relations seen from the other side.
var flipped = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}

// lengthOfResult translates len(result) beside a number, in a condition that takes the
// result for a list: expr refuses text and maps for it even where it doesn't get to
// the list, so the form must.
func (t *celTranslator) lengthOfResult(n *ast.BinaryNode) (celTerm, bool) {
	operator, length, limit := n.Operator, n.Left, n.Right
	if !isLengthOfResult(length) {
		operator, length, limit = flipped[operator], n.Right, n.Left
	}
	count, ok := limit.(*ast.IntegerNode)
	if !t.demands.list || !isLengthOfResult(length) || !ok {
		return celTerm{}, false
	}
	use := []string{"list result"}
	exact := celTerm{
		text: "size([] + result) " + operator + " " + integerText(count.Value), binds: bindRelation, kind: truth,
		needs: use, fails: append(use, "list? result", "sized result"),
	}
	if empty, known := emptiness(operator, count.Value); known {
		use := []string{"list? result"}
		exact.short = &celTerm{text: "result " + empty + " []", binds: bindRelation, kind: truth, needs: use, fails: use}
		exact.nonempty = empty == "!="
	}
	return exact, true
}

func isLengthOfResult(node ast.Node) bool {
	f, ok := node.(*ast.BuiltinNode)
	return ok && f.Name == "len" && isResult(f.Arguments[0])
}

// emptiness is how a length that is asked for says that there is nothing, or something.
func emptiness(operator string, count int) (comparison string, known bool) {
	switch {
	case operator == "==" && count == 0, operator == "<=" && count == 0, operator == "<" && count == 1:
		return "==", true
	case operator == "!=" && count == 0, operator == ">" && count == 0, operator == ">=" && count == 1:
		return "!=", true
	}
	return "", false
}

func (t *celTranslator) relation(n *ast.BinaryNode) (celTerm, error) {
	if term, ok := t.lengthOfResult(n); ok {
		return term, nil
	}
	left, right, err := t.sides(n)
	if err != nil {
		return celTerm{}, err
	}
	as := ""
	for _, side := range []celTerm{left, right} {
		switch side.kind {
		case integer64, float:
			as = "number"
		case text:
			as = "string"
		}
	}
	if as == "" {
		return celTerm{}, t.no(n, "neither side's type is known: Expr compares no two bools, CEL does")
	}
	leftNeeds, leftFails := left.used(as)
	rightNeeds, rightFails := right.used(as)
	return celTerm{
		text:  left.in(bindSum) + " " + n.Operator + " " + right.in(bindSum),
		binds: bindRelation, kind: truth, needs: union(leftNeeds, rightNeeds), fails: union(leftFails, rightFails),
	}, nil
}

func (t *celTranslator) sides(n *ast.BinaryNode) (left, right celTerm, err error) {
	if left, err = t.value(n.Left); err != nil {
		return left, right, err
	}
	right, err = t.value(n.Right)
	return left, right, err
}

// within translates in, of which a list stands on the right.
func (t *celTranslator) within(n *ast.BinaryNode) (celTerm, error) {
	left, right, err := t.sides(n)
	if err != nil {
		return celTerm{}, err
	}
	if right.path == "result" && left.literal {
		use := []string{"list result"}
		return celTerm{
			text: left.in(bindSum) + " in ([] + result)", binds: bindRelation, kind: truth,
			needs: use, fails: append(use, "list? result", "sized result"),
		}, nil
	}
	if right.kind != list64 || left.path == "" {
		return celTerm{}, t.no(n, "in over something else than a list of texts, or the result")
	}
	return t.oneOf(n, left)
}

// oneOf is a path that is one of some texts. Expr looks the path up in a map of texts,
// so that another type is an error; CEL's in is false for it.
func (t *celTranslator) oneOf(n *ast.BinaryNode, path celTerm) (celTerm, error) {
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok || len(list.Nodes) == 0 {
		return celTerm{}, t.no(n, "in over a list that is no literal")
	}
	out := celTerm{kind: truth, binds: bindRelation}
	for i, node := range list.Nodes {
		item, isText := node.(*ast.StringNode)
		if !isText {
			return celTerm{}, t.no(node, "in over a list of other things than texts: write == for each of them")
		}
		if i > 0 {
			out.text += " || "
			out.binds = bindOr
		}
		out.text += path.text + " == " + literalText(item.Value)
	}
	if path.field {
		return t.present(n, path, out.in(bindRelation), false, "eqstring "+path.path)
	}
	out.needs, out.fails = union(path.needs, []string{"eqstring " + path.path}), union(path.fails, []string{"eqstring " + path.path})
	return out, nil
}

// textual translates the operators on text, of which the right side is a literal.
func (t *celTranslator) textual(n *ast.BinaryNode) (celTerm, error) {
	left, right, err := t.sides(n)
	if err != nil {
		return celTerm{}, err
	}
	if right.kind != text || left.kind != unknown || left.path == "" {
		return celTerm{}, t.no(n, "CEL has %s for a field or the result and a text between quotes alone", n.Operator)
	}
	if left.path == "result" && t.guarded {
		return celTerm{}, t.no(n, "in Expr null is text that holds nothing, in CEL an Error, and the condition speaks of null")
	}
	test := left.in(bindMember) + "." + n.Operator + "(" + right.text + ")"
	if left.path != "result" {
		t.differs[DiffersOnTypes] = true
	}
	if left.field {
		return t.present(n, left, test, false, "string "+left.path)
	}
	needs, fails := left.used("string")
	return celTerm{text: test, binds: bindMember, kind: truth, needs: needs, fails: fails}, nil
}
