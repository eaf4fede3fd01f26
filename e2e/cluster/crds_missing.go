package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

// InstallMissingCRDs installs the CustomResourceDefinitions of the folder and the Gateway API's HTTPRoute, those
// that aren't there or that have the labels, and gives them the labels. Others stay as they are. It waits until
// all are served and returns the names of those that it installed, also with an error. Errors: ErrNoCRDs.
func InstallMissingCRDs(ctx context.Context, config *rest.Config, dir string, mark labels.Set) (installed []string, err error) {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	crds, err := neededCRDs(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
		there, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return installed, fmt.Errorf("looking for CRD %s: %w", crd.Name, err)
		}
		if err == nil && !mark.AsSelector().Matches(labels.Set(there.Labels)) {
			continue
		}
		crd.Labels = labels.Merge(crd.Labels, mark)
		if err := applyCRD(ctx, client, crd); err != nil {
			return installed, err
		}
		installed = append(installed, crd.Name)
	}
	return installed, awaitCRDs(ctx, client, names)
}

// neededCRDs are those of the folder, and HTTPRoute.
func neededCRDs(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading CRDs: %w", err)
		}
		some, err := decodeCRDs(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		crds = append(crds, some...)
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoCRDs, dir)
	}
	routes, err := decodeCRDs(httpRouteCRD)
	return append(crds, routes...), err
}
