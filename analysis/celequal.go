package analysis

import (
	"strings"

	"github.com/expr-lang/expr/ast"
)

// equality translates == and !=. A field that is missing is nil in expr, and unequal
// to everything else.
func (t *celTranslator) equality(n *ast.BinaryNode) (celTerm, error) {
	if term, ok := t.lengthOfResult(n); ok {
		return term, nil
	}
	left, right, err := t.sides(n)
	if err != nil {
		return celTerm{}, err
	}
	if left.literal {
		left, right = right, left
	}
	if !right.literal {
		return t.equalPaths(n, left, right)
	}
	if left.kind == integer64 && right.kind == float {
		left.text, left.binds = "dyn("+left.text+")", bindMember
	}
	test := left.in(bindSum) + " " + n.Operator + " " + right.in(bindSum)
	if right.kind != null && left.path != "result" && left.kind == unknown {
		t.differs[DiffersOnTypes] = true
	}
	switch {
	case left.field && (right.kind == null) == (n.Operator == "=="):
		return t.present(n, left, test, true)
	case left.field:
		return t.present(n, left, test, false)
	case left.path == "result" && right.kind != null:
		use := []string{"eq" + kindNames[right.kind] + " result"}
		return celTerm{text: test, binds: bindRelation, kind: truth, needs: use, fails: use}, nil
	}
	out := celTerm{text: test, binds: bindRelation, kind: truth, needs: left.needs, fails: left.fails}
	if left.path == "result" {
		out.guards = map[string]guards{"==": isAbsent, "!=": isThere}[n.Operator]
	}
	return out, nil
}

var kindNames = map[static]string{truth: "bool", integer64: "number", float: "number", text: "string"}

// present guards a test of a field that may be missing. Absent is the answer then.
func (t *celTranslator) present(node ast.Node, field celTerm, test string, absent bool, needs ...string) (celTerm, error) {
	if strings.HasSuffix(field.path, "]") {
		return celTerm{}, t.no(node, "has() takes a plain name only, and Expr takes a missing field for nil")
	}
	out := celTerm{kind: truth, needs: union(field.around.needs, needs), fails: field.around.fails}
	if absent {
		out.text, out.binds = "!has("+field.path+") || "+test, bindOr
	} else {
		out.text, out.binds = "has("+field.path+") && "+test, bindAnd
	}
	return out, nil
}

// equalPaths compares two things that were measured.
func (t *celTranslator) equalPaths(n *ast.BinaryNode, left, right celTerm) (celTerm, error) {
	if left.field || right.field || left.kind != right.kind || left.path == "result" || right.path == "result" {
		return celTerm{}, t.no(n, "%s of two things whose types aren't known", n.Operator)
	}
	t.differs[DiffersOnTypes] = true
	if left.path == right.path && left.path != "" {
		// What isn't equal to itself is NaN.
		out := celTerm{text: "isNaN(" + left.text + ")", binds: bindMember, kind: truth}
		if out.needs, out.fails = left.used("number"); n.Operator == "==" {
			out = not(out)
		}
		return out, nil
	}
	return celTerm{
		text: left.in(bindSum) + " " + n.Operator + " " + right.in(bindSum), binds: bindRelation, kind: truth,
		needs: union(left.needs, right.needs), fails: union(left.fails, right.fails),
	}, nil
}
