package controller

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/render"
)

// fixtures are the files of other systems, as a tree of their own.
type fixtures []string

func (f fixtures) Entries() ([]render.Entry, error) {
	var out []render.Entry
	for _, p := range f {
		out = append(out, render.Entry{Path: p, Mode: 0o100644})
	}
	return out, nil
}

func (f fixtures) Read(paths []string, _ int64) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, p := range paths {
		data, err := os.ReadFile(filepath.Join("..", "translate", "testdata", p))
		if err != nil {
			return nil, err
		}
		out[p] = data
	}
	return out, nil
}

// Documents of Argo go in unchanged, and give the same whether they are YAML or JSON.
func TestArgoFixturesGoInUnchanged(t *testing.T) {
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sync"}, Spec: v1alpha1.GitSyncSpec{Path: "argo"}}
	all := map[string][]map[string]any{}
	for _, kind := range []string{".yaml", ".json"} {
		made, err := declare(fixtures{"argo/rollout" + kind, "argo/analysis" + kind}, sync)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range made.objects {
			if o.GetAPIVersion() != v1alpha1.GroupVersion.String() {
				t.Errorf("%s is still %s", gitsync.Describe(o.Unstructured), o.GetAPIVersion())
			}
			all[kind] = append(all[kind], o.Object)
		}
	}
	if diff := cmp.Diff(all[".yaml"], all[".json"]); diff != "" || len(all[".yaml"]) != 3 {
		t.Errorf("want three objects, the same from both:\n%s", diff)
	}
}

func TestFlaggerFixturesAreRefusedByName(t *testing.T) {
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "sync"}, Spec: v1alpha1.GitSyncSpec{Path: "flagger"}}
	_, err := declare(fixtures{"flagger/canary.yaml"}, sync)
	var wrong *gitsync.ManifestError
	if !errors.As(err, &wrong) || wrong.File != "flagger/canary.yaml" || wrong.Object != "Canary/checkout" {
		t.Errorf("want an error that names the file and the object, got %v", err)
	}
}
