// Package persist writes the statuses of our own kinds.
//
// It imports a client and nothing of Pushback, so that every controller may use it.
package persist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NotKeptError says that the API server has dropped parts of a status without a
// word: what rests on them would be done again for ever.
type NotKeptError struct {
	// Kind as Go names it, such as Rollout.
	Kind string
	// Fields of the status that are not as they were written, sorted.
	Fields []string
}

// Error says what to do.
func (e *NotKeptError) Error() string {
	return fmt.Sprintf("the API server did not keep status.%s of a %s: its CRD is older than this controller, apply manifests/crd",
		strings.Join(e.Fields, ", status."), e.Kind)
}

// Status writes the status of next, which differs from read in its status alone.
// The write carries the resourceVersion of read: apierrors.IsConflict when somebody
// else wrote since. On success next has the new resourceVersion.
//
// What was stored is compared with what was sent: *NotKeptError. It needs the verb
// patch on the status subresource.
func Status(ctx context.Context, c client.Client, read, next client.Object, manager string) error {
	body, err := client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{}).Data(next)
	if err != nil {
		return fmt.Errorf("comparing statuses: %w", err)
	}
	// Answers are decoded over what is there already: only an empty object shows
	// what the API server has dropped.
	stored, ok := reflect.New(reflect.TypeOf(next).Elem()).Interface().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no pointer to an object", next)
	}
	stored.SetNamespace(next.GetNamespace())
	stored.SetName(next.GetName())
	if err := c.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, body), client.FieldOwner(manager)); err != nil {
		return err
	}
	next.SetResourceVersion(stored.GetResourceVersion())
	fields, err := differing(next, stored)
	if err != nil {
		return err
	}
	if len(fields) > 0 {
		return &NotKeptError{Kind: reflect.TypeOf(next).Elem().Name(), Fields: fields}
	}
	return nil
}

// differing compares statuses as they are stored: times in whole seconds.
func differing(sent, stored client.Object) ([]string, error) {
	want, err := statusOf(sent)
	if err != nil {
		return nil, err
	}
	got, err := statusOf(stored)
	if err != nil {
		return nil, err
	}
	var fields []string
	for name, value := range want {
		if !bytes.Equal(value, got[name]) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields, nil
}

func statusOf(object client.Object) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var shape struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	err = json.Unmarshal(text, &shape)
	return shape.Status, err
}
