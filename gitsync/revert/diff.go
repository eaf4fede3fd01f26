package revert

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// Diff shows edits as a unified diff against the head's files, in the order of
// their paths, cut after so many bytes with a line that says so.
func Diff(head, edits map[string][]byte, limit int) (string, error) {
	var out strings.Builder
	for _, file := range sortedKeys(edits) {
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(string(head[file])), B: difflib.SplitLines(string(edits[file])),
			FromFile: "a/" + file, ToFile: "b/" + file, Context: 3,
		})
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	const more = "\n(cut off)\n"
	if out.Len() <= limit {
		return out.String(), nil
	}
	return strings.ToValidUTF8(out.String()[:max(0, limit-len(more))], "") + more, nil
}
