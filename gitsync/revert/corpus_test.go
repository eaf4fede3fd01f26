package revert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/gitsync/revert"
)

// fixture is a file before the bad commit, at the head, and after the revert:
// byte for byte.
type fixture struct{ stored, head, want string }

// shell is a Rollout whose template starts on the line behind it.
const shell = `apiVersion: pushback.dev/v1alpha1
kind: Rollout
metadata:
  name: web
  namespace: shop
spec:
  replicas: 2
`

// swap makes a fixture where the bad commit replaced one text by another.
func swap(stored, from, to string) fixture {
	head := strings.Replace(stored, from, to, 1)
	if head == stored {
		panic("the fixture does not hold " + from)
	}
	return fixture{stored: stored, head: head, want: stored}
}

// then applies a good commit after the bad one, which the revert must keep.
func (f fixture) then(from, to string) fixture {
	f.head, f.want = strings.Replace(f.head, from, to, 1), strings.Replace(f.want, from, to, 1)
	return f
}

const simple = shell + `  template:
    spec:
      containers:
      - name: app
        image: app:1
`

// corpus are files that an editor of YAML may get wrong.
var corpus = map[string]fixture{
	"one scalar":                       swap(simple, "app:1", "app:2"),
	"a longer scalar":                  swap(simple, "app:1", "registry.example.com:5000/team/app@sha256:0123456789abcdef"),
	"no final newline":                 swap(strings.TrimRight(simple, "\n"), "app:1", "app:2"),
	"blank lines at the end":           swap(simple+"\n\n\n", "app:1", "app:2"),
	"crlf":                             swap(strings.ReplaceAll(simple, "\n", "\r\n"), "app:1", "app:2"),
	"crlf without the last":            swap(strings.ReplaceAll(strings.TrimRight(simple, "\n"), "\n", "\r\n"), "app:1", "app:2"),
	"mixed line ends":                  swap(strings.Replace(simple, "spec:\n", "spec:\r\n", 1), "app:1", "app:2"),
	"byte order mark":                  swap("\ufeff"+simple, "app:1", "app:2"),
	"byte order mark and crlf":         swap("\ufeff"+strings.ReplaceAll(simple, "\n", "\r\n"), "app:1", "app:2"),
	"byte order mark, flow on line 1":  swap("\ufeff"+jsonRollout, "app:1", "app:2"),
	"next line (NEL) in a comment":     swap("# a\u0085# b\n"+simple, "app:1", "app:2"),
	"lone carriage return before":      swap("# a\r# b\n"+simple, "app:1", "app:2"),
	"lone carriage returns everywhere": swap(strings.ReplaceAll(simple, "\n", "\r"), "app:1", "app:2"),
	"wide characters before the value": swap(strings.Replace(simple, "        image: app:1", `        "日本語 ключ": {"ü": "ü", image: app:1}`, 1), "app:1", "app:2"),
	"emoji in a comment above":         swap("# 🚀🚀🚀 deploy\n"+simple, "app:1", "app:2"),
	"comments before, inside, after": swap(`# head
`+shell+`  # before
  template: # behind the key
    # inside
    spec:
      containers: # list

      # above the item
      - name: app # name
        image: app:1 # {"$imagepolicy": "flux-system:app"}
        # below
      # outer
  # after
# tail
`, "app:1", "app:2"),
	"three documents":                swap("---\n# Source: x\n---\n---\n"+simple+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'on'}\n---", "app:1", "app:2"),
	"document markers with comments": swap("--- # one\n"+simple+"... # end\n--- # two\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n", "app:1", "app:2"),
	"a directive":                    swap("%YAML 1.1\n---\n"+simple, "app:1", "app:2"),
	"a list of objects": swap(`apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: c}
-
`+indent(simple, "  "), "app:1", "app:2"),
	"a list with other indentation": swap("kind: List\napiVersion: v1\nitems:\n    -   "+strings.TrimPrefix(indent(simple, "        "), "        "), "app:1", "app:2"),
	"json":                          swap(jsonRollout, "app:1", "app:2"),
	"json over several lines": swap(`{
	"apiVersion": "pushback.dev/v1alpha1",
	"kind": "Rollout",
	"metadata": {"name": "web", "namespace": "shop"},
	"spec": {
		"replicas": 2,
		"template": {
			"spec": {"containers": [
				{"name": "app", "image": "app:1"}
			]}
		}
	}
}
`, "app:1", "app:2"),
	"flow in a block":                   swap(shell+"  template: {spec: {containers: [{name: app, image: app:1}]}} # all\n", "app:1", "app:2"),
	"flow over lines":                   swap(shell+"  template: {\n    spec: {containers: [\n# odd\n  {name: app,\n   image: app:1 # x }]\n  }]}}\n", "app:1", "app:2"),
	"double quotes kept":                {shellWith(`"app:1"`), shellWith(`"app:2"`), shellWith(`"app:1"`)},
	"single quotes kept":                {shellWith(`'app:1'`), shellWith(`'app:2'`), shellWith(`'app:1'`)},
	"quotes of the head are its style":  {shellWith(`app:1`), shellWith(`"app:2"`), shellWith(`"app:1"`)},
	"a value that needs its quotes":     {shellWith(`"1"`), shellWith(`x`), shellWith(`"1"`)},
	"escapes stay as they were":         {shellWith(`"app\x3a1\u0020é"`), shellWith(`"app:2"`), shellWith(`"app\x3a1\u0020é"`)},
	"a quote inside single quotes":      {shellWith(`'it''s'`), shellWith(`'no'`), shellWith(`'it''s'`)},
	"# in a quoted value":               {shellWith(`"a # b" # c`), shellWith(`"d # e" # c`), shellWith(`"a # b" # c`)},
	"a plain value with colon and hash": {shellWith(`a:b#c`), shellWith(`a:b#d`), shellWith(`a:b#c`)},
	"a plain value over lines": {shellWith("one\n          two\n\n          three"), shellWith("one"),
		shellWith("one\n          two\n\n          three")},
	"to one line from several": {shellWith("one"), shellWith("one\n          two\n\n          three"), shellWith("one")},
	"a quoted value over lines": {shellWith("\"one\n\n          two \\\n          three\""), shellWith(`"x"`),
		shellWith("\"one\n\n          two \\\n          three\"")},
	"literal block":                    swap(block("|", "run 1"), "run 1", "run 2"),
	"literal, strip":                   swap(block("|-", "run 1"), "run 1", "run 2"),
	"literal, keep":                    swap(block("|+", "run 1\n\n"), "run 1", "run 2"),
	"literal, explicit":                swap(block("|2", "  run 1"), "run 1", "run 2"),
	"folded":                           swap(block(">-", "run 1\n  more\nless"), "run 1", "run 2"),
	"# and --- in a literal":           swap(block("|", "# run 1\n --- x\n- y: {"), "run 1", "run 2"),
	"a literal with lines of spaces":   swap(block("|", "run 1\n   \n  x"), "run 1", "run 2"),
	"a literal at the end of the file": swap(shell+"  template:\n    spec:\n      args:\n      - |\n        run 1", "run 1", "run 2"),
	"a literal becomes plain":          {block("|", "run 1"), strings.Replace(block("|", "run 1"), "|\n          run 1", "run", 1), block("|", "run 1")},
	"an explicit tag":                  swap(shellWith("!!str 1"), "!!str 1", "!!str 2"),
	"an anchor used inside only":       swap(shell+"  template:\n    metadata:\n      labels: &l {app: web}\n    spec:\n      selector: *l\n      image: app:1\n", "app:1", "app:2"),
	"a complex indicator elsewhere":    swap(shell+"  template:\n    spec: {image: app:1}\n  ? progress\n  : 600\n", "app:1", "app:2"),
	"tabs behind the values":           swap(strings.ReplaceAll(simple, "app:1", "app:1\t# tab"), "app:1", "app:2"),
	"a key that looks like the path":   swap(shell+"  x:\n    template:\n      spec: {image: app:1}\n  template:\n    spec: {image: app:9}\n", "app:9", "app:2"),
	"later edit of replicas":           swap(simple, "app:1", "app:2").then("replicas: 2", "replicas: 7"),
	"later comment in the template":    swap(simple, "app:1", "app:2").then("      containers:", "      # why\n      containers:"),
	"a key was added":                  swap(simple, "        image: app:1\n", "        image: app:2\n        env:\n        - name: A\n          value: \"1\"\n"),
	"a key was added before a comment": swap(simple+"        # end\n  strategy: {}\n", "        image: app:1\n", "        image: app:2\n        tty: true\n"),
	"a key was added behind a comment": swap(simple+"        # end\n  strategy: {}\n", "        # end\n", "        # end\n        tty: true\n"),
	"a key was removed":                swap(simple+"        resources:\n          limits: {cpu: 1} # one\n", "        resources:\n          limits: {cpu: 1} # one\n", ""),
	"a container was added":            swap(simple+"  strategy: {}\n", "  strategy", "      - name: side\n        image: side:1\n  strategy"),
	"a container was put first":        swap(simple, "      - name: app", "      - name: side\n        image: side:1\n      - name: app"),
	"a list became indented": {simple, strings.ReplaceAll(strings.ReplaceAll(simple, "      - name: app", "        - name: app"), "        image: app:1", "          image: app:2"),
		strings.ReplaceAll(strings.ReplaceAll(simple, "      - name: app", "        - name: app"), "        image: app:1", "          image: app:1")},
	"structure and indentation changed": {simple,
		shell + "  template:\n        spec:\n            containers:\n                -   name: app\n                    image: app:2\n                    tty: true\n",
		shell + "  template:\n        spec:\n            containers:\n                -   name: app\n                    image: app:1\n"},
	"flow became block":    {shell + "  template: {spec: {image: app:1}}\n", shell + "  template:\n    spec:\n      image: app:2\n", shell + "  template:\n    spec:\n      image: app:1\n"},
	"a map became a list":  {shell + "  template:\n    spec:\n      a:\n        x: 1\n", shell + "  template:\n    spec:\n      a:\n      - x\n", shell + "  template:\n    spec:\n      a:\n        x: 1\n"},
	"a null became a map":  {shell + "  template:\n    spec:\n      a:\n        x: 1\n      b: 1\n", shell + "  template:\n    spec:\n      a:\n      b: 1\n", shell + "  template:\n    spec:\n      a:\n        x: 1\n      b: 1\n"},
	"text became a number": {shell + "  template:\n    spec:\n      a: '1'\n", shell + "  template:\n    spec:\n      a: 2\n", shell + "  template:\n    spec:\n      a: '1'\n"},
}

const jsonRollout = `{"apiVersion":"pushback.dev/v1alpha1","kind":"Rollout","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"app","image":"app:1"}]}}}}`

func shellWith(value string) string {
	return shell + "  template:\n    spec:\n      containers:\n      - name: app\n        image: " + value + "\n        tty: true\n"
}

func block(header, content string) string {
	return shell + "  template:\n    spec:\n      containers:\n      - name: app\n        args:\n        - " + header + "\n" +
		indent(content, "          ") + "\n        image: a\n"
}

func indent(text, by string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n")
}

func TestCompose_Corpus(t *testing.T) {
	if len(corpus) < 35 {
		t.Fatalf("only %d fixtures", len(corpus))
	}
	for name, f := range corpus {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, files("web.yaml", f.stored), files("web.yaml", f.head), plain)
			edits := mustEdit(t, revert.Compose(in))
			if diff := cmp.Diff(f.want, string(edits["web.yaml"])); diff != "" || len(edits) != 1 {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Files that can't be edited for sure are refused with the place and the cause.
func TestCompose_RefusedCorpus(t *testing.T) {
	anchored := shell + "  template: &tpl\n    spec: {image: app:1}\n  other: *tpl\n"
	merged := "x-base: &base {image: app:1}\n" + shell + "  template:\n    spec:\n      <<: *base\n"
	alias := "x-tpl: &tpl\n  spec: {image: app:1}\n" + shell + "  template: *tpl\n"
	for name, f := range map[string]struct {
		stored, head string
		words        []string
		line         int
	}{
		"the template is used elsewhere":  {anchored, strings.Replace(anchored, "app:1", "app:2", 1), []string{"tpl"}, 8},
		"the template is an alias":        {alias, strings.Replace(alias, "app:1", "app:2", 1), []string{"tpl"}, 10},
		"a merge key reaches outside":     {merged, strings.Replace(merged, "app:1", "app:2", 1), []string{"base"}, 11},
		"the alias is inside, used twice": {shell + "  template:\n    spec: {a: &v app:1, b: 1}\n  x: *v\n", shell + "  template:\n    spec: {a: &v app:2, b: 1}\n  x: *v\n", []string{"v"}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, files("web.yaml", f.stored), files("web.yaml", f.head), plain)
			refused := mustRefuse(t, revert.Compose(in), append(f.words, "web.yaml")...)
			if refused.Line != f.line {
				t.Errorf("line %d, want %d", refused.Line, f.line)
			}
		})
	}
}
