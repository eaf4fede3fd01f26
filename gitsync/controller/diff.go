package controller

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// maxDiff is the most bytes of a planned diff that are kept.
const maxDiff = 8 << 10

// diff is the unified diff of an edit.
func diff(tree *fetch.Tree, edits map[string][]byte, files []string) string {
	var out strings.Builder
	for _, file := range files {
		before, _, err := tree.ReadFile(file)
		if err != nil {
			continue // the edit was made from it: it is there
		}
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(edits[file])),
			FromFile: "a/" + file, ToFile: "b/" + file, Context: 3,
		})
		if err != nil {
			continue
		}
		out.WriteString(text)
	}
	return truncate(out.String(), maxDiff)
}
