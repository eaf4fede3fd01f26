package analysis

import (
	"os"
	"strings"
	"testing"
)

// found is one condition of the corpus.
type found struct {
	// kind of value that it is meant for, and where it was found.
	kind, origin string
	expr         string
}

func readCorpus(t *testing.T) []found {
	t.Helper()
	text, err := os.ReadFile("testdata/conditions.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []found
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		f := strings.SplitN(line, "\t", 3)
		all = append(all, found{kind: f[0], origin: f[1], expr: f[2]})
	}
	return all
}
