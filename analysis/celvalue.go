package analysis

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// value translates what is compared or given to a function.
func (t *celTranslator) value(node ast.Node) (celTerm, error) {
	switch n := node.(type) {
	case *ast.NilNode:
		return celTerm{text: "null", binds: bindMember, kind: null, literal: true}, nil
	case *ast.BoolNode:
		return celTerm{text: fmt.Sprint(n.Value), binds: bindMember, kind: truth, literal: true}, nil
	case *ast.IntegerNode:
		return celTerm{text: integerText(n.Value), binds: bindMember, kind: integer64, literal: true, zero: n.Value == 0}, nil
	case *ast.FloatNode:
		return celTerm{text: floatText(n.Value), binds: bindMember, kind: float, literal: true, zero: n.Value == 0}, nil
	case *ast.StringNode:
		return celTerm{text: literalText(n.Value), binds: bindMember, kind: text, literal: true}, nil
	case *ast.ArrayNode:
		return t.list(n)
	case *ast.IdentifierNode:
		if n.Value == "result" {
			return celTerm{text: "result", binds: bindMember, path: "result"}, nil
		}
		return celTerm{}, t.no(n, "%s is a variable", n.Value)
	case *ast.PointerNode:
		return t.item(n)
	case *ast.MemberNode:
		return t.member(n)
	case *ast.CallNode:
		return t.call(n)
	case *ast.BuiltinNode:
		return t.builtin(n)
	case *ast.UnaryNode:
		return t.sign(n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "+", "-", "*", "/", "%":
			return t.arithmetic(n)
		}
		return t.binary(n)
	case *ast.ConditionalNode:
		return celTerm{}, t.no(n, "a choice between values of which Expr looks at one type only")
	}
	return celTerm{}, t.no(node, "CEL has no form of %s", node)
}

func (t *celTranslator) list(n *ast.ArrayNode) (celTerm, error) {
	var items []string
	for _, node := range n.Nodes {
		item, err := t.value(node)
		if err != nil {
			return celTerm{}, err
		}
		if !item.literal {
			return celTerm{}, t.no(node, "a list of other things than literals")
		}
		items = append(items, item.text)
	}
	return celTerm{text: "[" + strings.Join(items, ", ") + "]", binds: bindMember, kind: list64}, nil
}

func (t *celTranslator) item(n *ast.PointerNode) (celTerm, error) {
	if n.Name != "" || len(t.loops) == 0 {
		return celTerm{}, t.no(n, "CEL has no #%s", n.Name)
	}
	name := t.loops[len(t.loops)-1]
	return celTerm{text: name, binds: bindMember, path: name}, nil
}

// plainName is what CEL takes behind a point.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved by CEL.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true, "function": true,
	"if": true, "import": true, "in": true, "let": true, "loop": true, "package": true, "namespace": true, "null": true,
	"return": true, "true": true, "var": true, "void": true, "while": true,
}

func (t *celTranslator) member(n *ast.MemberNode) (celTerm, error) {
	if n.Optional || n.Method {
		return celTerm{}, t.no(n, "CEL has no ?. and no methods")
	}
	of, err := t.value(n.Node)
	if err != nil {
		return celTerm{}, err
	}
	if of.path == "" {
		return celTerm{}, t.no(n, "a part of something that was not measured")
	}
	switch property := n.Property.(type) {
	case *ast.StringNode:
		if plainName.MatchString(property.Value) && !reserved[property.Value] {
			return member(of, "."+property.Value, true), nil
		}
		return member(of, "["+literalText(property.Value)+"]", true), nil
	case *ast.IntegerNode:
		return t.at(of, property.Value), nil
	case *ast.UnaryNode:
		return celTerm{}, t.no(n, "an index from the end; in CEL it needs size(), which is a word about no data")
	}
	return celTerm{}, t.no(n, "an index that is computed")
}

// at is an item of a list. Of text below the result expr reads a byte.
func (t *celTranslator) at(of celTerm, index int) celTerm {
	if of.path != "result" {
		t.differs[DiffersOnTypes] = true
	}
	return member(of, fmt.Sprintf("[%d]", index), false)
}

func (t *celTranslator) call(n *ast.CallNode) (celTerm, error) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return celTerm{}, t.no(n, "CEL has no methods")
	}
	switch callee.Value {
	case "isNil", "default":
		return t.absence(n, callee.Value)
	case "isNaN", "isInf", "asInt", "asFloat":
	default:
		return celTerm{}, t.no(n, "CEL has no %s", callee.Value)
	}
	arg, err := t.value(n.Arguments[0])
	if err != nil {
		return celTerm{}, err
	}
	if arg.path == "" && arg.kind != float {
		return celTerm{}, t.no(n, "%s of something that was not measured", callee.Value)
	}
	out := celTerm{text: callee.Value + "(" + arg.text + ")", binds: bindMember}
	switch callee.Value {
	case "asInt":
		out.kind = integer64
		out.needs, out.fails = arg.used("integer")
	case "asFloat":
		out.kind = float
		out.needs, out.fails = arg.used("float")
	default:
		out.kind = truth
		out.needs, out.fails = arg.used("number")
	}
	return out, nil
}

// absence translates isNil and default, which speak of the result whatever they are
// given.
func (t *celTranslator) absence(n *ast.CallNode, name string) (celTerm, error) {
	if !isResult(n.Arguments[0]) {
		return celTerm{}, t.no(n, "in Expr, %s speaks of the whole result whatever it is given; in CEL it speaks of its argument", name)
	}
	if name == "isNil" {
		return celTerm{text: "isNil(result)", binds: bindMember, kind: truth, guards: isAbsent}, nil
	}
	otherwise, err := t.value(n.Arguments[1])
	if err != nil {
		return celTerm{}, err
	}
	if !otherwise.literal {
		return celTerm{}, t.no(n, "default with something else than a literal")
	}
	return celTerm{text: "default(result, " + otherwise.text + ")", binds: bindMember}, nil
}
