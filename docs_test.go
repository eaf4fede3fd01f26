package pushback_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pushback-dev/pushback/validation"
)

// TestTheExamplesOfTheDocs: each document of ours in docs/ is one that is taken as it is.
func TestTheExamplesOfTheDocs(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range pages {
		for i, text := range blocks(readFile(t, page), "yaml") {
			var object struct {
				APIVersion string `json:"apiVersion"`
				Kind       string `json:"kind"`
			}
			data, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Errorf("%s, example %d: %v", page, i+1, err)
				continue
			}
			if err := yaml.Unmarshal(data, &object); err != nil || !strings.HasPrefix(object.APIVersion, "pushback.dev/") {
				continue // a part of a document, or somebody else's
			}
			checked++
			for _, problem := range validation.Document(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind), data) {
				t.Errorf("%s, example %d: %s", page, i+1, problem)
			}
		}
	}
	if checked == 0 {
		t.Error("no example was found")
	}
}

// blocks are the fenced blocks of a language.
func blocks(text, language string) []string {
	var out []string
	for _, part := range strings.Split(text, "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		out = append(out, block)
	}
	return out
}

// TestTheLinksOfTheDocs: what a page of the docs or the README links to is there.
func TestTheLinksOfTheDocs(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "README.md") {
		for _, part := range strings.Split(readFile(t, page), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			link, _, _ = strings.Cut(link, "#")
			if link == "" || strings.Contains(link, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link)); err != nil {
				t.Errorf("%s links to %s: %v", page, link, err)
			}
		}
	}
}
