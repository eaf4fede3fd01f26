package analysis

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// found is one condition of testdata/conditions.txt.
type found struct {
	// kind of value that it is meant for, and where it was found.
	kind, origin string
	expr         string
	// cel is its form in CEL, and differs where the two part.
	cel, differs string
	// none is why there is no form, refused why it is no condition.
	none, refused string
}

// readCorpus reads blocks of lines such as "expr: result > 1".
func readCorpus(t *testing.T) []found {
	t.Helper()
	text, err := os.ReadFile("testdata/conditions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []found
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		var f found
		into := map[string]*string{
			"meant for": &f.kind, "from": &f.origin, "expr": &f.expr, "cel": &f.cel, "differs on": &f.differs, "none": &f.none, "refused": &f.refused,
		}
		for _, line := range strings.Split(block, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			name, value, _ := strings.Cut(line, ": ")
			field, ok := into[name]
			if !ok {
				t.Fatalf("line %q names no field of a condition", line)
			}
			*field = value
		}
		if f.expr != "" {
			all = append(all, f)
		}
	}
	return all
}

func TestCorpusIsWide(t *testing.T) {
	conditions, kinds := map[string]bool{}, map[string]int{}
	for _, c := range readCorpus(t) {
		if conditions[c.expr] {
			t.Errorf("%s is there twice", c.expr)
		}
		conditions[c.expr] = true
		kinds[c.kind]++
		if c.kind == "" || c.origin == "" {
			t.Errorf("%s: it says not what it is meant for, or where it is from", c.expr)
		}
	}
	if len(conditions) < 150 {
		t.Errorf("%d conditions, want 150", len(conditions))
	}
	for _, kind := range []string{"number", "list", "text", "bool", "map", "records", "series", "lists", "any", "refused"} {
		if kinds[kind] == 0 {
			t.Errorf("no condition is meant for %s", kind)
		}
	}
}

// outcome of asking for a form, as the corpus has it.
func outcome(t *testing.T, condition string) found {
	t.Helper()
	form, err := CELFormOf(condition)
	var none *NoCELForm
	var refused *SyntaxError
	switch {
	case errors.As(err, &none):
		return found{none: none.Reason}
	case errors.As(err, &refused):
		return found{refused: refused.Message}
	case err != nil:
		t.Fatalf("%s: %v", condition, err)
	}
	return found{cel: form.Condition, differs: joined(form.Differences)}
}

func joined(differences []Difference) string {
	var names []string
	for _, d := range differences {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

func TestCorpusHasTheFormsInCEL(t *testing.T) {
	for _, c := range readCorpus(t) {
		want := found{cel: c.cel, differs: c.differs, none: c.none, refused: c.refused}
		if diff := cmp.Diff(want, outcome(t, c.expr), cmp.AllowUnexported(found{})); diff != "" {
			t.Errorf("%s (-corpus +offered):\n%s", c.expr, diff)
		}
	}
}
