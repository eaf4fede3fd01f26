package stories

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// TestInstall does what `kubectl apply --server-side -k manifests/install` does:
// builds the folder and applies every object strictly. The pods become Ready and
// satisfy the restricted pod security standard that the namespace enforces.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the control plane")
	}
	ctx := context.Background()
	objects := build(t, filepath.Join(shared.Root, "manifests", "install"))
	for range 2 { // the second time, as a person would after an upgrade
		for _, object := range objects {
			data, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			target := object.DeepCopy()
			err = shared.Client.Patch(ctx, target, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("kubectl"), client.ForceOwnership)
			if err != nil {
				t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
	s := &tale{TB: t, ctx: ctx, namespace: "pushback-system"}
	s.awaitThat("two replicas of the controller", func(ctx context.Context) (bool, error) {
		deployment := &appsv1.Deployment{}
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: "pushback-system", Name: "pushback"}, deployment)
		return deployment.Status.AvailableReplicas == 2, err
	})
}

func build(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// TestSampleShopIsTaken by a GitSync as the README's sample says.
func TestSampleShopIsTaken(t *testing.T) {
	s := begin(t, "sample")
	objects := build(t, filepath.Join(shared.Root, "manifests", "samples", "shop"))
	files := map[string]string{}
	for _, object := range objects {
		data, err := object.MarshalJSON()
		s.must(err)
		files["deploy/"+strings.ToLower(object.GetKind())+"-"+object.GetName()+".json"] = string(data)
	}
	s.commit("Add the sample", files)
	s.follow()
	s.awaitThat("the shop to be Healthy", func(ctx context.Context) (bool, error) {
		shop := &v1alpha1.Rollout{}
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "shop"}, shop)
		return shop.Status.Phase == v1alpha1.RolloutPhaseHealthy, client.IgnoreNotFound(err)
	})
}
