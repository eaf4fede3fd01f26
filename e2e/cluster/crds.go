package cluster

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	sigsyaml "sigs.k8s.io/yaml"
)

// httpRouteCRD is config/crd/standard/gateway.networking.k8s.io_httproutes.yaml of the module
// sigs.k8s.io/gateway-api, as it is there in the version that go.mod names; a test compares them.
//
//go:embed crds/gateway.networking.k8s.io_httproutes.yaml
var httpRouteCRD []byte

const (
	crdTimeout   = 60 * time.Second
	fieldManager = "pushback-e2e"
)

// ErrNoCRDs says that a folder holds no CustomResourceDefinition.
var ErrNoCRDs = errors.New("no CustomResourceDefinition found")

// InstallGatewayAPI installs the HTTPRoute CRD of the Gateway API's standard channel and waits until it is served.
func InstallGatewayAPI(ctx context.Context, config *rest.Config) error {
	return installCRDs(ctx, config, map[string][]byte{"HTTPRoute": httpRouteCRD})
}

// InstallCRDs installs every CustomResourceDefinition of the folder's *.yaml files and waits until they are
// served. Other kinds are ignored. Errors: ErrNoCRDs.
func InstallCRDs(ctx context.Context, config *rest.Config, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, file := range files {
		if texts[file], err = os.ReadFile(file); err != nil {
			return fmt.Errorf("reading CRDs: %w", err)
		}
	}
	if err := installCRDs(ctx, config, texts); err != nil {
		return fmt.Errorf("installing the CRDs of %s: %w", dir, err)
	}
	return nil
}

// InstallCRDs is InstallCRDs with the administrator's rights.
func (c *Cluster) InstallCRDs(ctx context.Context, dir string) error {
	return InstallCRDs(ctx, c.RESTConfig(), dir)
}

// InstallGatewayAPI is InstallGatewayAPI with the administrator's rights.
func (c *Cluster) InstallGatewayAPI(ctx context.Context) error {
	return InstallGatewayAPI(ctx, c.RESTConfig())
}

func installCRDs(ctx context.Context, config *rest.Config, texts map[string][]byte) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	var names []string
	for source, text := range texts {
		crds, err := decodeCRDs(text)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		for _, crd := range crds {
			if err := applyCRD(ctx, client, crd); err != nil {
				return fmt.Errorf("%s: %w", source, err)
			}
			names = append(names, crd.Name)
		}
	}
	if len(names) == 0 {
		return ErrNoCRDs
	}
	return awaitCRDs(ctx, client, names)
}

func awaitCRDs(ctx context.Context, client clientset.Interface, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	for _, name := range names {
		if err := awaitCRD(ctx, client, name); err != nil {
			return err
		}
	}
	return nil
}

func decodeCRDs(text []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := sigsyaml.Unmarshal(document, crd); err != nil {
			return nil, err
		}
		if crd.Kind == "CustomResourceDefinition" {
			crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
			crds = append(crds, crd)
		}
	}
}

func applyCRD(ctx context.Context, client clientset.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	body, err := sigsyaml.Marshal(crd)
	if err != nil {
		return err
	}
	force := true
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, crd.Name, types.ApplyYAMLPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("applying CRD %s: %w", crd.Name, err)
	}
	return nil
}

// awaitCRD waits until the CRD is established and each of its versions answers a list: the condition comes
// a little before the handler.
func awaitCRD(ctx context.Context, client clientset.Interface, name string) error {
	for {
		last := served(ctx, client, name)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for CRD %s: %w (last seen: %w)", name, context.Cause(ctx), last)
		case <-time.After(pollInterval):
		}
	}
}

func served(ctx context.Context, client clientset.Interface, name string) error {
	crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	condition := errors.New("it has no condition Established yet")
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			condition = nil
		case c.Status == apiextensionsv1.ConditionFalse:
			return fmt.Errorf("%s is False: %s", c.Type, c.Message)
		}
	}
	if condition != nil {
		return condition
	}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		path := fmt.Sprintf("/apis/%s/%s/%s", crd.Spec.Group, v.Name, crd.Spec.Names.Plural)
		if err := client.Discovery().RESTClient().Get().AbsPath(path).Param("limit", "1").Do(ctx).Error(); err != nil {
			return fmt.Errorf("GET %s: %w", path, err)
		}
	}
	return nil
}
