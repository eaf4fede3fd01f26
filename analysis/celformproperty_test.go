package analysis

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// paths that a drawn condition reads of a result, by the type that it takes it for.
var paths = [][]string{
	{"result"},
	{"result[0]", "result[1]", "result[-1]"},
	{"result.a", "result.b", "result.c", "result.status", "result.mapfield.foo"},
	{"result[0].value", "result[0].count", "result[0].name"},
	{"result.c[0]", "result.counts.status[0].name"},
}

// drawCondition draws an expr condition that takes the result for one type.
func drawCondition(t *rapid.T) string {
	of := rapid.SampledFrom(paths).Draw(t, "paths")
	path := func() string { return rapid.SampledFrom(of).Draw(t, "path") }
	number := func() string {
		return rapid.SampledFrom([]string{"0", "1", "0.95", "5", "200", "-1", "10.0"}).Draw(t, "number")
	}
	measured := func() string {
		return rapid.SampledFrom([]string{"%", "%", "%", "asFloat(%)", "asInt(%)", "% * 100", "1 - %", "% / 2", "-%", "% + 1"}).Draw(t, "measured")
	}
	relation := rapid.SampledFrom([]string{"<", "<=", ">", ">="})
	equality := rapid.SampledFrom([]string{"==", "!="})
	item := func(p string) string {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return p + " " + equality.Draw(t, "eq") + " " + rapid.SampledFrom([]string{`"ok"`, `"1"`, "true", "nil", number()}).Draw(t, "other")
		case 1:
			return "isNaN(" + p + ")"
		case 2:
			return "!isInf(" + p + ")"
		case 3:
			return p
		case 4:
			return p + ` in ["ok", "promote"]`
		case 5:
			return p + rapid.SampledFrom([]string{` contains "o"`, ` startsWith "he"`, ` matches "^[0-9]+$"`}).Draw(t, "textual")
		case 6:
			return "len(" + p + ") " + relation.Draw(t, "relation") + " " + rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "length")
		}
		return nest(measured(), p, 1) + " " + relation.Draw(t, "relation") + " " + number()
	}
	loop := func(p string) string {
		f := rapid.SampledFrom([]string{"all", "any", "none", "one"}).Draw(t, "loop")
		return f + "(" + p + ", {" + item(rapid.SampledFrom([]string{"#", "#.name", "#.count"}).Draw(t, "item")) + "})"
	}
	var condition func(depth int) string
	condition = func(depth int) string {
		kind := rapid.IntRange(0, 7).Draw(t, "node")
		if depth == 0 {
			kind = min(kind, 3)
		}
		switch kind {
		case 0, 1:
			return item(path())
		case 2:
			return rapid.SampledFrom([]string{"len(result) == 0", "len(result) > 0", "len(result) == 2", "result == nil", "result != nil", "default(result, 0) < 1", "isNil(result)"}).Draw(t, "guard")
		case 3:
			return loop(path())
		case 4:
			return "!(" + condition(depth-1) + ")"
		case 5:
			return "(" + condition(depth-1) + " ? " + condition(depth-1) + " : " + condition(depth-1) + ")"
		case 6:
			return "(" + condition(depth-1) + " && " + condition(depth-1) + ")"
		}
		return "(" + condition(depth-1) + " || " + condition(depth-1) + ")"
	}
	return condition(rapid.IntRange(0, 3).Draw(t, "depth"))
}

// Each form that is offered is equal, whatever the condition is made of.
func TestDrawnFormsAreEqual(t *testing.T) {
	all := shapes()
	offered := 0
	rapid.Check(t, func(t *rapid.T) {
		text := drawCondition(t)
		form, err := CELFormOf(text)
		var none *NoCELForm
		var refused *SyntaxError
		if errors.As(err, &none) || errors.As(err, &refused) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		offered++
		proveEqual(t, text, form, all)
	})
	if offered == 0 {
		t.Error("no condition had a form")
	}
	t.Logf("%d forms", offered)
}
