package revert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pushback-dev/pushback/gitsync/revert"
)

// kustomized renders a folder by the kustomize library.
func kustomized(folder string) func(string, map[string][]byte) revert.Render {
	return func(name string, head map[string][]byte) revert.Render {
		return revert.Render{Name: name, Objects: func(edits map[string][]byte) ([]revert.Object, error) {
			fs := filesys.MakeFsInMemory()
			for file, data := range head {
				if edited, ok := edits[file]; ok {
					data = edited
				}
				if err := fs.WriteFile("/repo/"+file, data); err != nil {
					return nil, err
				}
			}
			options := krusty.MakeDefaultOptions()
			options.LoadRestrictions = types.LoadRestrictionsNone
			built, err := krusty.MakeKustomizer(options).Run(fs, "/repo/"+folder)
			if err != nil {
				return nil, err
			}
			out, err := built.AsYaml()
			if err != nil {
				return nil, err
			}
			return decode(out)
		}}
	}
}

const kustomization = `# the shop
namespace: shop
resources:
- web.yaml
images:
# kept by the bot
- name: app
  newTag: "1.0" # {"$imagepolicy": "x"}
- name: side
  newTag: v3
`

// An image tag in a kustomization goes back as one scalar, in its own quotes.
func TestCompose_KustomizeImages(t *testing.T) {
	stored := files("kustomization.yaml", kustomization, "web.yaml", simple)
	for name, c := range map[string]struct{ from, to, later, now string }{
		"a tag":                          {`newTag: "1.0"`, `newTag: "2.0"`, "", ""},
		"beside a tag that nothing uses": {`newTag: "1.0"`, `newTag: "2.0"`, "newTag: v3", "newTag: v4"},
		"a digest for a tag":             {`newTag: "1.0"`, `digest: sha256:0123456789012345678901234567890123456789012345678901234567890123`, "", ""},
		"a new name":                     {`newTag: "1.0"`, "newName: evil\n  newTag: \"1.0\"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(kustomization, c.from, c.to, 1)
			if bad == kustomization {
				t.Fatal("nothing was replaced")
			}
			want := kustomization
			if c.later != "" {
				bad, want = strings.Replace(bad, c.later, c.now, 1), strings.Replace(want, c.later, c.now, 1)
			}
			head := files("kustomization.yaml", bad, "web.yaml", simple)
			edits := mustEdit(t, revert.Compose(inputs(t, stored, head, kustomized("."))))
			if diff := cmp.Diff(map[string][]byte{"kustomization.yaml": []byte(want)}, edits); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A base that two overlays share is refused; an overlay's own patch is not.
func TestCompose_KustomizeOverlays(t *testing.T) {
	base := strings.Replace(simple, "  namespace: shop\n", "", 1)
	patch := "apiVersion: pushback.dev/v1alpha1\nkind: Rollout\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      priority: 1 # low\n"
	tree := func(base, patch string) map[string][]byte {
		return files("base/kustomization.yaml", "resources: [web.yaml]\n", "base/web.yaml", base,
			"prod/kustomization.yaml", "namespace: shop\nresources: [../base]\npatches: [{path: patch.yaml}]\n", "prod/patch.yaml", patch,
			"staging/kustomization.yaml", "namespace: staging\nresources: [../base]\n")
	}
	stored := tree(base, patch)
	t.Run("the patch", func(t *testing.T) {
		head := tree(base, strings.Replace(patch, "priority: 1", "priority: 2", 1))
		in := inputs(t, stored, head, kustomized("prod"))
		in.Others = []revert.Render{kustomized("staging")("staging", head)}
		edits := mustEdit(t, revert.Compose(in))
		if diff := cmp.Diff(map[string][]byte{"prod/patch.yaml": []byte(patch)}, edits); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the base", func(t *testing.T) {
		head := tree(strings.Replace(base, "app:1", "app:2", 1), patch)
		in := inputs(t, stored, head, kustomized("prod"))
		in.Others = []revert.Render{kustomized("staging")("staging", head)}
		mustRefuse(t, revert.Compose(in), "staging", "Rollout/staging/web")
	})
	t.Run("the base alone", func(t *testing.T) {
		head := tree(strings.Replace(base, "app:1", "app:2", 1), patch)
		edits := mustEdit(t, revert.Compose(inputs(t, stored, head, kustomized("prod"))))
		if diff := cmp.Diff(map[string][]byte{"base/web.yaml": []byte(base)}, edits); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a patch that was emptied", func(t *testing.T) {
		head := tree(base, strings.Replace(patch, "priority: 1", "priorityClassName: x", 1))
		edits := mustEdit(t, revert.Compose(inputs(t, stored, head, kustomized("prod"))))
		if diff := cmp.Diff(map[string][]byte{"prod/patch.yaml": []byte(patch)}, edits); diff != "" {
			t.Error(diff)
		}
	})
}

// A generated ConfigMap changes its name with its content, and counts as part
// of the Rollout that names it; a generator that another object uses does not.
func TestCompose_KustomizeGenerators(t *testing.T) {
	rollout := simple + "        envFrom:\n        - configMapRef: {name: conf}\n"
	config := "namespace: shop\nresources: [web.yaml]\nconfigurations: [refs.yaml]\nconfigMapGenerator:\n- name: conf\n  literals:\n  - A=1 # a\n  files: [app.properties]\n"
	refs := "nameReference:\n- kind: ConfigMap\n  version: v1\n  fieldSpecs:\n  - {path: spec/template/spec/containers/envFrom/configMapRef/name, kind: Rollout}\n"
	tree := func(config, properties string) map[string][]byte {
		return files("kustomization.yaml", config, "web.yaml", rollout, "refs.yaml", refs, "app.properties", properties)
	}
	stored := tree(config, "x=1\n")
	t.Run("a literal", func(t *testing.T) {
		head := tree(strings.Replace(config, "A=1", "A=2", 1), "x=1\n")
		edits := mustEdit(t, revert.Compose(inputs(t, stored, head, kustomized("."))))
		if diff := cmp.Diff(map[string][]byte{"kustomization.yaml": []byte(config)}, edits); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a file that is no YAML", func(t *testing.T) {
		head := tree(config, "x=2\n")
		edits := mustEdit(t, revert.Compose(inputs(t, stored, head, kustomized("."))))
		if diff := cmp.Diff(map[string][]byte{"app.properties": []byte("x=1\n")}, edits); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("C127 shared with another workload", func(t *testing.T) {
		deployment := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: job}\nspec: {template: {spec: {containers: [{name: a, envFrom: [{configMapRef: {name: conf}}]}]}}}\n"
		was, is := tree(config, "x=1\n"), tree(config, "x=2\n")
		was["web.yaml"], is["web.yaml"] = append(was["web.yaml"], deployment...), append(is["web.yaml"], deployment...)
		mustRefuse(t, revert.Compose(inputs(t, was, is, kustomized("."))), "Deployment/shop/job")
	})
}
