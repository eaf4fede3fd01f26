package render

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/gitsync"
)

// repo is a tree in memory. A value that starts with "-> " is a symbolic link.
type repo map[string]string

func (r repo) Entries() ([]Entry, error) {
	var out []Entry
	for p, text := range r {
		mode := uint32(0o100644)
		switch {
		case strings.HasPrefix(text, "-> "):
			mode = modeSymlink
		case text == "<submodule>":
			mode = modeSubmodule
		}
		out = append(out, Entry{Path: p, Mode: mode})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, nil
}

func (r repo) Read(paths []string, limit int64) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, p := range paths {
		text, ok := r[p]
		if !ok {
			return nil, fmt.Errorf("read of %s, which isn't in the tree", p)
		}
		if int64(len(text)) > limit {
			return nil, &TooLargeError{Path: p, Limit: limit}
		}
		out[p] = []byte(strings.TrimPrefix(text, "-> "))
	}
	return out, nil
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// listing is "file document Kind/name" of every object.
func listing(result Result) []string {
	out := []string{}
	for _, o := range result.Objects {
		out = append(out, fmt.Sprintf("%s %d %s", o.File, o.Document, gitsync.Describe(o.Unstructured)))
	}
	return out
}

func TestFolder_Plain(t *testing.T) {
	tests := map[string]struct {
		repo repo
		path string
		want []string
	}{
		"files in the order of their paths, other files passed over": {
			repo: repo{"b.yml": configMap("b"), "a.yaml": configMap("a"), "README.md": "# no\n", "sub/c.yaml": configMap("c"), ".github/w.yaml": "on: push\n", ".hidden.yaml": "x: 1\n"},
			want: []string{"a.yaml 1 ConfigMap/a", "b.yml 1 ConfigMap/b", "sub/c.yaml 1 ConfigMap/c"},
		},
		"only the folder that was asked for": {
			repo: repo{"apps/a.yaml": configMap("a"), "apps2/b.yaml": configMap("b"), "c.yaml": configMap("c")}, path: "./apps/",
			want: []string{"apps/a.yaml 1 ConfigMap/a"},
		},
		"C47 empty documents are passed over and not counted": {
			repo: repo{"a.yaml": "---\n# Source: x\n---\n---\n" + configMap("a") + "---\n" + configMap("b") + "---"},
			want: []string{"a.yaml 1 ConfigMap/a", "a.yaml 2 ConfigMap/b"},
		},
		"C47 a file of nothing but comments": {
			repo: repo{"a.yaml": "# nothing yet\n", "b.yaml": "", "c.yaml": "---\nnull\n"}, want: []string{},
		},
		"byte order mark and CRLF": {
			repo: repo{"a.yaml": "\ufeff" + strings.ReplaceAll(configMap("a")+"---\n"+configMap("b"), "\n", "\r\n")},
			want: []string{"a.yaml 1 ConfigMap/a", "a.yaml 2 ConfigMap/b"},
		},
		"a marker in a block scalar's indented text is text": {
			repo: repo{"a.yaml": configMap("a") + "data:\n  x: |\n    ---\n    kind: Nothing\n"},
			want: []string{"a.yaml 1 ConfigMap/a"},
		},
		"end marker": {
			repo: repo{"a.yaml": configMap("a") + "...\n---\n" + configMap("b")},
			want: []string{"a.yaml 1 ConfigMap/a", "a.yaml 2 ConfigMap/b"},
		},
		"content on the line of the marker": {
			repo: repo{"a.yaml": "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"},
			want: []string{"a.yaml 1 ConfigMap/a"},
		},
		"JSON, several values, tabs": {
			repo: repo{"a.json": "{\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n\t\"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\"}}"},
			want: []string{"a.json 1 ConfigMap/a", "a.json 2 ConfigMap/b"},
		},
		"C133 Lists are flattened, nested too, null items are none": {
			repo: repo{
				"a.yaml": "apiVersion: v1\nkind: List\nitems: null\n",
				"b.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]\n",
				"c.yaml": "apiVersion: pushback.dev/v1alpha1\nkind: RolloutList\nitems: [{apiVersion: pushback.dev/v1alpha1, kind: Rollout, metadata: {name: d}}]\n",
			},
			want: []string{"b.yaml 1 ConfigMap/b", "b.yaml 1 ConfigMap/c", "c.yaml 1 Rollout/d"},
		},
		"C124 links are followed within the repository, and a file is read once": {
			repo: repo{"apps/a.yaml": configMap("a"), "apps/b.yaml": "-> a.yaml", "apps/shared": "-> ../lib", "lib/c.yaml": configMap("c"), "apps/d.yaml": "-> ../lib/c.yaml"}, path: "apps",
			want: []string{"apps/a.yaml 1 ConfigMap/a", "lib/c.yaml 1 ConfigMap/c"},
		},
		"a submodule is passed over": {
			repo: repo{"a.yaml": configMap("a"), "vendor": "<submodule>"}, want: []string{"a.yaml 1 ConfigMap/a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Folder(tc.repo, tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, listing(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// place is where an error points.
type place struct {
	File           string
	Document, Line int
	Field          string
}

func TestFolder_Refused(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	tests := map[string]struct {
		repo repo
		want []place
		says string
	}{
		"C46 a key that is there twice, with both lines": {
			repo: repo{"a.yaml": configMap("a") + "---\n" + "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    env: [{name: A, value: x}]\n    image: i\n    env: [{name: B, value: x}]\n"},
			want: []place{{"a.yaml", 2, 14, "env"}}, says: "lines 12 and 14",
		},
		"C46 a key that is there twice in JSON": {
			repo: repo{"a.json": "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",\n\"metadata\": {\"name\": \"a\"},\n\"metadata\": {\"name\": \"b\"}}"},
			want: []place{{"a.json", 1, 3, "metadata"}}, says: "lines 2 and 3",
		},
		"C46 a kustomization with a generator twice": {
			repo: repo{"kustomization.yaml": "configMapGenerator:\n- name: a\n  literals: [a=b]\nresources: []\nconfigMapGenerator:\n- name: b\n  literals: [a=b]\n"},
			want: []place{{"kustomization.yaml", 1, 5, "configMapGenerator"}}, says: "lines 1 and 5",
		},
		"broken YAML names the line of the file": {
			repo: repo{"ok.yaml": configMap("ok"), "a.yaml": configMap("a") + "---\nkind: X\n  bad: [\n"},
			want: []place{{"a.yaml", 2, 7, ""}},
		},
		"C133 an item without kind": {
			repo: repo{"f.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n- {apiVersion: v1, metadata: {name: c}}\n"},
			want: []place{{"f.yaml", 1, 1, "kind"}}, says: "item 3: kind missing",
		},
		"a YAML file that is no manifest": {
			repo: repo{"values.yaml": "replicas: 3\n"}, want: []place{{"values.yaml", 1, 1, "kind"}}, says: "kind missing",
		},
		"a document that is a list": {
			repo: repo{"a.yaml": "- a\n- b\n"}, want: []place{{"a.yaml", 1, 1, ""}},
		},
		"no name": {
			repo: repo{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}, want: []place{{"a.yaml", 1, 1, "metadata.name"}},
		},
		"C122 an annotation that YAML reads as a boolean": {
			repo: repo{"a.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  annotations:\n    auth-tls-verify-client: on\n"},
			want: []place{{"a.yaml", 1, 6, "metadata.annotations.auth-tls-verify-client"}}, says: "put it in quotes",
		},
		"C122 environment variables that YAML reads as numbers and booleans": {
			repo: repo{"a.yaml": "apiVersion: pushback.dev/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec:\n  template:\n    spec:\n      containers:\n      - name: a\n        env:\n        - {name: A, value: no}\n        - {name: B, value: 1e3}\n        - {name: C, value: 00123}\n        - {name: D, value: y}\n        - {name: E, value: 'no'}\n        args: [--x, on]\n"},
			want: []place{
				{"a.yaml", 1, 10, "spec.template.spec.containers.0.env.0.value"}, {"a.yaml", 1, 11, "spec.template.spec.containers.0.env.1.value"},
				{"a.yaml", 1, 12, "spec.template.spec.containers.0.env.2.value"}, {"a.yaml", 1, 13, "spec.template.spec.containers.0.env.3.value"},
				{"a.yaml", 1, 15, "spec.template.spec.containers.0.args.1"},
			},
		},
		"C122 the same in a file that kustomize reads": {
			repo: repo{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  annotations: {verify: on}\n"},
			want: []place{{"a.yaml", 1, 5, "metadata.annotations.verify"}},
		},
		"C58 an alias bomb": {
			repo: repo{"a.yaml": bomb}, want: []place{{"a.yaml", 1, 1, ""}}, says: "aliases expand",
		},
		"an anchor in itself": {
			repo: repo{"a.yaml": "a: &a [*a]\n"}, want: []place{{"a.yaml", 1, 1, ""}},
		},
		"C58 values that nest without end": {
			repo: repo{"a.yaml": "a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "\n"}, want: []place{{"a.yaml", 1, 1, ""}},
		},
		"C58 JSON that nests without end": {
			repo: repo{"a.json": "{\"a\": " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}"}, want: []place{{"a.json", 1, 1, ""}},
		},
		"C58 a file of more than 10 MiB": {
			repo: repo{"a.yaml": configMap("a"), "b.yaml": strings.Repeat("#", maxFileBytes+1)}, want: []place{{"b.yaml", 0, 0, ""}},
		},
		"C124 a link that leads to nothing": {
			repo: repo{"a.yaml": configMap("a"), "b.yaml": "-> nowhere.yaml"}, want: []place{{"b.yaml", 0, 0, ""}}, says: "leads to nothing",
		},
		"C124 links in a loop": {
			repo: repo{"a.yaml": "-> b.yaml", "b.yaml": "-> a.yaml"}, want: []place{{"a.yaml", 0, 0, ""}, {"b.yaml", 0, 0, ""}}, says: "loop",
		},
		"a link out of the repository": {
			repo: repo{"x/a.yaml": "-> ../../etc/passwd"}, want: []place{{"x/a.yaml", 0, 0, ""}}, says: "out of the repository",
		},
		"a pointer of Git LFS": {
			repo: repo{"a.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"}, want: []place{{"a.yaml", 0, 0, ""}}, says: "LFS",
		},
		"SOPS": {
			repo: repo{"a.yaml": configMap("a") + "sops: {mac: x}\n"}, want: []place{{"a.yaml", 1, 1, "sops"}}, says: "SOPS",
		},
		"C58 a path out of the repository": {
			repo: repo{"apps/kustomization.yaml": "resources: [../../../tmp/x]\n"}, want: []place{{"apps/kustomization.yaml", 0, 0, "resources[0]"}}, says: "out of the repository",
		},
		"C58 an absolute path": {
			repo: repo{"kustomization.yaml": "resources: [/a.yaml]\n", "a.yaml": configMap("a")}, want: []place{{"kustomization.yaml", 0, 0, "resources[0]"}}, says: "out of the repository",
		},
		"C58 a kustomization that names itself": {
			repo: repo{"kustomization.yaml": "resources: [.]\n"}, want: []place{{"kustomization.yaml", 0, 0, "resources[0]"}}, says: "cycle",
		},
		"C58 kustomizations that name each other": {
			repo: repo{"kustomization.yaml": "resources: [b]\n", "b/kustomization.yaml": "resources: [../c]\n", "c/kustomization.yaml": "resources: [../b]\n"},
			want: []place{{"c/kustomization.yaml", 0, 0, "resources[0]"}}, says: "cycle",
		},
		"C58 remote bases": {
			repo: repo{
				"kustomization.yaml": "resources:\n- https://example.com/a.yaml\n- github.com/o/r//base\n- git@example.com:o/r\n- ssh://git@h/o/r\ncomponents: [\"git::https://h/o/r\"]\npatches: [{path: 'http://h/p.yaml'}]\nconfigMapGenerator: [{name: c, files: ['a=https://h/f']}]\ntransformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  path: https://h/p.yaml\n",
			},
			want: []place{
				{"kustomization.yaml", 0, 0, "resources[0]"}, {"kustomization.yaml", 0, 0, "resources[1]"}, {"kustomization.yaml", 0, 0, "resources[2]"}, {"kustomization.yaml", 0, 0, "resources[3]"},
				{"kustomization.yaml", 0, 0, "components[0]"}, {"kustomization.yaml", 0, 0, "transformers[0].path"}, {"kustomization.yaml", 0, 0, "patches[0].path"}, {"kustomization.yaml", 0, 0, "configMapGenerator[0].files[0]"},
			}, says: "remote",
		},
		"a field that kustomize doesn't know": {
			repo: repo{"kustomization.yaml": "resource: [a.yaml]\n", "a.yaml": configMap("a")}, want: []place{{"kustomization.yaml", 0, 0, ""}}, says: "resource",
		},
		"a file that isn't there": {
			repo: repo{"kustomization.yaml": "resources: [a.yaml, b]\n", "b/x.yaml": configMap("x")}, want: []place{{"kustomization.yaml", 0, 0, "resources[0]"}, {"kustomization.yaml", 0, 0, "resources[1]"}},
		},
		"Helm charts": {
			repo: repo{"kustomization.yaml": "helmCharts: [{name: x, repo: 'https://h'}]\n"}, want: []place{{"kustomization.yaml", 0, 0, "helmCharts"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Folder(tc.repo, folderOf(tc.repo))
			var errs gitsync.ManifestErrors
			if !errors.As(err, &errs) {
				t.Fatalf("want gitsync.ManifestErrors, got %v", err)
			}
			var got []place
			for _, e := range errs {
				got = append(got, place{e.File, e.Document, e.Line, e.Field})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, err)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("want %q in %q", tc.says, err)
			}
		})
	}
}

// folderOf is the folder to render: that of apps when there is one.
func folderOf(r repo) string {
	for p := range r {
		if strings.HasPrefix(p, "apps/") {
			return "apps"
		}
	}
	return ""
}

func TestC122_QuotedTextStaysText(t *testing.T) {
	r := repo{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {v: 'on'}\ndata: {a: 'no', b: \"1e3\", c: \"00123\", d: 'y'}\n"}
	got, err := Folder(r, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"v": "on"}},
		"data":     map[string]any{"a": "no", "b": "1e3", "c": "00123", "d": "y"},
	}
	if diff := cmp.Diff(want, got.Objects[0].Object); diff != "" {
		t.Error(diff)
	}
}

func TestC134_PathNotFound(t *testing.T) {
	for _, p := range []string{"nope", "a.yaml", "a/b"} {
		_, err := Folder(repo{"a.yaml": configMap("a")}, p)
		var missing *PathNotFoundError
		if !errors.As(err, &missing) || missing.Path != p {
			t.Errorf("%s: want a PathNotFoundError, got %v", p, err)
		}
	}
}

func TestC137_GenerateNameIsRejectedAlone(t *testing.T) {
	r := repo{"a.yaml": configMap("a"), "job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-}\n"}
	got, err := Folder(r, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.yaml 1 ConfigMap/a"}, listing(got)); diff != "" {
		t.Error(diff)
	}
	if len(got.Rejected) != 1 || got.Rejected[0].File != "job.yaml" || got.Rejected[0].Field != "metadata.generateName" {
		t.Errorf("want job.yaml rejected, got %v", got.Rejected)
	}
}

func TestSourcesAreGitsBytes(t *testing.T) {
	r := repo{"apps/web.yaml": "-> ../lib/web.yaml", "lib/web.yaml": "# kept\r\n" + configMap("web")}
	got, err := Folder(r, "apps")
	if err != nil {
		t.Fatal(err)
	}
	want := []Source{{Path: "lib/web.yaml", Mode: 0o100644, Data: []byte(r["lib/web.yaml"])}}
	if diff := cmp.Diff(want, got.Sources(got.Objects[0])); diff != "" {
		t.Error(diff)
	}
	if !bytes.Contains(got.Sources(got.Objects[0])[0].Data, []byte("\r\n")) {
		t.Error("line ends were changed")
	}
}
