package revert_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/gitsync/revert"
)

// style is how a value is written.
type style struct {
	indent   int  // spaces per level
	compact  bool // lists at the column of their key
	flowFrom int  // depth from which brackets are used
	quote    string
	comments bool
}

func drawStyle(t *rapid.T, label string) style {
	return style{
		indent: rapid.SampledFrom([]int{2, 4}).Draw(t, label+" indent"), compact: rapid.Bool().Draw(t, label+" compact"),
		flowFrom: rapid.IntRange(1, 6).Draw(t, label+" flow"), quote: rapid.SampledFrom([]string{"", `"`, `'`}).Draw(t, label+" quote"),
		comments: rapid.Bool().Draw(t, label+" comments"),
	}
}

// drawValue makes a value of maps, lists and text.
func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	switch {
	case depth > 0 && kind <= 2:
		object := map[string]any{}
		for range rapid.IntRange(1, 3).Draw(t, "keys") {
			object[rapid.SampledFrom([]string{"name", "image", "env", "x", "y"}).Draw(t, "key")] = drawValue(t, depth-1)
		}
		return object
	case depth > 0 && kind == 3:
		list := make([]any, rapid.IntRange(1, 3).Draw(t, "items"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
	return rapid.SampledFrom([]string{"app:1", "a b", "on", "1", "#x", "a: b", "é", "", "{x}", "it's", `"q"`, "line\nline\n", " pad "}).Draw(t, "text")
}

func (s style) write(value any, depth, column int) string {
	switch v := value.(type) {
	case map[string]any:
		return s.writeMap(v, depth, column)
	case []any:
		return s.writeList(v, depth, column)
	}
	return " " + s.scalar(value.(string), depth, column)
}

func (s style) scalar(text string, depth, column int) string {
	if text == "line\nline\n" && depth < s.flowFrom {
		pad := strings.Repeat(" ", column+1)
		return "|\n" + pad + "line\n" + pad + "line"
	}
	if text == "app:1" || text == "a b" || text == "é" {
		return s.quote + text + s.quote
	}
	return fmt.Sprintf("%q", text)
}

func (s style) writeMap(v map[string]any, depth, column int) string {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	sort.Strings(names)
	var parts []string
	for _, name := range names {
		if depth >= s.flowFrom {
			parts = append(parts, name+":"+s.write(v[name], depth+1, column))
			continue
		}
		inner := column + s.indent
		if _, list := v[name].([]any); list && s.compact {
			inner = column
		}
		line := strings.Repeat(" ", column) + name + ":" + s.write(v[name], depth+1, inner)
		if s.comments {
			line = strings.Repeat(" ", column) + "# about " + name + "\n" + line
		}
		parts = append(parts, line)
	}
	if depth >= s.flowFrom {
		return " {" + strings.Join(parts, ", ") + "}"
	}
	return "\n" + strings.Join(parts, "\n")
}

func (s style) writeList(v []any, depth, column int) string {
	var parts []string
	for _, item := range v {
		if depth >= s.flowFrom {
			parts = append(parts, strings.TrimPrefix(s.write(item, depth+1, column), " "))
			continue
		}
		text := s.write(item, depth+1, column+2)
		parts = append(parts, strings.Repeat(" ", column)+"-"+text)
	}
	if depth >= s.flowFrom {
		return " [" + strings.Join(parts, ", ") + "]"
	}
	return "\n" + strings.Join(parts, "\n")
}

// change takes some values for others.
func change(t *rapid.T, value any) any {
	if rapid.IntRange(0, 3).Draw(t, "replace") == 0 {
		return drawValue(t, 2)
	}
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range []string{"name", "image", "env", "x", "y", "spec"} {
			inner, ok := v[name]
			switch {
			case ok && rapid.IntRange(0, 6).Draw(t, "drop") > 0:
				out[name] = change(t, inner)
			case !ok && rapid.IntRange(0, 9).Draw(t, "add") == 0:
				out[name] = drawValue(t, 1)
			}
		}
		if len(out) == 0 {
			return v
		}
		return out
	case []any:
		out := append([]any(nil), v...)
		i := rapid.IntRange(0, len(v)-1).Draw(t, "item")
		out[i] = change(t, v[i])
		if rapid.Bool().Draw(t, "append") {
			out = append(out, drawValue(t, 1))
		}
		return out
	}
	return value
}

// For any template, any change of it and any style of writing, a revert is
// proved or refused, and never touches what is outside the template.
func TestCompose_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom([]string{"", "\ufeff", "---\n# é\n---\n", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n---\n"}).Draw(t, "prefix") + shell + "  template:"
		suffix := rapid.SampledFrom([]string{"\n", "", "\n  strategy: {} # é\n", "\n# tail\n---\n# empty\n", "\n  # x\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: d}\ndata: {a: 'on'}"}).Draw(t, "suffix")
		old := map[string]any{"spec": drawValue(t, 4)}
		changed := change(t, old)
		bad, ok := changed.(map[string]any)
		if !ok {
			bad = map[string]any{"spec": changed}
		}
		was := drawStyle(t, "stored")
		is := was
		sameStyle := rapid.IntRange(0, 2).Draw(t, "restyle") > 0
		if !sameStyle {
			is = drawStyle(t, "head")
		}
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
		lines := func(text string) string { return strings.ReplaceAll(text, "\n", eol) }
		laterPrefix := strings.Replace(prefix, "replicas: 2", "replicas: 3", 1)
		stored := files("w.yaml", lines(prefix+was.write(old, 0, 4)+suffix))
		head := files("w.yaml", lines(laterPrefix+is.write(bad, 0, 4)+suffix))
		check(t, stored, head, lines(laterPrefix), lines(suffix), sameStyle && suffix != "")
	})
}

// mustWork is false where the style differs, and where a text block may lie at
// the end of a file without a final newline: elsewhere it would mean another text.
func check(t *rapid.T, stored, head map[string][]byte, prefix, suffix string, mustWork bool) {
	in := revert.In{Rollout: web, Stored: stored, Head: head, Own: plain("own", head)}
	in.Stable, in.Rejected = hashOrSkip(t, plain("stored", stored)), hashOrSkip(t, in.Own)
	if in.Stable == in.Rejected {
		t.Skip("the change changed nothing")
	}
	switch outcome := revert.Compose(in).(type) {
	case *revert.Edited:
		result := outcome.Edits["w.yaml"]
		after := hashOrSkip(t, plain("after", outcome.Edits))
		if after != in.Stable || len(outcome.Edits) != 1 {
			t.Fatalf("not the stable template:\n%s", result)
		}
		if !strings.HasPrefix(string(result), prefix) || !strings.HasSuffix(string(result), suffix) {
			t.Fatalf("bytes outside the template changed:\n%q\n%q", head["w.yaml"], result)
		}
	case *revert.Refused:
		if mustWork {
			t.Fatalf("refused: %v\nstored %s\nhead %s", outcome, stored["w.yaml"], head["w.yaml"])
		}
	default:
		t.Fatalf("%T", outcome)
	}
}

func hashOrSkip(t *rapid.T, r revert.Render) string {
	objects, err := r.Objects(nil)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	for _, o := range objects {
		if o.Identity == web {
			return o.TemplateHash
		}
	}
	t.Fatalf("%s renders no Rollout", r.Name)
	return ""
}
