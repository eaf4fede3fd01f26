package analysis

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"github.com/expr-lang/expr/vm/runtime"
)

const (
	// exprNodes is the most nodes of an expr condition.
	exprNodes = 1000
	// exprMemory is the most cells that evaluating one may take.
	exprMemory = 1_000_000
	// exprSize is the most bytes of one: what nests too deep ends the process.
	exprSize = 16 << 10
)

// compileGuarded is expr.Compile, with calls put in that spend from the budget. It
// puts them in after the optimizer, which must see what people wrote: it decides
// which of two failing items is met first. The error is a *SyntaxError.
func compileGuarded(text string, budget *workBudget, options ...expr.Option) (*vm.Program, error) {
	if len(text) > exprSize {
		return nil, &SyntaxError{Message: fmt.Sprintf("it has %d bytes: at most %d are read", len(text), exprSize)}
	}
	config := conf.CreateNew()
	for _, option := range append(options, expr.MaxNodes(exprNodes), expr.DisableBuiltin("now")) {
		option(config)
	}
	for name := range config.Disabled {
		delete(config.Builtins, name)
	}
	config.Check()
	tree, err := checker.ParseCheck(text, config)
	if err != nil {
		return nil, exprSyntax(err)
	}
	if err := optimizer.Optimize(&tree.Node, config); err != nil {
		return nil, exprSyntax(bound(err, tree))
	}
	for name, f := range budget.functions() {
		config.Functions[name] = &builtin.Function{Name: name, Func: f}
	}
	ast.Walk(&tree.Node, guard{})
	program, err := compiler.Compile(tree, config)
	if err != nil {
		return nil, exprSyntax(bound(err, tree))
	}
	return program, nil
}

// bound gives an error its line.
func bound(err error, tree *parser.Tree) error {
	var at *file.Error
	if errors.As(err, &at) {
		return at.Bind(tree.Source)
	}
	return err
}

// Functions that the guard puts in. No expression can name them.
const (
	guardTurn    = "@turn"
	guardRead    = "@read"
	guardTop     = "@top"
	guardMatch   = "@match"
	guardMatches = "@matches"
)

// functions are what the guard calls.
func (b *workBudget) functions() map[string]func(...any) (any, error) {
	all := map[string]func(...any) (any, error){
		guardTurn:    func(in ...any) (any, error) { return nil, b.spend(in[0].(int)) },
		guardRead:    func(in ...any) (any, error) { return in[0], b.read(in[0], 0) },
		guardTop:     func(in ...any) (any, error) { return in[0], b.readTop(in[0]) },
		guardMatch:   func(in ...any) (any, error) { return in[0], b.match(in[0], in[1]) },
		guardMatches: func(in ...any) (any, error) { return b.matches(in[0], in[1]) },
	}
	for name, pay := range multiplying {
		f := builtin.Builtins[builtin.Index[name]]
		all["@"+name] = func(in ...any) (any, error) {
			if err := pay(b, in); err != nil {
				return nil, err
			}
			if f.Func != nil {
				return f.Func(in...)
			}
			out, _, err := f.Safe(in...)
			return out, err
		}
	}
	return all
}

// multiplying are the builtins whose work or result is a product of their arguments.
var multiplying = map[string]func(*workBudget, []any) error{
	"repeat": func(b *workBudget, in []any) error {
		return b.text(len(textOf(in, 0)), max(runtime.ToInt(in[1]), 0))
	},
	"replace": func(b *workBudget, in []any) error {
		return b.text(len(textOf(in, 2)), strings.Count(textOf(in, 0), textOf(in, 1)))
	},
	"join": func(b *workBudget, in []any) error { return b.text(len(textOf(in, 1)), lengthOf(in[0])) },
	"uniq": func(b *workBudget, in []any) error { return b.text(lengthOf(in[0]), lengthOf(in[0])) },
}

// textOf is an argument that is text; package expr says what is wrong with others.
func textOf(in []any, i int) string {
	if i >= len(in) {
		return ""
	}
	s, _ := in[i].(string)
	return s
}

func lengthOf(v any) int {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
		return list.Len()
	}
	return 0
}

// shallow builtins don't look at what the items of their argument hold.
var shallow = map[string]bool{"len": true, "first": true, "last": true, "get": true, "take": true, "type": true}

// guard puts calls into a tree, from the leaves up.
type guard struct{}

// Visit makes each predicate, operator and function pay for what it reads.
func (g guard) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		g.operator(node, n)
	case *ast.BuiltinNode:
		g.builtin(node, n)
	case *ast.CallNode:
		for i := range n.Arguments {
			pay(&n.Arguments[i], guardTop)
		}
	}
}

func (g guard) operator(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "&&", "and", "||", "or", "??":
		return
	case "matches":
		if _, constant := n.Right.(*ast.StringNode); constant {
			n.Left = call(guardMatch, n.Left, n.Right)
			return
		}
		ast.Patch(node, call(guardMatches, n.Left, n.Right))
		(*node).SetType(reflect.TypeFor[bool]())
		return
	}
	pay(&n.Left, guardRead)
	pay(&n.Right, guardRead)
}

func (g guard) builtin(node *ast.Node, n *ast.BuiltinNode) {
	if n.Map != nil {
		ast.Walk(&n.Map, g)
	}
	for i, arg := range n.Arguments {
		predicate, isPredicate := arg.(*ast.PredicateNode)
		switch {
		case isPredicate:
			countTurns(predicate, n.Name)
		case shallow[n.Name] || byPredicate(n):
			pay(&n.Arguments[i], guardTop)
		default:
			pay(&n.Arguments[i], guardRead)
		}
	}
	if _, ok := multiplying[n.Name]; ok {
		nature := *n.Nature()
		ast.Patch(node, call("@"+n.Name, n.Arguments...))
		(*node).SetNature(nature)
	}
}

// turns are what one turn of a builtin costs, where it builds something in it.
var turns = map[string]int{"groupBy": 20, "countBy": 20, "sortBy": 4, "map": 2, "filter": 2}

func countTurns(predicate *ast.PredicateNode, builtin string) {
	body := predicate.Node
	turn := call(guardTurn, &ast.IntegerNode{Value: max(turns[builtin], 1)})
	sequence := &ast.SequenceNode{Nodes: []ast.Node{turn, body}}
	sequence.SetNature(*body.Nature())
	predicate.Node = sequence
}

// byPredicate says that a builtin walks its list by a predicate, which pays.
func byPredicate(n *ast.BuiltinNode) bool {
	for _, arg := range n.Arguments {
		if _, ok := arg.(*ast.PredicateNode); ok {
			return true
		}
	}
	return false
}

// pay wraps a node whose value may be large.
func pay(node *ast.Node, function string) {
	switch (*node).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode:
		return
	}
	nature := *(*node).Nature()
	switch (*node).Type().Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return
	}
	wrapped := call(function, *node)
	wrapped.SetLocation((*node).Location())
	wrapped.SetNature(nature)
	*node = wrapped
}

func call(function string, arguments ...ast.Node) *ast.CallNode {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: arguments}
}
