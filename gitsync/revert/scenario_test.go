package revert_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/gitsync/revert"
)

func other(name, image string) string {
	return strings.NewReplacer("name: web", "name: "+name, "app:1", image).Replace(simple)
}

// What a textual revert conflicts on or takes too much of: only the rejected
// template's fields go back, on the newest head.
func TestC02_OnlyTheRejectedFieldsGoBack(t *testing.T) {
	stable := simple
	bad := strings.Replace(simple, "app:1", "app:2", 1)
	t.Run("a later edit of the neighbouring line stays", func(t *testing.T) {
		edited := strings.Replace(bad, "      - name: app", "      # the shop's front\n      - name: app # renamed soon", 1)
		edited = strings.Replace(edited, "replicas: 2", "replicas: 5 # sale", 1)
		in := inputs(t, files("web.yaml", stable), files("web.yaml", edited), plain)
		got := mustEdit(t, revert.Compose(in))
		if diff := cmp.Diff(strings.Replace(edited, "app:2", "app:1", 1), string(got["web.yaml"])); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("one commit changed three apps, one of which is rejected", func(t *testing.T) {
		before := simple + "---\n" + other("api", "app:1") + "---\n" + other("db", "app:1")
		head := strings.ReplaceAll(before, "app:1", "app:2")
		in := inputs(t, files("all.yaml", before), files("all.yaml", head), plain)
		got := mustEdit(t, revert.Compose(in))
		if diff := cmp.Diff(strings.Replace(head, "app:2", "app:1", 1), string(got["all.yaml"])); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a person set a third version", func(t *testing.T) {
		in := inputs(t, files("web.yaml", stable), files("web.yaml", bad), plain)
		third := files("web.yaml", strings.Replace(simple, "app:1", "app:3", 1))
		in.Head, in.Own = third, plain("own", third)
		if _, ok := revert.Compose(in).(*revert.Superseded); !ok {
			t.Errorf("want Superseded, got %T", revert.Compose(in))
		}
	})
	t.Run("a person reverted first", func(t *testing.T) {
		in := inputs(t, files("web.yaml", stable), files("web.yaml", bad), plain)
		in.Head, in.Own = files("web.yaml", stable), plain("own", files("web.yaml", stable))
		if _, ok := revert.Compose(in).(*revert.AlreadyReverted); !ok {
			t.Errorf("want AlreadyReverted, got %T", revert.Compose(in))
		}
	})
	t.Run("the document is gone", func(t *testing.T) {
		in := inputs(t, files("web.yaml", stable), files("web.yaml", bad), plain)
		in.Head, in.Own = files("x.yaml", other("api", "app:1")), plain("own", files("x.yaml", other("api", "app:1")))
		if got, ok := revert.Compose(in).(*revert.Superseded); !ok || got.Hash != "" {
			t.Errorf("want Superseded without a hash, got %T", revert.Compose(in))
		}
	})
	t.Run("the bad commit created the Rollout", func(t *testing.T) {
		in := inputs(t, files("web.yaml", stable), files("web.yaml", bad), plain)
		in.Stored, in.Stable = nil, ""
		if _, ok := revert.Compose(in).(*revert.NoTarget); !ok {
			t.Errorf("want NoTarget, got %T", revert.Compose(in))
		}
	})
}

// The bad template came over three commits, then replicas were edited.
func TestCompose_OverSeveralCommits(t *testing.T) {
	head := strings.NewReplacer("app:1", "app:2", "replicas: 2", "replicas: 4", "- name: app\n", "- name: app\n        tty: true\n").Replace(simple)
	in := inputs(t, files("web.yaml", simple), files("web.yaml", head), plain)
	want := strings.Replace(simple, "replicas: 2", "replicas: 4", 1)
	if diff := cmp.Diff(want, string(mustEdit(t, revert.Compose(in))["web.yaml"])); diff != "" {
		t.Error(diff)
	}
}

// A repository of 50 files in different styles: one file, one line.
func TestC10_OneFileOneLine(t *testing.T) {
	stored := map[string][]byte{}
	for i := range 49 {
		name := "app" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		text := "# " + name + "\n" + other(name, "app:1") + "---\nkind: ConfigMap\napiVersion: v1\nmetadata:\n    name: " + name + "\ndata:\n    x: |\n        a\n\n         b\n"
		if i%2 == 0 {
			text = strings.ReplaceAll(text, "      - name: app", "        -   name: app")
			text = strings.ReplaceAll(text, "        image:", "            image:")
		}
		stored[name+".yaml"] = []byte(text)
	}
	stored["web.yaml"] = []byte(simple)
	head := map[string][]byte{}
	for name, data := range stored {
		head[name] = data
	}
	head["web.yaml"] = []byte(strings.Replace(simple, "app:1", "app:2", 1))
	edits := mustEdit(t, revert.Compose(inputs(t, stored, head, plain)))
	if len(edits) != 1 || lineDiff(string(head["web.yaml"]), string(edits["web.yaml"])) != 1 {
		t.Errorf("want one file and one line, got %d files: %q", len(edits), edits)
	}
}

func lineDiff(a, b string) int {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(x) != len(y) {
		return -1
	}
	n := 0
	for i := range x {
		if x[i] != y[i] {
			n++
		}
	}
	return n
}

// A key that is there twice is an error with both lines, not a guess.
func TestC46_DuplicateKeysAreRefusedWithBothLines(t *testing.T) {
	head := strings.Replace(simple, "app:1", "app:2", 1) + "        env: []\n        env: []\n"
	in := revert.In{Rollout: web, Stored: files("web.yaml", simple), Head: files("web.yaml", head), Stable: "s", Rejected: "r"}
	in.Own = revert.Render{Name: "own", Objects: func(map[string][]byte) ([]revert.Object, error) {
		return []revert.Object{{Identity: web, JSON: []byte(`{}`), TemplateHash: "r"}}, nil
	}}
	refused := mustRefuse(t, revert.Compose(in), "env", "13", "14")
	if refused.File != "web.yaml" || refused.Line != 14 {
		t.Errorf("got %+v", refused)
	}
}

// Empty documents, comments and markers stay byte for byte.
func TestC47_EmptyDocumentsStay(t *testing.T) {
	for name, around := range map[string][2]string{
		"leading marker":          {"---\n", ""},
		"a comment-only document": {"---\n# Source: x\n---\n", ""},
		"markers in a row":        {"---\n---\n---\n", "---\n---\n"},
		"trailing marker":         {"", "---"},
		"null documents":          {"--- null\n--- ~\n---\n", "...\n---\n# x\n..."},
	} {
		t.Run(name, func(t *testing.T) {
			stored := around[0] + simple + around[1]
			in := inputs(t, files("w.yaml", stored), files("w.yaml", strings.Replace(stored, "app:1", "app:2", 1)), plain)
			if diff := cmp.Diff(stored, string(mustEdit(t, revert.Compose(in))["w.yaml"])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Strings keep the quotes without which they would be something else.
func TestC122_QuotesStay(t *testing.T) {
	for _, value := range []string{`'on'`, `'no'`, `"1e3"`, `"00123"`, `'y'`, `"null"`, `'~'`, `""`} {
		f := fixture{shellWith(value), shellWith(`changed`), shellWith(value)}
		in := inputs(t, files("w.yaml", f.stored), files("w.yaml", f.head), plain)
		if diff := cmp.Diff(f.want, string(mustEdit(t, revert.Compose(in))["w.yaml"])); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

// Lists, nested and empty ones, hold objects by identity.
func TestC133_Lists(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems: null\n---\napiVersion: v1\nkind: List\nitems: []\n---\napiVersion: v1\nkind: List\nitems:\n- kind: ConfigMap\n  apiVersion: v1\n  metadata: {name: a}\n-\n" + indent(simple, "  ")
	in := inputs(t, files("w.yaml", list), files("w.yaml", strings.Replace(list, "app:1", "app:2", 1)), plain)
	if diff := cmp.Diff(list, string(mustEdit(t, revert.Compose(in))["w.yaml"])); diff != "" {
		t.Error(diff)
	}
}

// Long text outside the edit is never wrapped or folded again.
func TestC136_LongTextIsNeverPrintedAgain(t *testing.T) {
	long := strings.Repeat("a long value: with colons and spaces, ", 10)
	stored := strings.Replace(simple, "  name: web\n", "  name: web\n  annotations:\n    x: \""+long+"\"\n    y: >-\n      "+long+"\n", 1)
	in := inputs(t, files("w.yaml", stored), files("w.yaml", strings.Replace(stored, "app:1", "app:2", 1)), plain)
	if diff := cmp.Diff(stored, string(mustEdit(t, revert.Compose(in))["w.yaml"])); diff != "" {
		t.Error(diff)
	}
}

func TestCompose_MovedFile(t *testing.T) {
	bad := strings.Replace(simple, "app:1", "app:2", 1)
	in := inputs(t, files("old/web.yaml", simple), files("new/web.yaml", "# moved\n"+bad), plain)
	if diff := cmp.Diff("# moved\n"+simple, string(mustEdit(t, revert.Compose(in))["new/web.yaml"])); diff != "" {
		t.Error(diff)
	}
}

func TestCompose_Refuses(t *testing.T) {
	bad := strings.Replace(simple, "app:1", "app:2", 1)
	fixed := func(hash string) revert.Render {
		return revert.Render{Name: "own", Objects: func(map[string][]byte) ([]revert.Object, error) {
			return []revert.Object{{Identity: web, JSON: []byte(`{}`), TemplateHash: hash}}, nil
		}}
	}
	for name, c := range map[string]struct {
		stored, head map[string][]byte
		words        []string
	}{
		"template markers":       {files("w.yaml", simple), files("w.yaml", "{{- if .x }}\n"+bad+"{{- end }}\n"), []string{"w.yaml:1", "{{"}},
		"a marker that parses":   {files("w.yaml", simple), files("w.yaml", strings.Replace(bad, "replicas: 2", "replicas: {{ .n }}", 1)), []string{"w.yaml:7", "{{"}},
		"sops":                   {files("w.yaml", simple), files("w.yaml", bad+"sops:\n  mac: x\n"), []string{"SOPS"}},
		"utf-16":                 {files("w.yaml", simple), files("w.yaml", "\xff\xfea\x00"), []string{"UTF-16"}},
		"the same twice":         {files("w.yaml", simple), files("w.yaml", bad+"---\n"+bad), []string{"line 1", "line 14"}},
		"moved into two files":   {files("w.yaml", simple), files("a.yaml", bad, "b.yaml", bad), []string{"a.yaml and in b.yaml"}},
		"block text in brackets": {files("w.yaml", strings.Replace(simple, "image: app:1", "args:\n        - |\n          a\n          b", 1)), files("w.yaml", jsonRollout), []string{"style"}},
		"nothing differs":        {files("w.yaml", bad), files("w.yaml", bad), []string{"by hand"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := revert.In{Rollout: web, Stored: c.stored, Head: c.head, Own: fixed("bad"), Rejected: "bad", Stable: "good"}
			mustRefuse(t, revert.Compose(in), c.words...)
		})
	}
}

// Everything that the repository renders to is compared, not only the own folder.
func TestProve_OtherRenders(t *testing.T) {
	bad := strings.Replace(simple, "app:1", "app:2", 1)
	in := inputs(t, files("w.yaml", simple), files("w.yaml", bad), plain)
	staging := web
	staging.Namespace = "staging"
	shared := revert.Render{Name: "GitSync staging", Objects: func(edits map[string][]byte) ([]revert.Object, error) {
		data := []byte(bad)
		if edits["w.yaml"] != nil {
			data = edits["w.yaml"]
		}
		objects, err := decode(data)
		objects[0].Identity = staging
		return objects, err
	}}
	broken := errors.New("no such base")
	failing := revert.Render{Name: "broken", Objects: func(map[string][]byte) ([]revert.Object, error) { return nil, broken }}
	breaks := revert.Render{Name: "breaks", Objects: func(edits map[string][]byte) ([]revert.Object, error) {
		if len(edits) > 0 {
			return nil, broken
		}
		return nil, nil
	}}
	for name, c := range map[string]struct {
		others []revert.Render
		words  []string
	}{
		"a file shared with another folder":  {[]revert.Render{shared}, []string{"GitSync staging", "Rollout/staging/web"}},
		"a render that breaks by the edit":   {[]revert.Render{breaks}, []string{"breaks", "no such base"}},
		"an error that was there all along":  {[]revert.Render{failing}, nil},
		"the same Rollout in another render": {[]revert.Render{plain("twin", in.Head)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in.Others = c.others
			outcome := revert.Compose(in)
			if c.words == nil {
				mustEdit(t, outcome)
				return
			}
			mustRefuse(t, outcome, c.words...)
		})
	}
}
