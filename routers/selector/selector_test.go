package selector

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

var name = types.NamespacedName{Namespace: "shop", Name: "web-canary"}

func service(selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80}}, ClusterIP: "10.0.0.1"}}
}

func get(t *testing.T, c client.Client) *corev1.Service {
	t.Helper()
	out := &corev1.Service{}
	if err := c.Get(t.Context(), name, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestApply(t *testing.T) {
	const label = v1alpha1.TemplateHashLabel
	cases := map[string]struct {
		before map[string]string
		hash   string
		want   map[string]string
		writes int
	}{
		"add":                  {map[string]string{"app": "web"}, "abc", map[string]string{"app": "web", label: "abc"}, 1},
		"replace":              {map[string]string{"app": "web", label: "old"}, "abc", map[string]string{"app": "web", label: "abc"}, 1},
		"take out":             {map[string]string{"app": "web", label: "old"}, "", map[string]string{"app": "web"}, 1},
		"right already":        {map[string]string{"app": "web", label: "abc"}, "abc", map[string]string{"app": "web", label: "abc"}, 0},
		"nothing to take out":  {map[string]string{"app": "web"}, "", map[string]string{"app": "web"}, 0},
		"no selector, no hash": {nil, "", nil, 0},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(service(tc.before)).Build()
			before := get(t, c)
			if err := Apply(t.Context(), c, c, name, tc.hash); err != nil {
				t.Fatal(err)
			}
			after := get(t, c)
			if diff := cmp.Diff(tc.want, after.Spec.Selector); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
			if wrote := before.ResourceVersion != after.ResourceVersion; wrote != (tc.writes > 0) {
				t.Errorf("wrote: %t, want %d writes", wrote, tc.writes)
			}
			if diff := cmp.Diff(before.Spec.Ports, after.Spec.Ports); diff != "" || after.Spec.ClusterIP != "10.0.0.1" {
				t.Errorf("something else changed:\n%s", diff)
			}
		})
	}
}

func TestApplyMissing(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	var missing *routers.NotFoundError
	if err := Apply(t.Context(), c, c, name, "abc"); !errors.As(err, &missing) || missing.Name != name {
		t.Errorf("got %v", err)
	}
}

func TestApplyWithoutSelector(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(service(nil)).Build()
	var invalid *routers.InvalidError
	if err := Apply(t.Context(), c, c, name, "abc"); !errors.As(err, &invalid) || invalid.Field != "spec.selector" {
		t.Errorf("got %v", err)
	}
}

// stale lets somebody write after the read.
type stale struct{ client.Client }

func (s stale) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := s.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	changed := &corev1.Service{}
	if err := s.Client.Get(ctx, key, changed); err != nil {
		return err
	}
	changed.Spec.Selector["tier"] = "front"
	return s.Client.Update(ctx, changed)
}

func TestApplyOnStaleRead(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(service(map[string]string{"app": "web"})).Build()
	if err := Apply(t.Context(), c, stale{c}, name, "abc"); !apierrors.IsConflict(err) {
		t.Fatalf("want a conflict, got %v", err)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", "tier": "front"}, get(t, c).Spec.Selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
}
