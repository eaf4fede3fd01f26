package world

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pushback-dev/pushback/e2e/cluster"
	"github.com/pushback-dev/pushback/e2e/podforward"
)

// Existing is a cluster that runs already, for Options. The World makes nothing
// there but what Made lists, labels each of it, and Stop deletes it. What an
// earlier World left, which the label tells, is deleted first.
type Existing struct {
	// Config of an administrator. Required.
	Config *rest.Config
	// Namespace of the only tenant: AddTenant makes it, and only its pods are
	// dialed and scraped. Required.
	Namespace string
	// Keep leaves on the cluster what the World made.
	Keep bool
}

// DemoLabel is on each object that a World made on an existing cluster.
const DemoLabel = "pushback.dev/demo"

var demoMark = labels.Set{DemoLabel: "true"}

// ErrNotOurs says that the cluster has an object that the World would make, and
// that none made before.
var ErrNotOurs = errors.New("is on the cluster already, and not by this demo")

// examine connects with the existing cluster and returns what an earlier World
// left there. It writes nothing. Errors: ErrNotOurs.
func (w *World) examine(ctx context.Context) (old []client.Object, err error) {
	e := w.existing
	if e.Config == nil || e.Namespace == "" {
		return nil, errors.New("world: Existing needs a Config and a Namespace")
	}
	w.REST = e.Config
	if w.Client, err = connect(w.REST); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", w.REST.Host, err)
	}
	return w.survey(ctx)
}

// startExisting is start on an existing cluster.
func (w *World) startExisting(ctx context.Context, old []client.Object) error {
	var err error
	if w.pods, err = podforward.New(w.REST, w.existing.Namespace); err != nil {
		return err
	}
	w.dial = w.pods.DialContext
	if len(old) > 0 {
		fmt.Fprintf(w.progress, "deleting what an earlier demo left: %s\n", w.describe(old))
		if err := w.remove(ctx, old); err != nil {
			return err
		}
	}
	w.crds, err = cluster.InstallMissingCRDs(ctx, w.REST, filepath.Join(w.Root, "manifests", "crd"), demoMark)
	if err != nil {
		return err
	}
	if err := w.installRights(ctx); err != nil {
		return err
	}
	return w.startProm()
}

// survey returns what an earlier World left of what this one will make. Errors:
// ErrNotOurs.
func (w *World) survey(ctx context.Context) (old []client.Object, err error) {
	needed, err := w.rights()
	if err != nil {
		return nil, err
	}
	for _, object := range append(tenant(w.existing.Namespace), needed...) {
		kind, err := apiutil.GVKForObject(object, w.Client.Scheme())
		if err != nil {
			return nil, err
		}
		there := newObject()
		there.SetGroupVersionKind(kind)
		err = w.Client.Get(ctx, client.ObjectKeyFromObject(object), there)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("looking for %s %s: %w", kind.Kind, object.GetName(), err)
		case demoMark.AsSelector().Matches(labels.Set(there.GetLabels())):
			old = append(old, there)
		case kind.Kind == "Namespace" && object.GetName() == w.existing.Namespace:
			return nil, fmt.Errorf("namespace %s %w: delete it, or use another cluster", object.GetName(), ErrNotOurs)
		case kind.Kind != "Namespace":
			return nil, fmt.Errorf("%s %s %w: where Pushback is installed, its controller and the demo's would both act on the same objects",
				kind.Kind, object.GetName(), ErrNotOurs)
		}
	}
	return old, nil
}

// create makes an object. On a cluster of the World's own, one that is there is
// as good; on an existing one only the controller's namespace is.
func (w *World) create(ctx context.Context, object client.Object) error {
	if w.existing != nil {
		object.SetLabels(labels.Merge(object.GetLabels(), demoMark))
	}
	err := w.Client.Create(ctx, object)
	switch {
	case err == nil && w.existing != nil:
		w.made = append(w.made, object)
	case apierrors.IsAlreadyExists(err) && (w.existing == nil || object.GetName() == systemNamespace):
	case err != nil:
		return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
