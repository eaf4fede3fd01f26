package analysis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// hostileDeadline is far more than any condition may take: the slowest takes a few
// tenths of a second.
const hostileDeadline = 20 * time.Second

// nest puts a text into itself.
func nest(format, inner string, times int) string {
	for range times {
		inner = strings.ReplaceAll(format, "%", inner)
	}
	return inner
}

// twofold declares a variable that is twice the one before it.
func twofold(first, twice, use string) string {
	text := "let v0 = " + first + "; "
	for i := range 60 {
		text += fmt.Sprintf("let v%d = %s; ", i+1, strings.ReplaceAll(twice, "%", fmt.Sprintf("v%d", i)))
	}
	return text + strings.ReplaceAll(use, "%", "v60")
}

var hostileExpr = map[string]string{
	"a range of a billion":       "len(1..1000000000) > 0",
	"a range without an end":     "len(1..9223372036854775807) > 0",
	"a range in a predicate":     "all(1..900000, len(1..900000) > 0)",
	"loops over one range":       "let r = 1..900000; all(r, all(r, all(r, true)))",
	"loops over the result":      "all(result, all(result, all(result, all(result, true))))",
	"a loop that finds nothing":  "let r = 1..900000; any(r, any(r, any(r, # < 0)))",
	"nested maps":                "len(map(1..900, map(1..900, map(1..900, #)))) > 0",
	"filters":                    "let r = 1..900000; len(filter(r, {len(filter(r, {# < 0})) > 0})) > 0",
	"a sum of sums":              "let r = 1..900000; sum(r, sum(r, sum(r, 1))) > 0",
	"a reduction":                "let r = 1..900000; reduce(r, reduce(r, #acc + 1, 0) + #acc, 0) > 0",
	"a count":                    "let r = 1..900000; count(r, count(r, # < 0) > 0) > 0",
	"a sort in a loop":           "let r = 1..400000; all(r, len(sort(r)) > 0)",
	"a sort by a loop":           "let r = 1..100000; len(sortBy(r, sum(r))) > 0",
	"groups in a loop":           "let r = 1..100000; len(groupBy(r, len(groupBy(r, #)))) > 0",
	"the last of loops":          "let r = 1..900000; findLast(r, findLast(r, # < 0) != nil) == nil",
	"a text that is repeated":    `len(repeat("a", 1000000000)) > 0`,
	"a repeated text, repeated":  `len(repeat(repeat("a", 999999), 999999)) > 0`,
	"a repeated text, joined":    `len(join(map(1..900000, repeat("a", 1000)))) > 0`,
	"texts that are joined":      `let s = repeat("a", 900000); len(join(map(1..900, s), s)) > 0`,
	"texts that are replaced":    `let s = repeat("a", 900000); len(replace(s, "a", s)) > 0`,
	"a text of doubles":          twofold(`"aaaaaaaa"`, "% + %", "len(%) > 0"),
	"a text that doubles":        `len(reduce(1..60, #acc + #acc, "aaaaaaaa")) > 0`,
	"a list that doubles":        twofold("[1]", "concat(%, %)", "len(%) > 0"),
	"a list of itself as JSON":   twofold("[1]", "[%, %]", `toJSON(%) != ""`),
	"a list of itself as text":   twofold("[1]", "[%, %]", `string(%) != ""`),
	"a list of itself, compared": twofold("[1]", "[%, %]", "% == %"),
	"a list of itself, flat":     twofold("[1]", "[%, %]", "len(flatten(%)) > 0"),
	"the least of itself":        twofold("[1]", "[%, %]", "min(%) > 0"),
	"a map of itself":            twofold(`{"a": 1}`, `{"a": %, "b": %}`, `toJSON(%) != ""`),
	"a list in itself":           twofold("[1]", "[%, %]", "% in [%]"),
	"unique items":               "len(uniq(1..900000)) > 0",
	"a pattern and a long text":  `let s = repeat("x", 999999); s matches "(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx?){1000}y"`,
	"a pattern made of text":     `let s = repeat("x", 999999); let p = repeat("(x?x?x?x?){500}", 50); s matches p`,
	"patterns in a loop":         `let s = repeat("x", 99999); all(1..900000, s matches "x*y?")`,
	"comparisons of long texts":  `let s = repeat("x", 999999); let t = s + "y"; all(1..900000, t != s)`,
	"parentheses":                strings.Repeat("(", 500_000) + "1" + strings.Repeat(")", 500_000) + " > 0",
	"brackets":                   strings.Repeat("[", 8000) + strings.Repeat("]", 8000) + " == 1",
	"negations":                  strings.Repeat("!", 16_000) + "true",
	"many nodes":                 strings.Repeat("1 + ", 4000) + "1 > 0",
}

var hostileCEL = map[string]string{
	"loops over the result":      "result.all(a, result.all(b, result.all(c, result.all(d, true))))",
	"a loop that finds nothing":  "result.exists(a, result.exists(b, result.exists(c, c < 0)))",
	"nested maps":                "size(result.map(a, result.map(b, result.map(c, c)))) > 0",
	"filters":                    "size(result.filter(a, size(result.filter(b, size(result.filter(c, c < 0)) > 0)) > 0)) > 0",
	"exactly one":                "result.exists_one(a, result.exists_one(b, result.exists_one(c, c < 0)))",
	"a text of doubles":          nest("%.map(x, x + x)", `["aaaaaaaa"]`, 60) + "[0] != ''",
	"a text of doubles, untyped": nest("%.map(x, x + x)", `[dyn("aaaaaaaa")]`, 60) + "[0] != ''",
	"a list of doubles":          "size(" + nest("%.map(x, x + x)", "[[1]]", 60) + "[0]) > 0",
	"a list of itself, compared": nest("%.map(x, [x, x])", "[dyn([1])]", 60) + ".all(x, x == x)",
	"a list in itself":           nest("%.map(x, [x, x])", "[dyn([1])]", 60) + ".all(x, x in [x])",
	"a map of itself":            nest("%.map(x, {'a': x, 'b': x})", "[dyn({'a': 1})]", 60) + ".all(x, x != x)",
	"a pattern and a long text":  nest("%.map(x, x + x)", `["xxxxxxxx"]`, 16) + ".all(x, x.matches('(xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx?){1000}y'))",
	"patterns in a loop":         nest("%.map(x, x + x)", `["xxxxxxxx"]`, 12) + ".all(x, result.all(y, x.matches('x*y?')))",
	"comparisons of long texts":  nest("%.map(x, x + x)", `[dyn("xxxxxxxx")]`, 16) + ".all(x, result.all(y, result.all(z, x <= x)))",
	"equality of long texts":     nest("%.map(x, x + x)", `[dyn("xxxxxxxx")]`, 16) + ".all(x, result.all(y, result.all(z, x == x + '')))",
	"parentheses":                strings.Repeat("(", 500_000) + "1" + strings.Repeat(")", 500_000) + " > 0",
	"deep parentheses":           strings.Repeat("(", 8000) + "true" + strings.Repeat(")", 8000),
	"brackets":                   strings.Repeat("[", 8000) + strings.Repeat("]", 8000) + " == 1",
	"negations":                  strings.Repeat("!", 16_000) + "result",
	"many nodes":                 strings.Repeat("1 + ", 4000) + "1 < 0",
}

func TestHostileCELEnds(t *testing.T) {
	testHostile(t, v1alpha1.ConditionCEL, hostileCEL)
}

func TestHostileExprEnds(t *testing.T) {
	testHostile(t, v1alpha1.ConditionExpr, hostileExpr)
}

func testHostile(t *testing.T, language v1alpha1.ConditionLanguage, conditions map[string]string) {
	t.Helper()
	for name, text := range conditions {
		t.Run(name, func(t *testing.T) {
			type end struct{ phase, message string }
			ended := make(chan end, 1)
			started := time.Now()
			go func() {
				phase, message := verdictOf(t, v1alpha1.Metric{SuccessCondition: text, ConditionLanguage: language}, many(10_000))
				ended <- end{phase, message}
			}()
			select {
			case e := <-ended:
				t.Logf("%s after %s: %.200s", e.phase, time.Since(started), e.message)
				if e.phase != fault && e.phase != "refused" {
					t.Errorf("got %s, want an error", e.phase)
				}
			case <-time.After(hostileDeadline):
				t.Fatal("it does not end")
			}
		})
	}
}

func TestTooMuchWorkIsTyped(t *testing.T) {
	c, err := compileExpr("all(result, all(result, # > 0))", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.run(many(10_000), time.Time{}); !errors.Is(err, ErrTooMuch) {
		t.Errorf("got %v, want ErrTooMuch", err)
	}
	if ok, err := c.run(many(300), time.Time{}); err != nil || !ok {
		t.Errorf("a loop in a loop over 300 items: %v, %v", ok, err)
	}
}

func TestHostileTimesEnd(t *testing.T) {
	for name, text := range map[string]string{
		"loops":       "let r = 1..900000; all(r, all(r, all(r, true))) ? now() : now()",
		"a long text": `now() - duration(repeat(repeat("1", 900000), 900000))`,
		"parentheses": strings.Repeat("(", 500_000) + "now()" + strings.Repeat(")", 500_000),
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() {
				_, err := EvaluateTime(text, time.Time{})
				ended <- err
			}()
			select {
			case err := <-ended:
				var refused *SyntaxError
				if !errors.Is(err, ErrTooMuch) && !errors.As(err, &refused) {
					t.Errorf("got %v, want ErrTooMuch or a SyntaxError", err)
				}
			case <-time.After(hostileDeadline):
				t.Fatal("it does not end")
			}
		})
	}
}
