package analysis

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// docTables are the rows of the tables of docs/conditions.md by their head, with cells
// out of their backquotes.
func docTables(t *testing.T) map[string][][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][][]string{}
	head := ""
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case !strings.HasPrefix(line, "|"):
			head = ""
		case head == "":
			head = strings.Join(cells(line), " | ")
		case !strings.HasPrefix(line, "|---"):
			tables[head] = append(tables[head], cells(line))
		}
	}
	return tables
}

// cells of a row; a pipe in one is escaped.
func cells(line string) []string {
	const pipe = "\x00"
	var out []string
	for _, cell := range strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, pipe), "|"), "|") {
		out = append(out, strings.Trim(strings.ReplaceAll(strings.TrimSpace(cell), pipe, "|"), "`"))
	}
	return out
}

// docRows are those of one table, which must be there.
func docRows(t *testing.T, head string) [][]string {
	t.Helper()
	rows := docTables(t)[head]
	if len(rows) == 0 {
		t.Fatalf("docs/conditions.md has no table %s", head)
	}
	return rows
}

func docValue(t *testing.T, text string) any {
	t.Helper()
	if text == "NaN" {
		return nan
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func TestDocOffersEqualForms(t *testing.T) {
	all := shapes()
	for _, row := range docRows(t, "Expr | CEL | differs on") {
		form, err := CELFormOf(row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		want := []string{row[1], row[2]}
		if diff := cmp.Diff(want, []string{form.Condition, joined(form.Differences)}); diff != "" {
			t.Errorf("%s (-document +offered):\n%s", row[0], diff)
		}
		if unseen := proveEqual(t, row[0], form, all); len(unseen) > 0 {
			t.Errorf("%s: no value shows how the form differs on %v", row[0], unseen)
		}
	}
}

func docVerdict(t *testing.T, language v1alpha1.ConditionLanguage, condition, value string) string {
	t.Helper()
	got, message := verdictOf(t, v1alpha1.Metric{
		SuccessCondition: condition, ConditionLanguage: language, Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{}},
	}, docValue(t, value))
	t.Logf("%s over %s: %s %s", condition, value, got, message)
	return got
}

func TestDocSaysWhereTheLanguagesDiffer(t *testing.T) {
	named := map[string]bool{}
	for _, row := range docRows(t, " | Expr | CEL | over | Expr says | CEL says") {
		named[row[0]] = true
		got := []string{docVerdict(t, v1alpha1.ConditionExpr, row[1], row[3]), docVerdict(t, v1alpha1.ConditionCEL, row[2], row[3])}
		if diff := cmp.Diff(row[4:], got); diff != "" {
			t.Errorf("%s over %s (-document +got):\n%s", row[1], row[3], diff)
		}
		if row[4] == row[5] {
			t.Errorf("%s: that is no difference", row[1])
		}
	}
	for _, d := range allDifferences {
		if !named[string(d)] {
			t.Errorf("the difference on %s has no example", d)
		}
	}
}

func TestDocSaysWhereExprIsNotArgos(t *testing.T) {
	phases := map[string]string{"true": yes, "false": no, "error": fault}
	for _, row := range docRows(t, "Expr | over | Argo says | here") {
		got := []string{phases[verdict(argo(argoList(docValue(t, row[1])), row[0]))], docVerdict(t, v1alpha1.ConditionExpr, row[0], row[1])}
		if diff := cmp.Diff(row[2:], got); diff != "" {
			t.Errorf("%s over %s (-document +got):\n%s", row[0], row[1], diff)
		}
	}
}

func TestDocSaysWhatIsRefused(t *testing.T) {
	for _, row := range docRows(t, "language | condition | because") {
		_, err := Compile(v1alpha1.Metric{SuccessCondition: row[1], ConditionLanguage: v1alpha1.ConditionLanguage(row[0])})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s %s: got %v, want it refused", row[0], row[1], err)
		}
	}
	for _, row := range docRows(t, "language | condition | over | because") {
		if got := docVerdict(t, v1alpha1.ConditionLanguage(row[0]), row[1], row[2]); got != fault {
			t.Errorf("%s %s over %s: got %s, want %s", row[0], row[1], row[2], got, fault)
		}
	}
}
