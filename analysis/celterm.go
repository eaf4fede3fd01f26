package analysis

import (
	"fmt"
	"slices"
	"strings"
)

// Binding strengths of CEL's operators, the loosest first.
const (
	bindTernary = iota
	bindOr
	bindAnd
	bindRelation
	bindSum
	bindProduct
	bindUnary
	bindMember
)

// static is what is known of a term's type before it is evaluated.
type static int

const (
	unknown static = iota
	truth
	integer64
	float
	text
	null
	list64
)

// guards of a term against no data.
type guards int

const (
	noGuard guards = iota
	isAbsent
	isThere
)

// celTerm is a part of a condition in CEL, with when it can't be evaluated: CEL's &&
// and || are those of expr only where the left side's error is the right side's too.
type celTerm struct {
	text  string
	binds int
	kind  static
	// path is the text of what is read of the result or of an item; empty for others.
	path string
	// field is true for a path that ends at a name: a missing one is nil in expr and an
	// error in CEL. Around is when what is before the name or the index can be read.
	field  bool
	around *celTerm
	// zero is true for a literal zero; literal for every literal.
	literal, zero bool
	// short is a plainer text for a length that is asked for, by a comparison with an
	// empty list, which null is not: it stands only before what needs a list. Nonempty
	// says that it asks for something rather than nothing.
	short    *celTerm
	nonempty bool
	// guards says which no data makes the term true or false.
	guards guards
	// looked is true when the type of the result is looked at on each way through.
	looked bool
	// needs must all hold, or the term may be an error.
	needs []string
	// fails is what makes the term an error for certain where it doesn't hold.
	fails []string
}

// in is the term's text for a place that binds so tightly.
func (c celTerm) in(binds int) string {
	if c.binds < binds {
		return "(" + c.text + ")"
	}
	return c.text
}

// covered says that an error of the one is an error of the other.
func covered(needs, fails []string) bool {
	for _, n := range needs {
		if !slices.Contains(fails, n) {
			return false
		}
	}
	return true
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func both(a, b []string) []string {
	var out []string
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// before is the term in its short text, where null gets it to next, which fails then.
func (c celTerm) before(next celTerm, nonempty bool) celTerm {
	if c.short != nil && c.nonempty == nonempty && slices.Contains(next.fails, "list result") {
		return *c.short
	}
	c.short = nil
	return c
}

// and joins two truths. Where CEL's && would take false from the right for an error on
// the left, a ? b : false asks the left first, as expr does.
func (t *celTranslator) and(a, b celTerm) celTerm {
	a = a.before(b, true)
	out := celTerm{kind: truth, needs: union(a.needs, b.needs), looked: t.looked(a) || a.guards == isThere && t.looked(b)}
	if covered(a.needs, b.fails) {
		out.text, out.binds = a.in(bindAnd)+" && "+b.in(bindAnd), bindAnd
		out.fails = both(a.fails, b.fails)
		return out
	}
	out.text, out.binds, out.fails = a.in(bindOr)+" ? "+b.in(bindOr)+" : false", bindTernary, a.fails
	return out
}

func (t *celTranslator) or(a, b celTerm) celTerm {
	a = a.before(b, false)
	out := celTerm{kind: truth, needs: union(a.needs, b.needs), looked: t.looked(a) || a.guards == isAbsent && t.looked(b)}
	if covered(a.needs, b.fails) {
		out.text, out.binds = a.in(bindOr)+" || "+b.in(bindOr), bindOr
		out.fails = both(a.fails, b.fails)
		return out
	}
	out.text, out.binds, out.fails = a.in(bindOr)+" ? true : "+b.in(bindOr), bindTernary, a.fails
	return out
}

// member is the path to a field or an item of a path.
func member(of celTerm, suffix string, field bool) celTerm {
	path := of.in(bindMember) + suffix
	kind := "items "
	if field {
		kind = "fields "
	}
	around := celTerm{needs: union(of.needs, []string{kind + of.path})}
	around.fails = union(union(of.fails, around.needs), []string{"sized " + of.path})
	if !field {
		around.fails = union(around.fails, []string{"list " + of.path, "list? " + of.path})
	}
	got := []string{"get " + path}
	return celTerm{
		text: path, binds: bindMember, path: path, field: field, around: &around,
		needs: union(around.needs, got), fails: union(around.fails, got),
	}
}

// used is a term that is used as a type. Where it isn't one, the error is certain; as
// it would be for a comparison for equality, which takes null besides.
func (c celTerm) used(as string) (needs, fails []string) {
	of := c.path
	if of == "" {
		if c.kind != unknown {
			return c.needs, c.fails
		}
		of = c.text
	}
	use := []string{as + " " + of}
	return union(c.needs, use), union(c.fails, union(use, []string{"eq" + as + " " + of}))
}

func literalText(s string) string { return `"` + escape(s, '"') + `"` }

// integerText and floatText are literals; CEL tells them apart by the point.
func integerText(i int) string { return fmt.Sprint(i) }

func floatText(f float64) string {
	s := number(f)
	if !strings.ContainsAny(s, ".eN") {
		s += ".0"
	}
	return s
}
