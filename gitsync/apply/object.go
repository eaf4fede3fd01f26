package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// errDeleting says that an object is on its way out; it is applied when it is gone.
var errDeleting = errors.New("it is being deleted; it is applied again when it is gone")

// applyObject applies any object but a Rollout.
func (r *run) applyObject(ctx context.Context, o *object, of digest) (outcome, error) {
	live, err := r.mine(ctx, o)
	if err != nil {
		return outcome{}, err
	}
	if live != nil && r.in.Memory.holds(o.id(), live, of) {
		return outcome{Unchanged, live}, nil
	}
	declared, claimed, err := r.claims.overlay(o.id(), o.declared, live)
	if err != nil {
		return outcome{}, err
	}
	if declared, claimed, err = overlayHeld(declared, live, claimed); err != nil {
		return outcome{}, err
	}
	return r.write(ctx, declared, live, claimed)
}

// mine reads the live object; nil when there is none, and an *OwnedError when it
// is another GitSync's.
func (r *run) mine(ctx context.Context, o *object) (*unstructured.Unstructured, error) {
	live, err := r.get(ctx, o.declared)
	if err != nil || live == nil {
		return nil, err
	}
	return live, r.mayTake(ctx, o.id(), live)
}

// get reads the live object; nil when there is none.
func (a *Applier) get(ctx context.Context, declared *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(declared.GroupVersionKind())
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(declared), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case live.GetDeletionTimestamp() != nil:
		return nil, errDeleting
	}
	return live, nil
}

// disabled is true for an object that is to be left alone.
func disabled(declared, live *unstructured.Unstructured) bool {
	for _, u := range []*unstructured.Unstructured{declared, live} {
		if u != nil && strings.EqualFold(u.GetAnnotations()[v1alpha1.ReconcileAnnotation], "disabled") {
			return true
		}
	}
	return false
}

// write applies what is declared unless the live object is so already, as a
// server-side dry run says. The write is bound to the live object as it was
// read.
func (r *run) write(ctx context.Context, declared, live *unstructured.Unstructured, claimed []string) (outcome, error) {
	if disabled(declared, live) {
		return outcome{Skipped, live}, nil
	}
	if live == nil {
		made := declared.DeepCopy()
		return outcome{Created, made}, r.ssa(ctx, made)
	}
	bound := declared.DeepCopy()
	bound.SetUID(live.GetUID())
	bound.SetResourceVersion(live.GetResourceVersion())
	tried := bound.DeepCopy()
	err := r.ssa(ctx, tried, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err) && r.in.Force && mayRecreate(declared):
		made, err := r.recreate(ctx, declared, live)
		return outcome{Recreated, made}, err
	case err != nil:
		return outcome{}, err
	}
	if sameContent(live, tried) {
		same, err := sameOwnership(live, tried, claimed)
		if err != nil || same {
			return outcome{Unchanged, live}, err
		}
	}
	return outcome{Configured, bound}, r.ssa(ctx, bound)
}

// ssa applies u, and reads what came of it into u.
func (a *Applier) ssa(ctx context.Context, u *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, client.FieldOwner(v1alpha1.FieldManagerGitSync), client.ForceOwnership)
	return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
}

// kept are kinds that are never deleted to be made again: what they hold is lost.
var kept = []schema.GroupKind{
	{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.RolloutKind},
	{Kind: "Namespace"}, {Kind: "PersistentVolume"}, {Kind: "PersistentVolumeClaim"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

func mayRecreate(u *unstructured.Unstructured) bool {
	return !slices.Contains(kept, u.GroupVersionKind().GroupKind())
}

// goneTimeout bounds the wait for a deletion.
const goneTimeout = 30 * time.Second

// pollInterval of waits for the API server.
const pollInterval = 200 * time.Millisecond

// recreate deletes the live object and applies the declared one when it is gone.
func (r *run) recreate(ctx context.Context, declared, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := r.Client.Delete(ctx, live, preconditions(live), client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, goneTimeout, true, func(ctx context.Context) (bool, error) {
		found, err := r.get(ctx, declared)
		if errors.Is(err, errDeleting) {
			return false, nil
		}
		return found == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for its deletion: %w", err)
	}
	made := declared.DeepCopy()
	return made, r.ssa(ctx, made)
}

// establishTimeout is EstablishTimeout's default.
const establishTimeout = 30 * time.Second

// waitEstablished waits until the definitions of a stage are served. One that
// isn't in time is a failure; objects of its kind fail by themselves.
func (r *run) waitEstablished(ctx context.Context, stage []*object) {
	limit := r.EstablishTimeout
	if limit == 0 {
		limit = establishTimeout
	}
	for _, o := range stage {
		if !isDefinition(o.declared) || r.failed[o.id()] || o.recalled {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, pollInterval, limit, true, func(ctx context.Context) (bool, error) {
			live, err := r.get(ctx, o.declared)
			return live != nil && established(live), err
		})
		if err != nil {
			r.failPrepared(o, fmt.Errorf("waiting until it is served: %w", err))
		}
	}
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range list(conditions) {
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// secretError hides the API server's words about a Secret, which may quote it.
type secretError struct{ err error }

func (e secretError) Error() string {
	return fmt.Sprintf("the API server refused the Secret: %s (its words are not shown, they may quote the Secret)", apierrors.ReasonForError(e.err))
}

func (e secretError) Unwrap() error { return e.err }

func hideSecret(u *unstructured.Unstructured, err error) error {
	status := apierrors.APIStatus(nil)
	if u.GetKind() == "Secret" && errors.As(err, &status) && !apierrors.IsForbidden(err) {
		return secretError{err}
	}
	return err
}
